from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.methods.modular_margin import build_max_margin, network_logits
from assay.probes.fourier import decode_inputs, fourier_probe, logit_fourier


def cosine(p: int, frequency: int, phase: float) -> torch.Tensor:
    return torch.cos(phase + 2 * math.pi * frequency * torch.arange(p, dtype=torch.float64) / p)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(p=st.integers(3, 40).filter(lambda p: p % 2), data=st.data())
def test_a_pure_cosine_is_found_with_its_phase(p, data):
    frequency = data.draw(st.integers(1, (p - 1) // 2))
    phase = data.draw(st.floats(-3.1, 3.1))
    found = fourier_probe(2.5 * cosine(p, frequency, phase) + 0.7)
    assert int(found.peak) == frequency
    assert float(found.share) == pytest.approx(1)
    assert float(found.phase) == pytest.approx(phase, abs=1e-9)
    assert float(found.norm) ** 2 == pytest.approx(p * (2.5**2 / 2 + 0.7**2))
    assert float(found.dc_share) == pytest.approx(0.7**2 / (2.5**2 / 2 + 0.7**2))


def test_unfolded_a_cosine_has_half_and_noise_little():
    assert float(fourier_probe(cosine(31, 4, 1.0), fold=False).share) == pytest.approx(0.5)
    noise = fourier_probe(normal(97, 200))
    assert float(noise.share.mean()) < 0.2
    assert noise.power.shape == (200, 48)


@pytest.mark.parametrize("p", [7, 12])
def test_power_is_parsevals(p):
    weight = normal(5, p, 3)
    found = fourier_probe(weight, axis=1, dc="keep")
    assert found.power.shape == (5, 3, p // 2 + 1)
    torch.testing.assert_close(found.power.sum(-1), p * weight.square().sum(1))
    torch.testing.assert_close(found.normalised.sum(-1), torch.ones(5, 3, dtype=torch.float64))
    slow = [
        sum(
            weight[0, a, 0] * complex(math.cos(2 * math.pi * j * a / p), -math.sin(2 * math.pi * j * a / p))
            for a in range(p)
        )
        for j in range(p)
    ]
    folded = [abs(slow[0]) ** 2] + [
        abs(slow[j]) ** 2 + (abs(slow[p - j]) ** 2 if j != p - j else 0) for j in range(1, p // 2 + 1)
    ]
    torch.testing.assert_close(found.power[0, 0], torch.tensor(folded, dtype=torch.float64))


def test_zeros_have_no_share_and_half_precision_is_read():
    assert fourier_probe(torch.zeros(7, 2)).share.isnan().all()
    assert fourier_probe(cosine(7, 2, 0.0).bfloat16()).share.dtype == torch.float32


def test_refusals_of_the_probe():
    with pytest.raises(ValueError, match="7 tokens"):
        fourier_probe(torch.zeros(12, 3), tokens=7)
    with pytest.raises(ValueError, match="at least 3"):
        fourier_probe(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="dc must be one of drop, keep"):
        fourier_probe(torch.zeros(7), dc="half")
    with pytest.raises(ValueError, match="real weights"):
        fourier_probe(torch.zeros(7, dtype=torch.complex64))


def slow_share(table: torch.Tensor, p: int, k: int) -> torch.Tensor:
    """The diagonal of the whole (k+1)-dimensional transform, folded, over all power but that of class means."""
    transform = torch.fft.fftn(table - table.mean(-1, keepdim=True)).abs().square()
    j = torch.arange(p)
    diagonal = transform[(*[j] * k, -j % p)] / transform.sum()
    folded = diagonal[1 : p // 2 + 1].clone()
    folded[: (p - 1) // 2] += diagonal[1:].flip(0)[: (p - 1) // 2]
    return folded


@pytest.mark.parametrize(("p", "k"), [(5, 2), (7, 2), (5, 3), (4, 2)])
def test_the_logit_spectrum_is_the_diagonal_of_the_whole_transform(p, k):
    table = normal(*(p,) * (k + 1))
    found = logit_fourier(table, p, k)
    torch.testing.assert_close(found.by_frequency, slow_share(table, p, k))
    assert found.share == pytest.approx(float(found.by_frequency.sum()))
    as_function = logit_fourier(lambda inputs: table[tuple(inputs.T)], p, k, chunk=7)
    torch.testing.assert_close(as_function.by_frequency, found.by_frequency)


def test_the_constructed_network_is_modular_addition_and_nothing_else():
    U, W = build_max_margin(7, 3)
    found = logit_fourier(lambda a: network_logits(U, W, a), 7, 3)
    assert found.share == pytest.approx(1)
    torch.testing.assert_close(found.by_frequency, torch.full((3,), 1 / 3, dtype=torch.float64))


def test_samples_estimate_the_share_without_bias():
    table = (
        normal(5, 5, 5, 5)
        + 0.5 * torch.eye(5)[(torch.arange(5)[:, None, None] + torch.arange(5)[:, None] + torch.arange(5)) % 5]
    )
    exact = logit_fourier(table, 5, 3)
    generator = torch.Generator().manual_seed(0)
    draws = torch.tensor([logit_fourier(table, 5, 3, samples=100, generator=generator).share for _ in range(200)])
    error = float(draws.std()) / math.sqrt(len(draws))
    assert abs(float(draws.mean()) - exact.share) < 4 * error + 0.002  # the denominator is estimated too
    # The naive square of the sample mean would be off by about a tenth here.
    assert 0.02 < exact.share < 0.6


def test_refusals_of_the_logit_spectrum():
    with pytest.raises(ValueError, match="more than the limit"):
        logit_fourier(lambda a: a.float(), 97, 5)
    with pytest.raises(ValueError, match="table of logits"):
        logit_fourier(torch.zeros(5, 5), 5, 2)
    with pytest.raises(ValueError, match="same for all classes"):
        logit_fourier(torch.ones(5, 5, 5), 5, 2)
    with pytest.raises(ValueError, match="logits have shape"):
        logit_fourier(lambda a: a.double(), 5, 2)
    with pytest.raises(ValueError, match="samples must be at least 2"):
        logit_fourier(normal(5, 5, 5), 5, 2, samples=1)


@given(p=st.integers(2, 9), k=st.integers(1, 4), data=st.data())
def test_digits_are_pythons(p, k, data):
    flat = data.draw(st.integers(0, p**k - 1))
    digits = decode_inputs(torch.tensor(flat), p, k).tolist()
    assert all(0 <= digit < p for digit in digits)
    assert sum(digit * p**place for place, digit in enumerate(reversed(digits))) == flat


def test_vectors_without_a_spectrum_are_counted_and_left_out_of_table_and_figure():
    weights = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    weights[:, 1], weights[2, 3] = 0.0, torch.nan
    found = fourier_probe(weights)
    assert found.share.isnan().tolist() == [False, True, False, True]
    assert "2 vectors" in found.headline()
    assert "2 without power, or not finite, are left out" in found.headline()
    assert sum(row["peaks"] for row in found.table()) == 2
    pytest.importorskip("altair")
    cells = found.figure().to_dict()["data"]["values"]
    assert len(cells) == 2 * len(found.frequencies)
