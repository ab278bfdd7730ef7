from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.probes.detectors import singleton_detectors
from assay.studies.label_granularity import theory
from assay.studies.label_granularity.dynamics import (
    Detectors,
    firing_counts,
    own_features,
    own_outputs,
    residual_for,
)
from assay.studies.label_granularity.learners import Initialisation, TheorySGD, Training
from assay.studies.label_granularity.problem import HierarchicalPatches
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
CLEAN = HierarchicalPatches(dim=24, subclasses=4, noise=1e-7, distractors=2)
INIT = Initialisation(8000)


def test_normal_tail_and_the_printed_bound():
    assert theory.normal_tail(3) == pytest.approx(1.3499e-3, rel=1e-4)
    assert theory.printed_upper_tail(3) < theory.normal_tail(3)  # so it bounds nothing
    assert 2 * theory.printed_upper_tail(3) > theory.normal_tail(3)


def test_expected_detectors_against_samples():
    """40 × 24 counts: the mean is within 4 standard errors of the formula."""
    low, high = theory.thresholds(2.5, 24)
    assert low < 2.5 < high
    weights = torch.randn(40, 2000, 24, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    counts = singleton_detectors(weights, torch.eye(24, dtype=torch.float64), high, low).sum(1).double()
    expected = theory.expected_detectors(2000, 2.5, 24)
    assert float(counts.mean()) == pytest.approx(expected, abs=4 * math.sqrt(expected / counts.numel()))


@pytest.mark.parametrize(("d", "fine", "value"), [(50, False, 0.13), (10_000, False, 0.13), (50, True, 0.17),
                                                   (10**9, False, 0.27), (10**9, True, 0.37)])  # fmt: skip
def test_the_sources_sizes_leave_less_than_one_detector(d, fine, value):
    assert theory.theory_detectors(d, 0.09, fine=fine) == pytest.approx(value, abs=0.03)


@pytest.mark.parametrize("labels", ["coarse", "fine"])
def test_first_updates(labels):
    classes = 2 if labels == "coarse" else 8
    start = INIT.draw(SEEDS, classes, CLEAN).network
    detectors = Detectors.at(start, CLEAN, labels, INIT)
    (_, _, update), *_ = Training(CLEAN, sgd=TheorySGD(0.01)).run(start, SEEDS, 1, residual_for(labels, CLEAN))
    common, subclass = detectors.growth(update.network)
    formula = theory.coarse_first_step if labels == "coarse" else theory.fine_first_step
    predicted = formula(0.01, 4, 6, 24)
    torch.testing.assert_close(common, torch.full_like(common, predicted.common), rtol=1e-2, atol=0)
    torch.testing.assert_close(subclass, torch.full_like(subclass, predicted.subclass), rtol=1e-2, atol=0)
    assert predicted.ratio == pytest.approx(4 if labels == "coarse" else 4 / 7)


def test_noise_of_the_first_update():
    """Every detector gets the same noise, so that each seed and class has one draw of 14 coordinates and more."""
    problem = HierarchicalPatches(dim=64, subclasses=2, noise=1e-3, distractors=2)
    init = Initialisation(4000, threshold=2.5)
    seeds = Seeds(tuple(range(12)), dtype=torch.float64)
    start = init.draw(seeds, 2, problem).network
    detectors = Detectors.at(start, problem, "coarse", init)
    (_, _, update), *_ = Training(problem, sgd=TheorySGD(0.01)).run(start, seeds, 1, residual_for("coarse", problem))
    sides = update.movement[..., problem.features :]
    common, subclass = sides[detectors.common].std(), sides[detectors.subclass[..., 0]].std()
    assert float(common) == pytest.approx(theory.first_step_noise(0.01, 1e-3, 6, 24, 16), rel=0.15)
    assert float(subclass) == pytest.approx(theory.first_step_noise(0.01, 1e-3, 6, 24, 16, k=2), rel=0.2)


def test_outputs_decompose_into_detectors():
    start = INIT.draw(SEEDS, 2, CLEAN).network
    detectors = Detectors.at(start, CLEAN, "coarse", INIT)
    *_, (_, _, update) = Training(CLEAN).run(start, SEEDS, 60, residual_for("coarse", CLEAN))
    easy = CLEAN.sample(SEEDS, "easy", 4, compact=True)
    fires = firing_counts(update.network, CLEAN, "coarse")
    answers = torch.relu(update.network.projections(CLEAN.features) + update.network.biases.unsqueeze(-1))
    both = zip(own_features(answers, CLEAN, "coarse"), (detectors.common, detectors.subclass), strict=True)
    common, subclass = ((part * mask).flatten(2).sum(-1) / mask.flatten(2).sum(-1) for part, mask in both)
    predicted = theory.output_decomposition(6, common, subclass, *fires)
    torch.testing.assert_close(own_outputs(update.network, easy, "coarse"), predicted, rtol=0.05, atol=0)


def test_biases_fall_by_the_rate_and_superclasses_stay_balanced():
    start = INIT.draw(SEEDS, 2, CLEAN).network
    detectors = Detectors.at(start, CLEAN, "coarse", INIT)
    *_, (_, _, update) = Training(CLEAN, sgd=TheorySGD(0.05, 0.03)).run(start, SEEDS, 30, residual_for("coarse", CLEAN))
    fallen = (update.network.biases - start.biases)[detectors.common]
    grown = torch.stack([(update.network.weights - start.weights)[:, y, :, y] for y in (0, 1)], 1)[detectors.common]
    torch.testing.assert_close(fallen / grown, torch.full_like(fallen, -0.03), rtol=1e-3, atol=0)
    by_class = [grown_y[mask].mean() for grown_y, mask in (
        ((update.network.weights - start.weights)[:, y, :, y], detectors.common[:, y]) for y in (0, 1))]  # fmt: skip
    assert 0.5 < float(by_class[1] / by_class[0]) < 2


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


def test_the_hard_rule_predicts_every_sample_without_noise():
    problem = HierarchicalPatches(dim=24, subclasses=4, noise=0.0, strong_noise=0.0, distractors=3)
    start = INIT.draw(SEEDS, 2, problem).network
    *_, (_, _, update) = Training(problem).run(start, SEEDS, 20, residual_for("coarse", problem))
    hard = problem.sample(SEEDS, "hard", 30, hard=True)
    scores = update.network.outputs(hard.patches)
    own, other = (scores.gather(-1, index.view(1, -1, 1).expand(3, -1, 1)).squeeze(-1)
                  for index in (hard.superclass, 1 - hard.superclass))  # fmt: skip
    rule = theory.hard_rule(hard, update.network.projections(problem.features), update.network.biases)
    assert float((rule == (own <= other)).double().mean()) > 0.99
    assert 0.1 < float(rule.double().mean()) < 0.9  # both outcomes occur


def test_critical_number_of_subclasses():
    assert theory.critical_subclasses(HierarchicalPatches()) == pytest.approx(3)
    assert theory.critical_subclasses(HierarchicalPatches(distractors=2)) == pytest.approx(6)
    assert theory.critical_subclasses(HierarchicalPatches(distractors=0)) == math.inf


def test_untrained_neurons_on_strong_noise():
    """200,000 neurons: the standard error of the mean is below 1 %."""
    for norm in (1.0, 5.0):
        draws = torch.randn(200_000, generator=torch.Generator().manual_seed(2), dtype=torch.float64) * norm
        mean = float(torch.relu(draws - 2.0).mean())
        assert theory.untrained_response(norm, 2.0) == pytest.approx(mean, rel=0.05)
    assert theory.untrained_response(0.16, 3.0) < 1e-70
    assert theory.untrained_response(0.0, 3.0) == 0


def test_small_lemmas():
    for n in (2, 5, 50, 1000):
        assert 0 <= theory.harmonic_remainder(n) <= 1 / (8 * n**2)
    low, high = theory.strong_noise_scales(8, 6)
    assert low == pytest.approx(0.75)
    assert high == pytest.approx(6 / math.sqrt(2 * math.log(16)))
    norms = torch.randn(5000, 10, generator=torch.Generator().manual_seed(3)).square().sum(1)
    assert float((norms >= 50).double().mean()) <= math.exp(-10) + 1e-3
    pairs = torch.randn(2, 20_000, 30, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    inner = (pairs[0] * pairs[1]).sum(-1)
    assert float((inner >= 0.5 * math.sqrt(30)).double().mean()) >= 0.25


def test_the_regime_is_out_of_reach():
    report = theory.regime_report(HierarchicalPatches(), eta=0.05, sigma0=1e-4, batch=64)
    met = {row.condition: row.met for row in report}
    assert not met["s* ≥ log¹⁵d"]
    assert met["k ≥ polylog d"]
    assert met["ι ≤ 1/polylog d"]
    assert len(report) == 13
