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
