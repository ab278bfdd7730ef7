from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from assay.studies.label_granularity.coarse import theory
from assay.studies.label_granularity.coarse.learners import decomposed_outputs, firing_counts, first_phase, own_outputs
from assay.studies.label_granularity.learners import Initialisation, PatchNetwork, TheorySGD, Training, residual_for
from assay.studies.label_granularity.problem import HierarchicalPatches
from assay.studies.label_granularity.theory import Detectors
from assay.training import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
CLEAN = HierarchicalPatches(dim=24, subclasses=4, noise=1e-7, distractors=2)
INIT = Initialisation(8000)


def test_outputs_decompose_into_detectors():
    start = INIT.draw(SEEDS, 2, CLEAN).network
    detectors = Detectors.at(start, CLEAN, "coarse", INIT)
    *_, (_, _, update) = Training(CLEAN).run(start, SEEDS, 60, residual_for("coarse", CLEAN))
    easy = CLEAN.sample(SEEDS, "easy", 4, compact=True)
    predicted = decomposed_outputs(update.network, detectors, easy)
    torch.testing.assert_close(own_outputs(update.network, easy, "coarse"), predicted, rtol=0.05, atol=0)


def test_an_output_by_hand():
    """Two common patches that three neurons answer by 0.5, four subclass patches that one answers by 0.25."""
    values = [torch.tensor([x], dtype=torch.float64) for x in (2.0, 4.0, 0.5, 0.25, 3.0, 1.0)]
    assert theory.output_decomposition(*values).tolist() == [2 * 0.5 * 3 + 4 * 0.25 * 1]


def test_biases_fall_by_the_rate_and_superclasses_stay_balanced():
    start = INIT.draw(SEEDS, 2, CLEAN).network
    detectors = Detectors.at(start, CLEAN, "coarse", INIT)
    *_, (_, _, update) = Training(CLEAN, sgd=TheorySGD(0.05, 0.03)).run(start, SEEDS, 30, residual_for("coarse", CLEAN))
    moved = update.network.weights - start.weights
    fallen = (update.network.biases - start.biases)[detectors.common]
    grown = torch.stack([moved[:, y, :, y] for y in (0, 1)], 1)[detectors.common]
    torch.testing.assert_close(fallen / grown, torch.full_like(fallen, -0.03), rtol=1e-3, atol=0)
    for fall in detectors.bias_falls(update.network):
        torch.testing.assert_close(fall, torch.full_like(fall, 0.03), rtol=1e-3, atol=0)
    balance = detectors.balance(update.network)
    for seed in range(3):
        first, second = (float(moved[seed, y, :, y][detectors.common[seed, y]].mean()) for y in (0, 1))
        assert float(balance[seed]) == pytest.approx(min(first / second, second / first))
    assert bool((balance > 0.5).all())


def test_a_movement_to_the_side_lowers_biases_by_more_than_the_growth_asks_for():
    start = INIT.draw(SEEDS, 2, CLEAN).network
    detectors = Detectors.at(start, CLEAN, "coarse", INIT)
    moved = torch.zeros_like(start.weights)
    moved[..., : CLEAN.features], moved[..., -1] = 1.0, 3.0
    aside = PatchNetwork(start.weights + moved, start.biases - 0.03 * torch.linalg.vector_norm(moved, dim=-1))
    for fall in detectors.bias_falls(aside):
        assert bool((fall > 1.5 * 0.03).all())


def test_the_first_phase_ends_in_the_predicted_step():
    found = first_phase(CLEAN, replace(INIT, scale=1e-6), 0.05, SEEDS)
    late = found["t0"] - found["predicted_t0"]
    assert bool(((late >= 0) & (late < 1.2)).all())
    assert bool((found["t0"] > 10).all())
    alone = first_phase(CLEAN, replace(INIT, scale=1e-6), 0.05, replace(SEEDS, values=(1,)))
    torch.testing.assert_close(alone["t0"], found["t0"][1:2])


def test_phase_times_are_those_of_the_simulation():
    start = INIT.draw(SEEDS, 2, CLEAN).network
    common, subclass = firing_counts(start, CLEAN, "coarse")
    predicted = theory.coarse_phase_time(2e-4, 4, 6, 24, 24, common, subclass).amin(1)
    reached = torch.zeros(3)
    for step, _, update in Training(CLEAN, sgd=TheorySGD(2e-4)).run(start, SEEDS, 40, residual_for("coarse", CLEAN)):
        reached = torch.where((update.outputs.amax((1, 2)) >= 1 / 24) & (reached == 0), step - 1.0, reached)
    assert bool((reached > 3).all())
    torch.testing.assert_close(reached.double(), predicted, rtol=0.35, atol=1.5)


def test_the_logarithmic_law_and_its_corrected_constant():
    start = INIT.draw(SEEDS, 2, CLEAN).network
    easy = CLEAN.sample(SEEDS, "easy", 4, compact=True)
    steps, outputs = [], []
    for step, _, update in Training(CLEAN).run(start, SEEDS, 160, residual_for("coarse", CLEAN)):
        if step >= 80 and step % 10 == 0:
            steps.append(step)
            outputs.append(own_outputs(update.network, easy, "coarse"))
    common, subclass = firing_counts(update.network, CLEAN, "coarse")
    corrected = theory.log_law_constant(0.05, 4, 6, 24, 0.05, common, subclass)
    for seed in range(3):
        for y in range(2):
            slope = theory.fitted_constant(np.array(steps), np.array([float(o[seed, y]) for o in outputs]))
            assert slope / float(corrected[seed, y]) == pytest.approx(1, abs=0.1)
            assert slope > 20 * theory.printed_log_law_constant(0.05, 4, 6, 24)


def test_the_law_solves_its_difference_equation():
    t = np.arange(0, 2000)
    exact = [1.0]
    for _ in t[1:]:
        exact.append(exact[-1] + 0.01 * math.exp(-exact[-1]))
    np.testing.assert_allclose(theory.log_law(t, 0.01, 1.0), exact, atol=5e-3)
    assert theory.fitted_constant(t, theory.log_law(t, 0.01, 1.0)) == pytest.approx(0.01)


def test_the_remainder_of_the_harmonic_sum():
    for n in (2, 5, 50, 1000):
        assert 0 <= theory.harmonic_remainder(n) <= 1 / (8 * n**2)
