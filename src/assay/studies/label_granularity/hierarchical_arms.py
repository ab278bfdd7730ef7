"""The arms on hierarchical patches: the start, coarse and fine training, the sweep of k, invariants, other labels."""

from __future__ import annotations

import math
from typing import Any

import torch

from assay.methods.granularity import max_readout

from . import theory
from .dynamics import (
    LABELS,
    Detectors,
    class_count,
    error_report,
    firing_counts,
    initialisation_of,
    own_outputs,
    problem_of,
    residual_for,
    rule_report,
    training_of,
    working_set,
)
from .invariants import invariants_over
from .learners import errors, max_readout_residual, superclass_of
from .problem import STRONG
from .study import study
from .twins import TWINS, twin_errors

_PROBLEM = ("dim", "patches", "subclasses", "feature_patches", "jitter", "noise", "distractors", "faint_low",
            "faint_high", "strong_noise", "counts")  # fmt: skip
_NETWORK = ("neurons", "threshold", "scale")
_SGD = ("rate", "bias_rate", "per_subclass")
_THEORY = _PROBLEM + _NETWORK + _SGD
_PART = 10_000  # neurons drawn at a time where only counts are wanted


def _test_sets(params: Any, problem: Any, seeds: Any) -> tuple[Any, Any]:
    compact = problem.counts == "exact"
    n = params.test_per_subclass
    easy, hard = (problem.sample(seeds, f"test {h}", n, hard=h, compact=compact) for h in (False, True))
    return easy, hard


@study.arm("initial", over={"m": lambda p: p.initial_neurons}, uses=("dim", "subclasses", "threshold"),
           working_set=lambda p: 4.0 * _PART * p.dim)  # fmt: skip
def initial(params, seeds, record, *, m):
    """Detectors of every dictionary vector and its response before training, in one class of m neurons."""
    low, high = theory.thresholds(params.threshold, params.dim)
    counts, responses = 0.0, 0.0
    for part, size in enumerate([min(_PART, m - start) for start in range(0, m, _PART)]):
        weights = seeds.normal(f"initial neurons {part}", size, params.dim)
        single = (weights >= high) & ((weights >= low).sum(-1, keepdim=True) <= 1)
        counts = counts + single.sum(1).double()
        responses = responses + torch.relu(weights - params.threshold).sum(1).double()
    expected = theory.expected_detectors(m, params.threshold, params.dim)
    features = 2 * params.subclasses + 2
    record(mean_count=counts.mean(1), expected_count=expected, fewest=counts[:, :features].amin(1),
           relative_spread=counts.std(1) / counts.mean(1),
           response_ratio=responses[:, :2].mean(1) / responses[:, 2:features].mean(1))  # fmt: skip


_NEARLY_CLEAN = 1e-6  # of the noise: less than the gap between the thresholds of the detector sets


@study.arm("first-step", over={"labels": LABELS}, uses=_THEORY, dtype="float64", tolerance=1e-6,
           working_set=lambda p: 2 * working_set(p, "fine"))  # fmt: skip
def first_step(params, seeds, record, *, labels):
    """The first three updates with hardly any noise: are members of one detector set moved alike, and how far?"""
    problem = problem_of(params, noise=_NEARLY_CLEAN, counts="exact")
    init, training = initialisation_of(params), training_of(params, problem)
    start = init.draw(seeds, class_count(labels, problem), problem).network
    detectors = Detectors.at(start, problem, labels, init)
    formula = theory.coarse_first_step if labels == "coarse" else theory.fine_first_step
    predicted = formula(params.rate, problem.subclasses, problem.feature_patches, problem.patches)
    spreads = []
    for step, _, update in training.run(start, seeds, 3, residual_for(labels, problem)):
        spreads.append(detectors.spread(update.movement))
        if step == 1:
            common, subclass = detectors.growth(update.network)
            record(common_over_predicted=common / predicted.common, ratio_over_predicted=common / subclass /
                   predicted.ratio, subclass_over_predicted=subclass / predicted.subclass)  # fmt: skip
    record(spread_within_sets=torch.stack(spreads).amax(0))


def _looks(steps: int) -> set[int]:
    """The steps at which a run is looked at: dense at first, then every tenth."""
    return {*range(1, 11), *range(10, steps + 1, 10), steps} & set(range(steps + 1))


@study.arm("coarse", over={"setting": ["exact", "bernoulli", "jitter"]}, tolerance=0.02,
           uses=(*_THEORY, "coarse_steps", "test_per_subclass"),
           working_set=lambda p: working_set(p, "coarse"))  # fmt: skip
