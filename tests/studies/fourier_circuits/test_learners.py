from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from assay.methods.modular_margin import build_max_margin, network_logits
from assay.studies.fourier_circuits.learners import Network, Recipe, look, margin_ratios, mean_loss
from assay.studies.fourier_circuits.problem import ModularAddition
from assay.studies.fourier_circuits.theory import sparsity
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
PROBLEM = ModularAddition(5, 3)
START = Network.initial(PROBLEM, 12, SEEDS)
QUICK = Recipe(steps=20, rate=0.02, penalty=1e-3, batch=32, every=5)


def last(recipe: Recipe, seeds: Seeds = SEEDS, start: Network = START, train: torch.Tensor | None = None) -> Network:
    flat = PROBLEM.split(seeds, 62)[0] if train is None else train
    return list(recipe.train(PROBLEM, start, flat, seeds))[-1][1]


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_look_ups_and_their_gradient_are_those_of_the_formula(k):
    problem = ModularAddition(5, k)
    net = Network.initial(problem, 6, SEEDS)
    net = Network(net.U.requires_grad_(True), net.W.requires_grad_(True))
    inputs = problem.inputs(problem.split(SEEDS, 10)[0])
    ours = net(inputs)
    slow = torch.stack([network_logits(net.U[i], net.W[i], inputs[i]) for i in range(3)])
    torch.testing.assert_close(ours, slow)
    weights = SEEDS.normal("weights", 10, 5)
    fast_slopes = torch.autograd.grad((ours * weights).sum(), (net.U, net.W), retain_graph=True)
    slow_slopes = torch.autograd.grad((slow * weights).sum(), (net.U, net.W))
    torch.testing.assert_close(fast_slopes, slow_slopes)


def test_initial_vectors_have_length_about_one():
    net = Network.initial(ModularAddition(97, 3), 200, SEEDS)
    assert float(net.U.norm(dim=2).mean()) == pytest.approx(1, abs=0.01)
    assert float(net.W.norm(dim=2).mean()) == pytest.approx(1, abs=0.01)


def test_the_regulariser_is_the_norm_to_its_power():
    norms = START.squares.sqrt()
    total = norms.pow(4).sum(1)
    torch.testing.assert_close(Recipe(1, 0.1, 0.3, "norm").cost(START), 0.3 * total**0.25)
    torch.testing.assert_close(Recipe(1, 0.1, 0.3, "sum").cost(START), 0.3 * total)


def test_one_step_is_adam_on_the_stated_objective():
    recipe = Recipe(steps=1, rate=0.01, penalty=0.1, regulariser="norm", warmup=1)
    train = PROBLEM.split(SEEDS, 62)[0]
    after = last(recipe, train=train)
    U, W = START.U.clone().requires_grad_(True), START.W.clone().requires_grad_(True)
    net = Network(U, W)
    inputs = PROBLEM.inputs(train)
    loss = torch.stack([cross_entropy(net(inputs)[i], PROBLEM.labels(inputs)[i]) for i in range(3)])
    (loss + recipe.cost(net)).sum().backward()
    # Adam's first step has the length of the rate, against the sign of the gradient; its ε of 1e-8 shortens it where
    # the gradient is small, by more than rounding.
    for moved, begin, slope in ((after.U, START.U, U.grad), (after.W, START.W, W.grad)):
        torch.testing.assert_close(moved, begin - 0.01 * slope / (slope.abs() + 1e-8), rtol=0, atol=1e-12)


def test_weight_decay_is_decoupled():
    recipe = Recipe(steps=1, rate=0.01, penalty=0.5, regulariser="decay", warmup=1)
    plain = replace(recipe, penalty=0.0)
    torch.testing.assert_close(last(recipe).U, last(plain).U - 0.01 * 0.5 * START.U)


@pytest.mark.parametrize("regulariser", ["norm", "sum", "decay"])
def test_a_seed_trains_the_same_in_any_company(regulariser):
    recipe = replace(QUICK, regulariser=regulariser)
    alone = Seeds((1,), dtype=torch.float64)
    ours = last(recipe, alone, Network.initial(PROBLEM, 12, alone))
    torch.testing.assert_close(last(recipe).U[1:2], ours.U, rtol=1e-9, atol=1e-11)


def test_looks_come_when_asked_and_the_start_is_not_touched():
    before = START.U.clone()
    steps = [step for step, _ in QUICK.train(PROBLEM, START, PROBLEM.split(SEEDS, 62)[0], SEEDS)]
    assert steps == [0, 5, 10, 15, 20]
    assert torch.equal(START.U, before)


def test_a_look_is_the_obvious_loop():
    flat = PROBLEM.split(SEEDS, 40)[0]
    seen = look(PROBLEM, START, flat)
    inputs = PROBLEM.inputs(flat)
    logits, labels = START(inputs), PROBLEM.labels(inputs)
    torch.testing.assert_close(seen.accuracy, (logits.argmax(-1) == labels).double().mean(1))
    torch.testing.assert_close(seen.loss, mean_loss(logits, labels))
    for i in range(3):
        found = [
            float(row[y] - max(v for c, v in enumerate(row.tolist()) if c != y))
            for row, y in zip(logits[i], labels[i].tolist(), strict=True)
        ]
        assert float(seen.least_margin[i]) == pytest.approx(min(found))
        assert float(seen.mean_margin[i]) == pytest.approx(sum(found) / 40)


def test_the_constructed_network_measures_as_the_optimum():
    U, W = (part.unsqueeze(0) for part in build_max_margin(7, 3))
    problem, net = ModularAddition(7, 3), Network(3 * U, 3 * W)
    ratios = margin_ratios(net, look(problem, net, torch.arange(343).unsqueeze(0)))
    for value in ratios.values():
        assert float(value) == pytest.approx(1, rel=1e-9)
    found = sparsity(net.U, net.W)
    ones = ["power_mean", "power_median", "power_by_norm", "power_weighted", "power_low"]
    ones += ["frequencies", "frequency_ratio", "shared_frequency", "alive"]
    for name in ones:
        assert float(found[name]) == pytest.approx(1), name
    assert float(found["phase_residual"]) == pytest.approx(0, abs=1e-9)


def test_unknown_recipes_are_refused():
    with pytest.raises(ValueError, match="unknown regulariser"):
        replace(QUICK, regulariser="l1")
    with pytest.raises(ValueError, match="at least 1"):
        replace(QUICK, steps=0)
