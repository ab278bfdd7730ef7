from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.label_granularity.fine import theory


@settings(max_examples=50, deadline=None)
@given(k=st.integers(1, 40), seed=st.integers(0, 1000))
def test_the_envelope_of_the_common_coefficient(k, seed):
    """All outputs in [0, log 3/2]: 1 − p − (k−1)p' lies in [¼, ⅔], whatever they are."""
    generator = torch.Generator().manual_seed(seed)
    outputs = theory.OUTPUT_BOUND * torch.rand(2, 2 * k, generator=generator, dtype=torch.float64).round()
    own, sibling = outputs.softmax(-1)[:, 0].tolist()
    low, high = theory.fine_common_envelope(k)
    assert (low, high) == (pytest.approx(1 / 4), pytest.approx(2 / 3))
    assert low - 1e-12 <= 1 - own - (k - 1) * sibling <= high + 1e-12


@settings(max_examples=50, deadline=None)
@given(k=st.integers(1, 40), seed=st.integers(0, 1000))
def test_the_envelope_of_the_ratio(k, seed):
    generator = torch.Generator().manual_seed(seed)
    outputs = theory.OUTPUT_BOUND * torch.rand(2, 2 * k, generator=generator, dtype=torch.float64).round()
    own, sibling = outputs.softmax(-1)[:, 0].tolist()
    low, high = theory.fine_ratio_envelope(k)
    assert low - 1e-12 <= (1 - own - (k - 1) * sibling) / (1 - own) <= high + 1e-12


def test_the_least_outputs_of_equal_classes():
    """Equal classes, at the coefficients that make both bounds sharp: ¼ for common detectors, ⅔ for the fastest."""
    k, count = 4, torch.full((1, 8), 5.0)
    common, subclass = theory.least_outputs(k, count, count, count, count)
    whole = 2 / 3 + 1 - 1 / 12
    assert float(common) == pytest.approx(theory.OUTPUT_BOUND * 0.25 / whole)
    assert float(subclass) == pytest.approx(theory.OUTPUT_BOUND * (1 - 3 / 16) / whole)
    faster = count.clone()
    faster[0, 0] = 10
    assert float(theory.least_outputs(k, count, count, faster, count)[0]) < float(common)
