"""The probe of feature weights: the theory's numbers on its own optima, samples on any encoder, leakage, refusals."""

from __future__ import annotations

import math

import pytest
import torch

from assay import lab
from assay.studies.universality_tradeoff import theory
from assay.studies.universality_tradeoff.problem import LinearTasks
from assay.studies.universality_tradeoff.weights.learners import feature_weights
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


@pytest.mark.parametrize("build", ["canonical", "superposed"])
@pytest.mark.parametrize("private", [0.1, 0.5, 1.0])
def test_optima_have_the_numbers_of_the_theory(build, private):
    problem = LinearTasks(2, 5, 3)
    alpha, beta = theory.even_weights(3)
    encoder = theory.superposed(problem) if build == "superposed" else theory.canonical(problem, (1.0, *[beta] * 3))
    basis = problem.basis(SEEDS)
    found = feature_weights(problem, encoder @ basis.mT, basis, task=1, private=private, labels=10)
    ones = torch.ones(2, dtype=torch.float64)
    torch.testing.assert_close(found.shared, alpha * ones)
    torch.testing.assert_close(found.private, beta * ones)
    assert float(torch.stack([found.off_diagonal, found.leakage]).max()) < 1e-12
    torch.testing.assert_close(found.norm, theory.predictor_norm(alpha, beta, 1 - private, private) * ones)
    leading = theory.leading_complexity(problem, alpha, beta, private, 10)
    torch.testing.assert_close(found.leading, leading * ones)
    torch.testing.assert_close(found.bound, theory.risk_bound(leading, 10) * ones)


def test_an_encoder_with_leakage_is_probed_as_samples_say():
    """B by pseudo-inverses of the features' map for many labels, E‖φ‖² by draws with unequal variances."""
    problem = LinearTasks(2, 4, 2, 3, private_scales=(2.0, 0.5), spurious_scales=(1.0, 0.3))
    basis = problem.basis(SEEDS)
    encoder = SEEDS.normal("encoder", 9, problem.dim)
    found = feature_weights(problem, encoder, basis, task=1, private=0.3, labels=7)
    assert float(found.leakage.min()) > 0.5
    turned = encoder @ basis
    own = turned[..., problem.own(1)]
    truth = problem.label_weights(SEEDS, "labels", 0.3, draws=20_000)
    exact = truth @ torch.linalg.pinv(own)  # uᵀ WM = u* on the task's features
    torch.testing.assert_close(exact @ own, truth)
    torch.testing.assert_close(found.norm, exact.square().sum(-1).mean(1).sqrt(), rtol=0.02, atol=0)
    drawn = problem.pairs(SEEDS, "inputs", 40_000, task=1)[0] @ turned.mT
    expected = found.norm * (drawn.square().sum(-1).mean(1) / 7).sqrt()
    torch.testing.assert_close(found.leading, expected, rtol=0.02, atol=0)


def test_a_feature_without_weight_needs_an_infinite_predictor():
    problem = LinearTasks(2, 4, 2)
    basis = problem.basis(SEEDS)
    encoder = theory.canonical(problem, (1.0, 1.0, 0.0)) @ basis.mT
    known, lacking = (feature_weights(problem, encoder, basis, task=t, private=0.5, labels=10) for t in (0, 1))
    assert bool(known.norm.isfinite().all())
    assert found_infinite(lacking)
    shared_only = feature_weights(problem, encoder, basis, task=1, private=0.0, labels=10)
    assert bool(shared_only.norm.isfinite().all())


def found_infinite(found):
    return all(bool((each == math.inf).all()) for each in (found.norm, found.leading, found.bound))


def test_refusals():
    problem = LinearTasks(2, 4, 2)
    basis = problem.basis(SEEDS)
    encoder = theory.canonical(problem, (1.0, 0.5, 0.5)) @ basis.mT
    for change, words in (
        ({"task": 2}, "tasks are numbered from 0 to 1"),
        ({"private": 1.5}, r"a share in \[0, 1\]"),
        ({"labels": 0}, "at least one label"),
        ({"weights": encoder[..., :3]}, "of inputs of dimension 10"),
    ):
        given = {"weights": encoder, "basis": basis, "task": 0, "private": 0.5, "labels": 10} | change
        with pytest.raises(ValueError, match=words):
            feature_weights(problem, **given)


def test_trained_encoders_are_put_through_the_probe():
    for arm, expected in (("mixture", theory.predictor_norm(1, 1 / 3, 0.5, 0.5)), ("single", 1.0)):
        m = lab.try_arm("universality-tradeoff", arm, preset="smoke", seeds=2)
        norms = m.final("predictor_norm", arm=arm).array
        assert norms == pytest.approx(expected, rel=0.2)
        assert (m.final("trained_leading", arm=arm).array < m.final("trained_bound", arm=arm).array).all()