def coarse(params, seeds, record, *, setting):
    """Training on the two superclasses: errors, growth of common and subclass detectors, the logarithmic law."""
    problem, init = problem_of(params), initialisation_of(params)
    start = init.draw(seeds, 2, problem).network
    detectors, (easy, hard) = Detectors.at(start, problem, "coarse", init), _test_sets(params, problem, seeds)
    record(step=0, **error_report(start, easy, hard, "coarse"))
    looks = _looks(params.coarse_steps)
    for step, batch, update in training_of(params, problem).run(
        start, seeds, params.coarse_steps, residual_for("coarse", problem)
    ):
        if step not in looks:
            continue
        network = update.network
        _record_state(record, step, detectors, network, easy, hard, "coarse")
        right = batch.superclass.expand(len(seeds), -1)
        record(step=step, train_loss=torch.nn.functional.cross_entropy(
            update.outputs.mT, right, reduction="none").mean(1))  # fmt: skip
        outputs = own_outputs(network, easy, "coarse")
        for y, name in enumerate("+−"):
            record(step=step, at={"superclass": name}, own_output=outputs[:, y])
    counted = [count.double() for count in detectors.counts()]
    at_start = (counted[0], counted[1].mean(-1))
    for kind, (common, subclass) in (("firing", firing_counts(network, problem, "coarse")), ("initial", at_start)):
        for y, name in enumerate("+−"):
            constant = theory.log_law_constant(
                params.rate, problem.subclasses, problem.feature_patches, problem.patches, params.bias_rate,
                common[:, y], subclass[:, y],
            )  # fmt: skip
            record(at={"superclass": name, "counted": kind}, log_law_constant=constant)
    record(fewest_detectors=counted[1].flatten(1).amin(1), **rule_report(network, hard, problem))


def _record_state(record, step, detectors, network, easy, hard, labels):
    growth, answers = detectors.growth(network), detectors.responses(network)
    record(step=step, growth_common=growth[0], growth_subclass=growth[1], growth_ratio=growth[0] / growth[1],
           response_common=answers[0], response_subclass=answers[1],
           **error_report(network, easy, hard, labels))  # fmt: skip


@study.arm("fine", over={"setting": ["exact", "bernoulli"]}, tolerance=0.05,
           uses=(*_THEORY, "fine_steps", "finetune_steps", "test_per_subclass"),
           working_set=lambda p: working_set(p, "fine"))  # fmt: skip
def fine(params, seeds, record, *, setting):
    """Training on the subclasses with the maximum as read-out, what it has at T0, and finetuning afterwards."""
    problem, init = problem_of(params), initialisation_of(params)
    k, unit = problem.subclasses, params.rate * problem.feature_patches / (2 * problem.subclasses * problem.patches)
    start = init.draw(seeds, 2 * k, problem).network
    detectors, (easy, hard) = Detectors.at(start, problem, "fine", init), _test_sets(params, problem, seeds)
    training = training_of(params, problem)
    looks, before = _looks(params.fine_steps), (0.0, 0.0)
    reached = torch.full((len(seeds),), math.inf, dtype=torch.float64)
    lowest, highest, at_t0, prior = reached.clone(), -reached, {}, start
    for step, _, update in training.run(start, seeds, params.fine_steps, residual_for("fine", problem)):
        arrived = (update.outputs.amax((1, 2)) >= theory.OUTPUT_BOUND).cpu() & reached.isinf()
        reached[arrived] = step - 1
        growth = detectors.growth(update.network)
        moved = [(now - then).cpu() for now, then in zip(growth, before, strict=True)]
        running, coefficient, before = reached.isinf(), moved[0] / unit, growth
        lowest = torch.where(running, torch.minimum(lowest, coefficient), lowest)
        highest = torch.where(running, torch.maximum(highest, coefficient), highest)
        if step in looks:
            _record_state(record, step, detectors, update.network, easy, hard, "fine")
            record(step=step, growth_per_step_ratio=moved[0] / moved[1], common_coefficient=coefficient)
        if bool(arrived.any()) or step == params.fine_steps:
            for name, values in _at_t0(detectors, prior, easy, hard, problem).items():
                at_t0[name] = torch.where(arrived, values, at_t0.get(name, torch.full_like(values, math.nan)))
        prior = update.network
    never = reached.isinf()
    reached[never] = math.nan  # what is said about T0 has no value where the run ends before it
    common, subclass = (count.double() for count in detectors.counts())
    predicted = theory.fine_phase_time(params.rate, k, problem.feature_patches, problem.patches, common,
                                       subclass[..., 0]).amin(1).cpu()  # fmt: skip
    record(t0=reached, t0_reached=(~never).double(), predicted_t0=predicted,
           lowest_coefficient=lowest, highest_coefficient=highest,
           fewest_detectors=torch.minimum(common.amin(1), subclass.flatten(1).amin(1)), **at_t0)  # fmt: skip
    _finetune(params, seeds, record, problem, training, detectors, update.network, easy, hard)


def _at_t0(detectors, network, easy, hard, problem):
    """Errors at T0, and how much of the outputs common and subclass features make up."""
    found = {f"{name}_at_t0": value for name, value in error_report(network, easy, hard, "fine").items()}
    growth = detectors.growth(network)
    counts = [count.double().flatten(1).mean(1) for count in detectors.counts()]
    made = [problem.feature_patches * g * n for g, n in zip(growth, counts, strict=True)]
    found |= {
        "common_output_at_t0": made[0],
        "subclass_output_at_t0": made[1],
        "growth_ratio_at_t0": growth[0] / growth[1],
    }
    return {name: value.double().cpu() for name, value in found.items()}


