"""Training on the subclasses, in the theory's network on hierarchical patches, and finetuning on the superclasses."""

from __future__ import annotations

import math

import torch
from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..learners import Report, error_report, errors, looks, residual_for, superclass_scores
from ..params import FineTraining, Patches, Testing
from ..theory import Detectors, firing
from .learners import FirstPhase, errors_at_t0, finetuned, parts_at_t0
from .theory import fine_phase_time, least_outputs


class Params(FineTraining, Testing, Patches):
    finetune_steps: int = Field(20, ge=2, description="finetuning steps after fine pretraining")


part = lab.Part(
    "fine",
    params=Params,
    presets={"smoke": lab.PartPreset(fine_steps=12, finetune_steps=3, settings={"bernoulli": {"fine_steps": 10}})},
)


@part.arm(
    "fine",
    over={"setting": ["exact", "bernoulli"]},
    tolerance=0.05,
    working_set=lambda p: p.working_set("fine"),
)
def fine(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """Training on the subclasses with the maximum as read-out, what it has at T0, and finetuning afterwards."""
    problem, init = params.problem(), params.initialisation()
    k, feature_patches, patches = problem.subclasses, problem.feature_patches, problem.patches
    network = init.draw(seeds, 2 * k, problem).network
    detectors, fires = Detectors.at(network, problem, "fine", init), firing(network, problem, "fine")
    easy, hard = problem.test_sets(seeds, params.test_per_subclass)
    seen, phase, before = looks(params.fine_steps), FirstPhase.of(seeds), detectors.growth(network)
    unit = params.rate * feature_patches / (2 * k * patches)
    at_t0: tuple[Report, Report] = ({}, {})
    training, residual = params.training(problem), residual_for("fine", problem)
    for step, _, update in training.run(network, seeds, params.fine_steps, residual):
        growth = detectors.growth(update.network)
        moved = [(now - then).cpu() for now, then in zip(growth, before, strict=True)]
        coefficient, before = moved[0] / unit, growth
        arrived = phase.see(step, update.outputs, coefficient)
        if step in seen:
            record(step=step, **detectors.report(update.network))
            record(step=step, trials=len(easy), **error_report(update.network, easy, hard, "fine"))
            record(step=step, growth_per_step_ratio=moved[0] / moved[1], common_coefficient=coefficient)
        if bool(arrived.any()) or step == params.fine_steps:
            for kept, found in zip(
                at_t0, (parts_at_t0(detectors, network), errors_at_t0(network, easy, hard)), strict=True
            ):
                for name, values in found.items():
                    now = values.double().cpu()
                    kept[name] = torch.where(arrived, now, kept.get(name, torch.full_like(now, math.nan)))
        network = update.network
    common, subclass = (count.double() for count in detectors.counts())
    predicted = fine_phase_time(params.rate, k, feature_patches, patches, common, subclass[..., 0])
    fewest = torch.minimum(common.amin(1), subclass.flatten(1).amin(1))
    record(predicted_t0=predicted.amin(1), fewest_detectors=fewest, **phase.report(), **at_t0[0])
    record(trials=len(easy), **at_t0[1])
    least_common, least_subclass = least_outputs(k, common, subclass[..., 0], fires[0], fires[1][..., 0])
    record(least_common_output=least_common, least_subclass_output=least_subclass)
    steps, first = params.finetune_steps, params.fine_steps
    network, least = finetuned(training, network, seeds, steps, first=first, detectors=detectors)
    scores = [superclass_scores(network.outputs(samples.patches), samples, "fine") for samples in (easy, hard)]
    finetuned_errors = [errors(each, samples.superclass) for each, samples in zip(scores, (easy, hard), strict=True)]
    record(trials=len(easy), finetuned_easy_error=finetuned_errors[0], finetuned_hard_error=finetuned_errors[1])
    record(least_response_change=least)
