"""The closed forms against Monte Carlo, autograd, enumeration and values known by hand."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.feature_emergence import theory
from assay.studies.feature_emergence.problem import PatternProblem, label_counts


def test_smoothed_activation_against_monte_carlo():
    z = torch.linspace(-1, 2, 13, dtype=torch.float64)
    noise = torch.randn(400_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for s in (0.1, 0.5):
        sampled = theory.truncated_relu(z[:, None] + s * noise).mean(1)
        assert (sampled - theory.smoothed(z, s)).abs().max() < 5 * s / math.sqrt(400_000)


def test_smoothed_slope_is_the_derivative_and_the_limit_is_the_plain_one():
    z = torch.linspace(-1, 2, 31, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(theory.smoothed(z, 0.3).sum(), z)
    assert torch.allclose(slope, theory.smoothed_slope(z, 0.3), atol=1e-12)
    away = z.detach()[((z.detach()) * (z.detach() - 1)).abs() > 0.05]
    assert torch.allclose(theory.smoothed(away, 1e-4), theory.truncated_relu(away), atol=1e-12)
    assert torch.allclose(theory.smoothed_slope(away, 1e-4), theory.smoothed_slope(away, 0.0), atol=1e-12)
    with pytest.raises(ValueError, match="not possible"):
        theory.smoothed(away, -1.0)


@given(st.floats(-3, 3), st.floats(0.01, 2))
def test_smoothed_activation_is_symmetric(z, s):
    point = torch.tensor(z, dtype=torch.float64)
    total = theory.smoothed(point, s) + theory.smoothed(1 - point, s)
    assert float(total) == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=200)
@given(st.data())
def test_good_network_outputs_the_label(data):
    k = data.draw(st.integers(1, 12))
    positive = tuple(sorted(data.draw(st.sets(st.integers(0, k)))))
    mu = data.draw(st.floats(0, k))
    net = theory.good_network(k, positive, mu, 5.0)
    counts = torch.arange(k + 1, dtype=torch.float64)
    labels = torch.tensor([1.0 if c in positive else -1.0 for c in range(k + 1)], dtype=torch.float64)
    assert torch.allclose(net((counts - mu) / 5.0), labels, atol=1e-9)
    assert len(net.a) == 3 * (k + 1)
    assert float(net.a.abs().max()) <= 32 * k + 1e-9
    assert 1 / (32 * k) - 1e-12 <= float(net.b.abs().min())
    assert float(net.b.abs().max()) <= 0.5 + 1e-12
    inside = net.w_scale * (counts - mu).unsqueeze(1) / 5.0 + net.b
    assert float(inside.abs().max()) <= 1 + 1e-12


def test_general_good_network_has_doubled_margins():
    net = theory.good_network(3, (1, 3), 1.5, 4.0, general=True)
    counts = torch.arange(4, dtype=torch.float64)
    labels = torch.tensor([-1.0, 1.0, -1.0, 1.0], dtype=torch.float64)
    assert (labels * net((counts - 1.5) / 4.0) >= 1.0).all()
    # The source prints |a*| ≤ 64k. That is right for hats centred on the counts; the shifted hats, which a mean on a
    # half-integer needs, are twice as high and reach 128k.
    assert float(net.a.abs().max()) == 128 * 3
    assert float(theory.good_network(3, (1, 3), 1.75, 4.0, general=True).a.abs().max()) == 64 * 3
    assert float(net.b.abs().min()) >= 1 / (64 * 3)
    assert float(net.b.abs().max()) <= 0.25 + 1e-12
    assert theory.general_condition(3, 1e-3, 100, 0.5, 20, 4.0)
    assert not theory.general_condition(3, 5.0, 100, 0.5, 20, 4.0)


def test_good_network_refuses_counts_beyond_k():
    with pytest.raises(ValueError, match="not within"):
        theory.good_network(3, (5,), 1.0, 1.0)


def test_parities_are_orthogonal_and_bessel_holds():
    D, k, N = 10, 3, 40
    bits = torch.tensor(list(itertools.product([0, 1], repeat=D)), dtype=torch.float64)
    sets = list(itertools.combinations(range(D), k))
    parities = torch.stack([1 - 2 * (bits[:, list(s)].sum(1) % 2) for s in sets], 1)
    gram = parities.T @ parities / len(bits)
    assert torch.equal(gram, torch.eye(len(sets), dtype=torch.float64))
    features = torch.rand(len(bits), N, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 2 - 1
    average = theory.bessel_average(features, parities)
    assert 0 < float(average) <= N / math.comb(D, k)
    # The parities themselves as features reach the bound.
    assert float(theory.bessel_average(parities[:, :N], parities)) == pytest.approx(N / len(sets))
    with pytest.raises(ValueError, match=r"\[−1, 1\]"):
        theory.bessel_average(2 * parities, parities)


def test_bounds_at_the_default_sizes():
    assert theory.fixed_feature_bound(0.5, 600, 1.0, 5, 100) < 0
    assert theory.bessel_bound(0.5, 600, 1.0, 5, 100) == pytest.approx(0.5 * (1 - 0.002823), rel=1e-3)
    assert theory.query_bound(100, 5) == pytest.approx(211, abs=1)
    with pytest.raises(ValueError, match="odd k"):
        theory.fixed_feature_bound(0.5, 600, 1.0, 4, 100)
    with pytest.raises(ValueError, match="odd k"):
        theory.fixed_feature_bound(0.5, 600, 1.0, 5, 50)


@pytest.mark.parametrize(("k", "best"), [(3, 0.8125), (5, 0.84375), (7, 0.8086)])
def test_reference_accuracies(k, best):
    problem = PatternProblem(50, 40, k, label_counts("parity", k))
    labels = problem.labels_of(torch.arange(k + 1))
    assert theory.count_threshold_accuracy(problem.count_law, labels) == pytest.approx(best, abs=1e-4)
    uniform = PatternProblem(50, 40, 5, label_counts("parity", 5), "uniform")
    assert theory.count_threshold_accuracy(uniform.count_law, uniform.labels_of(torch.arange(6))) == 22 / 32
    assert theory.structured_part_accuracy(0.5) == 0.75


def test_expected_angle_at_the_default_sizes():
    assert theory.cosine_of_tangent(theory.expected_tangent(5, 100, 50_000, 0.5, 0.25)) == pytest.approx(
        0.99924, abs=1e-5
    )
    assert theory.cosine_of_tangent(theory.expected_tangent(5, 400, 2_000, 0.5, 0.25)) == pytest.approx(
        0.9293, abs=1e-4
    )


def test_scales_need_a_positive_correlation():
    assert theory.initial_scales(5, 0.25, 5.0) == (0.2, 0.04, 4.0)
    assert theory.first_step_size(5, 300, 0.25, 5.0) == pytest.approx(2.3e-9, rel=0.02)
    for function in (lambda: theory.initial_scales(5, 0.0, 5.0), lambda: theory.first_step_size(5, 300, -0.1, 5.0)):
        with pytest.raises(ValueError, match="γ"):
            function()


def test_online_bound_on_random_convex_functions():
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        steps, dim, eta = 40, 6, 0.02
        slopes = torch.randn(steps, dim, generator=generator, dtype=torch.float64)
        offsets = torch.randn(steps, generator=generator, dtype=torch.float64)
        theta = torch.randn(dim, generator=generator, dtype=torch.float64)
        start, losses, norms = theta.clone(), [], []
        for slope, offset in zip(slopes, offsets, strict=True):
            value = slope @ theta + offset
            gradient = slope * (value > 0)
            losses.append(float(value.clamp(min=0)))
            norms.append(float(gradient.norm()))
            theta = theta - eta * gradient
        reference = torch.randn(dim, generator=generator, dtype=torch.float64)
        compared = float((slopes @ reference + offsets).clamp(min=0).mean())
        bound = theory.online_bound(compared, float(reference.norm()), float(start.norm()), eta, torch.tensor(norms))
        assert sum(losses) / steps <= bound + 1e-12


def test_typical_initialisation_is_typical():
    q = 0.2 * torch.randn(1000, 95, generator=torch.Generator().manual_seed(0))
    assert theory.typical_initialisation(q, 0.2, 5, 300).double().mean() > 0.98
    assert not theory.typical_initialisation(3 * q, 0.2, 5, 300).any()


def test_error_scales_shrink_with_what_they_should():
    assert theory.gradient_error_scale(5, 400, 300, 0.1, 5.0) < theory.gradient_error_scale(5, 100, 300, 0.1, 5.0)
    assert theory.second_error_scale(1e-9, 4.0, 5, 0.25, 1.0, 5.0, 0.09) < 1e-6
    assert theory.final_loss_order(2, 10**12, 10**16) < theory.final_loss_order(2, 10**9, 10**12)
