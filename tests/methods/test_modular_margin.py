from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assay.methods.modular_margin import (
    CONSTRUCTIONS,
    build_max_margin,
    cosine_neurons,
    expected_margin,
    integer_power,
    margin_certificate,
    margins,
    max_margin,
    network_logits,
    neuron_expected_margin,
    neuron_norms,
    neuron_phases,
    required_width,
)
from assay.probes.fourier import decode_inputs

PAIRS = [
    (3, 2),
    (5, 2),
    (7, 2),
    (11, 2),
    (13, 2),
    (3, 3),
    (5, 3),
    (7, 3),
    (11, 3),
    (3, 4),
    (5, 4),
    (7, 4),
    (3, 5),
    (5, 5),
    (3, 6),
    (9, 2),
    (9, 3),
    (15, 2),
]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(p: int, k: int, m: int = 6, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random weights that are not centred."""
    return 0.4 + normal(k, p, m, seed=seed), 0.4 + normal(m, p, seed=seed + 1)


def everything(p: int, k: int) -> Tensor:
    return decode_inputs(torch.arange(p**k), p, k)


def mean_weighted_margin(U: Tensor, W: Tensor) -> Tensor:
    """E[g'] by enumeration, written out."""
    k, p, _ = U.shape
    total = torch.zeros((), dtype=U.dtype)
    for a in everything(p, k):
        hidden = sum(U[l, a[l]] for l in range(k))
        f = (hidden**k) @ W
        y = int(a.sum()) % p
        total = total + f[y] - (f.sum() - f[y]) / (p - 1)
    return total / p**k


def test_closed_forms_of_the_maximum():
    assert max_margin(97, 3) == pytest.approx(3 / (16 * 97 * 96))
    assert max_margin(97, 3) == pytest.approx(2.013531e-05, rel=1e-6)
    assert max_margin(47, 4) == pytest.approx(1.024086e-05, rel=1e-6)
    assert max_margin(23, 5) == pytest.approx(1.193409e-05, rel=1e-6)
    assert max_margin(97, 2) == pytest.approx(math.sqrt(2 / 27) / (96 * math.sqrt(97)))
    assert max_margin(5, 5) == pytest.approx(1.388889e-03, rel=1e-6)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize(("p", "k"), PAIRS)
def test_constructed_networks_have_the_maximum_margin_on_every_input(p, k, construction):
    U, W = build_max_margin(p, k, construction)
    gamma = max_margin(p, k)
    assert U.shape == (k, p, required_width(p, k, construction))
    assert float(neuron_norms(U, W).pow(k + 1).sum()) == pytest.approx(1, rel=1e-12)
    inputs = everything(p, k)
    logits = network_logits(U, W, inputs)
    ideal = torch.nn.functional.one_hot(inputs.sum(1) % p, p).double() - 1 / p
    torch.testing.assert_close(logits / gamma, ideal, rtol=0, atol=1e-10)
    found = margin_certificate(U, W)
    for ratio in (found.margin_ratio, found.mean_margin / found.bound, found.alignment_ratio):
        assert float(ratio) == pytest.approx(1, rel=1e-10)
    assert bool(found.is_max_margin(1e-10))


def test_counts_of_neurons():
    assert [required_width(97, 3), required_width(47, 4), required_width(23, 5)] == [1536, 2944, 5632]
    assert [len(neuron_phases(k, "polarisation")) for k in (2, 3, 4, 5)] == [8, 32, 128, 512]
    assert [len(neuron_phases(k, "thirds")) for k in (2, 3, 4, 5)] == [9, 27, 81, 243]


def test_phase_offsets_change_the_network_and_not_its_function():
    plain, turned = build_max_margin(7, 3), build_max_margin(7, 3, offsets=normal(3, 3))
    assert float((plain[0] - turned[0]).abs().max()) > 0.01
    inputs = everything(7, 3)
    torch.testing.assert_close(network_logits(*plain, inputs), network_logits(*turned, inputs), rtol=0, atol=1e-15)


@pytest.mark.parametrize(("p", "k"), [(5, 2), (5, 3), (7, 3), (3, 4)])
def test_the_expected_margin_is_that_of_enumeration(p, k):
    U, W = network(p, k)
    assert float(expected_margin(U, W)) == pytest.approx(float(mean_weighted_margin(U, W)), rel=1e-12)
    torch.testing.assert_close(neuron_expected_margin(U, W).sum(-1), expected_margin(U, W))


def test_its_gradient_is_that_of_enumeration():
    U, W = (part.requires_grad_(True) for part in network(5, 2, 4))
    ours = torch.autograd.grad(expected_margin(U, W), (U, W))
    theirs = torch.autograd.grad(mean_weighted_margin(U, W), (U, W))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


@settings(max_examples=30)
@given(p=st.sampled_from([3, 5, 7, 9]), k=st.integers(2, 4), seed=st.integers(0, 10_000), scale=st.floats(0.2, 3))
def test_symmetries_and_the_chain_of_bounds(p, k, seed, scale):
    U, W = network(p, k, 5, seed)
    value = expected_margin(U, W)
    size = float(neuron_norms(U, W).pow(k + 1).sum()) * max_margin(p, k)
    order = torch.randperm(5, generator=torch.Generator().manual_seed(seed))
    assert float(expected_margin(U[..., order], W[order])) == pytest.approx(float(value), abs=1e-12 * size)
    assert float(expected_margin(scale * U, scale * W)) == pytest.approx(
        scale ** (k + 1) * float(value), abs=1e-11 * size * max(1, scale ** (k + 1))
    )
    shifted = U.clone()
    shifted[0] = U[0].roll(-2, 0)
    assert float(expected_margin(shifted, W.roll(-2, 1))) == pytest.approx(float(value), abs=1e-12 * size)
    found = margin_certificate(U, W)
    assert float(found.margin) <= float(found.expected) + 1e-12 * size
    assert float(found.expected) <= float(found.bound) * (1 + 1e-12)


def test_without_a_frequency_the_margin_falls_and_the_alignment_does_not():
    U, W = build_max_margin(7, 3)
    found = margin_certificate(U[..., 32:], W[32:])
    assert float(found.alignment_ratio) == pytest.approx(1, rel=1e-12)
    assert float(found.margin_ratio) == pytest.approx(0.685, abs=5e-4)
    assert not bool(found.is_max_margin())


@given(epsilon=st.floats(-3, 3))
def test_a_phase_off_by_epsilon_costs_its_cosine(epsilon):
    phases = torch.tensor([[0.3, -1.1, 2.0]], dtype=torch.float64)
    U, W = cosine_neurons(11, torch.tensor([4]), phases)
    assert float(neuron_expected_margin(U, W)) == pytest.approx(max_margin(11, 3), rel=1e-12)
    turned, _ = cosine_neurons(11, torch.tensor([4]), phases + torch.tensor([[epsilon, 0.0, 0.0]], dtype=torch.float64))
    assert float(neuron_expected_margin(turned, W)) == pytest.approx(
        math.cos(epsilon) * max_margin(11, 3), abs=1e-12 * max_margin(11, 3) * 10
    )


def test_a_wrong_sign_of_the_output_phase_turns_the_margin():
    U, W = build_max_margin(5, 3)
    backwards = W[:, (-torch.arange(5)) % 5]
    assert float(margin_certificate(U, backwards).margin_ratio) == pytest.approx(-1, rel=1e-10)


def test_a_perturbed_network_is_rejected():
    U, W = build_max_margin(7, 3)
    for size in (1e-2, 1e-4):
        found = margin_certificate(U + size * U.abs().mean() * normal(*U.shape), W)
        assert not bool(found.is_max_margin(1e-7))
        assert float(found.margin_ratio) < float(found.alignment_ratio) < 1


def test_leading_axes_are_networks_and_samples_bound_from_above():
    U, W = network(5, 3, 7)
    other = network(5, 3, 7, seed=9)
    both = margin_certificate(torch.stack([U, other[0]]), torch.stack([W, other[1]]))
    alone = margin_certificate(U, W)
    torch.testing.assert_close(both.margin[0], alone.margin)
    torch.testing.assert_close(both.expected[0], alone.expected)
    sampled = margin_certificate(U, W, samples=20, generator=torch.Generator().manual_seed(0))
    assert float(sampled.margin) >= float(alone.margin)
    assert not sampled.exact
    with pytest.raises(ValueError, match="certifies nothing"):
        sampled.is_max_margin()


def test_margins_against_a_loop():
    logits, labels = normal(6, 5), torch.tensor([0, 1, 2, 3, 4, 0])
    slow = [float(row[y] - max(row[c] for c in range(5) if c != y)) for row, y in zip(logits, labels, strict=True)]
    torch.testing.assert_close(margins(logits, labels), torch.tensor(slow, dtype=torch.float64))


def test_odd_powers_keep_their_sign():
    z = normal(50)
    for k in (1, 2, 3, 5):
        torch.testing.assert_close(integer_power(z, k), z**k)


def test_refusals():
    for p, k in ((4, 2), (2, 3), (1, 2), (7, 1)):
        for refuse in (max_margin, required_width, build_max_margin):
            with pytest.raises(ValueError, match=f"{'k' if k < 2 else 'p'} = "):
                refuse(p, k)
    with pytest.raises(ValueError, match="p = 6"):
        margin_certificate(*network(6, 2))
    with pytest.raises(ValueError, match="k must be an integer"):
        max_margin(7, 2.5)
    with pytest.raises(ValueError, match="k must be an integer"):
        integer_power(torch.ones(2), 2.5)
    with pytest.raises(ValueError, match="numbers in 0"):
        network_logits(*network(5, 2), torch.tensor([[1, 5]]))
    with pytest.raises(ValueError, match="more than the limit"):
        margin_certificate(*network(11, 3), limit=1000)
    for samples in (0, -3):
        with pytest.raises(ValueError, match="samples must be at least 1"):
            margin_certificate(*network(5, 2), samples=samples)
    with pytest.raises(ValueError, match="do not fit"):
        expected_margin(normal(2, 5, 3), normal(3, 7))
    with pytest.raises(ValueError, match="construction must be one of"):
        build_max_margin(5, 2, "quarters")
