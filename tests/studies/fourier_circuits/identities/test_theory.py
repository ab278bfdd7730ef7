from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from assay.studies.fourier_circuits.identities.theory import cosine_sum, polarisation, sum_to_product


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_sum_of_cosines_is_minus_a_half_at_wrong_labels():
    for p in (3, 7, 9, 23):
        sums = cosine_sum(p)
        assert float(sums[0]) == pytest.approx((p - 1) / 2)
        torch.testing.assert_close(sums[1:], torch.full((p - 1,), -0.5, dtype=torch.float64))
    with pytest.raises(ValueError, match="p = 8"):
        cosine_sum(8)


@given(st.integers(2, 7), st.integers(0, 1000))
def test_polarisation(k, seed):
    d = normal(k, seed=seed)
    size = float(d.abs().sum()) ** k * 2**k
    assert float(polarisation(d)) == pytest.approx(
        2**k * math.factorial(k) * float(d.prod()), rel=1e-9, abs=1e-13 * size
    )


@given(st.integers(1, 6), st.integers(0, 1000))
def test_sum_to_product(k, seed):
    x, c = 3 * normal(4, k, seed=seed), 3 * normal(4, seed=seed + 1)
    torch.testing.assert_close(sum_to_product(x, c), torch.cos(x.sum(-1) - c), rtol=0, atol=1e-12)


def test_sine_is_phase_minus_a_quarter_turn():
    a, c = 6 * normal(20, 3), 6 * normal(20, seed=1)
    wanted = -24 * a[:, 0].sin() * a[:, 1].sin() * a[:, 2].cos() * c.cos()
    neurons = {}
    for quarter in (-math.pi / 2, math.pi / 2):  # ours, and the source's k = 3 example
        d = torch.cos(a + torch.tensor([quarter, quarter, 0.0], dtype=torch.float64))
        neurons[quarter] = [
            s2 * s3 * (d[:, 0] + s2 * d[:, 1] + s3 * d[:, 2]).pow(3) * torch.cos(c + 2 * quarter)
            for s2 in (1, -1)
            for s3 in (1, -1)
        ]
        torch.testing.assert_close(sum(neurons[quarter]), wanted)
    for ours, printed in zip(*neurons.values(), strict=True):
        assert float((ours - printed).abs().max()) > 0.1, "one by one the neurons differ; their sum does not"
