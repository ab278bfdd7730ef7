from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from assay.methods.modular_margin import build_max_margin, max_margin, network_logits
from assay.studies.fourier_circuits.full_data.theory import regularised_gap, regularised_optimum, vanishing_penalty
from assay.studies.fourier_circuits.learners import Network, Recipe, look, margin_ratios
from assay.studies.fourier_circuits.problem import ModularAddition
from assay.training.seeds import Seeds


def minimise(p: int, k: int, penalty: float) -> tuple[float, float, float]:
    """The convex problem over the frequencies' weights, solved by a general method: (value, margin, mass)."""
    half = (p - 1) // 2
    waves = np.cos(2 * np.pi / p * (np.outer(np.arange(p), np.arange(1, half + 1)) % p))
    price = p / ((p - 1) * max_margin(p, k))  # norm^{k+1} that one unit of a cosine costs

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        logits = waves @ v
        weights = np.exp(logits - logits.max())
        loss = math.log(weights.sum()) + logits.max() - logits[0]
        return loss + penalty * price * v.sum(), waves.T @ (weights / weights.sum()) - waves[0] + penalty * price

    start = np.random.default_rng(0).uniform(0.5, 1.5, half)
    bounds, options = [(0, None)] * half, {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000}
    found = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    logits = waves @ found.x
    return float(found.fun), float(logits[0] - logits[1:].max()), float(price * found.x.sum())


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([(7, 3), (11, 2), (9, 2), (15, 2), (5, 4)]), st.floats(1e-6, 0.95))
def test_the_regularised_minimum_is_the_closed_form_at_every_strength(pair, share):
    p, k = pair
    penalty = share * vanishing_penalty(p, k)
    value, margin, mass = minimise(p, k, penalty)
    assert regularised_optimum(p, k, penalty) == pytest.approx(value, rel=1e-7)
    assert regularised_gap(p, k, penalty) == pytest.approx(margin, rel=1e-3)
    assert margin / mass == pytest.approx(max_margin(p, k), rel=1e-3), "the normalised margin is γ* at any λ"


def test_the_scaled_construction_is_stationary_for_the_regularised_objective():
    p, k, penalty = 5, 3, 1e-3
    U, W = build_max_margin(p, k, "thirds")
    scale = (regularised_gap(p, k, penalty) / max_margin(p, k)) ** (1 / (k + 1))
    U, W = (scale * U).requires_grad_(True), (scale * W).requires_grad_(True)
    inputs = torch.cartesian_prod(*[torch.arange(p)] * k)
    loss = torch.nn.functional.cross_entropy(network_logits(U, W, inputs), inputs.sum(1) % p)
    objective = loss + penalty * (U.square().sum((0, 1)) + W.square().sum(1)).pow((k + 1) / 2).sum()
    assert float(objective.detach()) == pytest.approx(regularised_optimum(p, k, penalty), rel=1e-12)
    for gradient in torch.autograd.grad(objective, (U, W)):
        assert float(gradient.abs().max()) < 1e-14
    assert regularised_gap(p, k, 1.01 * vanishing_penalty(p, k)) == 0
    assert regularised_optimum(p, k, 1.0) == pytest.approx(math.log(p))


def test_training_on_all_data_reaches_the_global_minimum():
    """The theory's own recipe at p = 5, k = 2: objective and normalised margin as the closed forms say."""
    problem = ModularAddition(5, 2)
    seeds = Seeds((0, 1, 2))
    recipe = Recipe(steps=700, rate=2e-2, penalty=1e-3, regulariser="sum", every=700)
    everything = torch.arange(25).repeat(3, 1)
    start = Network.initial(problem, 32, seeds)
    net = list(recipe.train(problem, start, everything, seeds))[-1][1]
    seen = look(problem, net, everything)
    optimum = regularised_optimum(5, 2, 1e-3)
    objective = seen.loss + recipe.cost(net)
    assert bool((objective >= optimum * (1 - 1e-6)).all())
    assert bool((objective <= optimum * 1.01).all())
    assert float(margin_ratios(net, seen)["margin_ratio"].min()) > 0.9