def _finetune(params, seeds, record, problem, training, detectors, network, easy, hard):
    """Cross-entropy of the maxima on fresh easy samples; does any detector's response to its feature ever fall?"""
    mapped = superclass_of(problem.subclasses, seeds.device)
    before, least = network, torch.full((len(seeds),), math.inf, dtype=torch.float64)
    for _step, _, update in training.run(network, seeds, params.finetune_steps,
                                         lambda batch: max_readout_residual(batch.superclass, mapped),
                                         first=params.fine_steps):  # fmt: skip
        least = torch.minimum(least, detectors.least_change(before, update.network).double().cpu())
        before = update.network
    for name, samples in (("easy", easy), ("hard", hard)):
        scores = max_readout(update.network.outputs(samples.patches), mapped)
        record(**{f"finetuned_{name}_error": errors(scores, samples.superclass)})
    record(least_response_change=least)


@study.arm("sweep", over={"k": lambda p: p.sweep}, tolerance=0.05,
           uses=(*_THEORY, "sweep_distractors", "sweep_steps", "test_per_subclass"),
           working_set=lambda p: working_set(p, "coarse"))  # fmt: skip
def sweep(params, seeds, record, *, k):
    """Coarse training for several numbers of subclasses, across the predicted k*."""
    problem = problem_of(params, subclasses=k, distractors=params.sweep_distractors)
    init = initialisation_of(params)
    start = init.draw(seeds, 2, problem).network
    easy, hard = _test_sets(params, problem, seeds)
    for step, _, update in training_of(params, problem).run(
        start, seeds, params.sweep_steps, residual_for("coarse", problem)
    ):
        if step == params.sweep_steps:
            network = update.network
    detectors = Detectors.at(start, problem, "coarse", init)
    growth = detectors.growth(network)
    record(step=params.sweep_steps, growth_ratio=growth[0] / growth[1], **error_report(network, easy, hard, "coarse"))
    record(critical=theory.critical_subclasses(problem), **rule_report(network, hard, problem))


@study.arm("invariants", over={"labels": LABELS, "bias": ["tied", "free"]}, tolerance=0.02,
           uses=(*_PROBLEM, "threshold", "scale", "rate", "bias_rate", "full_neurons", "full_steps"),
           working_set=lambda p: 2.0**23)  # fmt: skip
def invariants(params, seeds, record, *, labels, bias):
    """No neuron pruned, no patch left out: who fires on what, with the norm-tied bias and with none."""
    problem = problem_of(params, subclasses=min(4, params.subclasses), counts="exact")
    init = initialisation_of(_Full(params), prune=False)
    rho = params.bias_rate if bias == "tied" else 0.0
    record(**invariants_over(problem, init, params.rate, rho, seeds, params.full_steps, labels))


class _Full:
    """Parameters of the unpruned runs under the usual names."""

    def __init__(self, params: Any) -> None:
        self.neurons, self.threshold, self.scale = params.full_neurons, params.threshold, params.scale


@study.arm("strong-noise", over={"labels": LABELS}, tolerance=0.05, uses=(*_THEORY, "strong_noises", "fine_steps",
           "test_per_subclass"), working_set=lambda p: working_set(p, "fine"))  # fmt: skip
def strong_noise(params, seeds, record, *, labels):
    """Hard samples with one patch of strong noise and no other distractor: the second way to mislead."""
    problem = problem_of(params, distractors=0, counts="exact")
    start = initialisation_of(params, keep_rest=True).draw(seeds, class_count(labels, problem), problem)
    for _step, _, update in training_of(params, problem).run(
        start.network, seeds, params.fine_steps, residual_for(labels, problem)
    ):
        network = update.network
    for sigma in params.strong_noises:
        hard = problem_of(params, distractors=0, strong_noise=sigma, counts="exact").sample(
            seeds, "strong noise", params.test_per_subclass, hard=True, compact=True
        )
        strong = hard.patches[:, :, (hard.kinds[0, 0] == STRONG).nonzero().squeeze(1)]
        # Untrained neurons were left out of training, exactly; strong noise may wake them.
        outputs = network.outputs(hard.patches) + start.rest.outputs(strong, rows=32)
        scores = (
            outputs if labels == "coarse" else max_readout(outputs, superclass_of(problem.subclasses, seeds.device))
        )
        record(at={"strong": sigma}, hard_error=errors(scores, hard.superclass))


@study.arm("twins", over={"labels": TWINS}, tolerance=0.05,
           uses=(*_THEORY, "twin_steps", "twin_per_subclass", "test_per_subclass"),
           working_set=lambda p: 2 * working_set(p, "fine"))  # fmt: skip
def twins(params, seeds, record, *, labels):
    """A finite set under true, random, mixed and too fine labels, read out by the maximum."""
    problem = problem_of(params, counts="exact")
    training = training_of(params, problem, per_subclass=params.twin_per_subclass, finite=True)
    easy, hard = _test_sets(params, problem, seeds)
    record(**twin_errors(labels, problem, initialisation_of(params), training, seeds, params.twin_steps, easy, hard))
