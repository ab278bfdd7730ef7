"""Stage two: do neurons that one feature dominates at the start specialise on it once biases are on?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from pydantic import Field, model_validator

from assay import lab
from assay.training import Seeds

from ..learners import Cells, Contrastive, nan_if_diverged, random_start
from ..params import FEATURES, Sweep, check_biases_are_used
from .learners import InitialSets


class Params(Sweep):
    lucky_steps: int = Field(400, ge=10, description="steps of the trainings that stage two is judged on")

    @model_validator(mode="after")
    def _biases_are_used_in_stage_two(self) -> Params:
        check_biases_are_used(self.bias_on, lucky_steps=self.lucky_steps)
        return self


part = lab.Part(
    "stage_two",
    params=Params,
    presets={
        "smoke": lab.PartPreset(lucky_steps=60),
        # In 500 dimensions the norm begins with more noise: after 400 steps 3 of 20 trainings had reached T₂.
        "paper": lab.PartPreset(lucky_steps=1200, fewer={"lucky": 20}),
    },
)


@part.arm(
    "lucky",
    over={"rule": ["biased", "unbiased", "printed"]},
    uses=(*FEATURES, "dim", "batch", "rate", "temperature", "decay", "bias_on", "bias", "lucky_steps"),
    tolerance=2e-2,
)
def lucky(params: Params, seeds: Seeds, record: lab.Recorder, *, rule: str) -> None:
    """Do neurons with one dominant feature at the start keep it? 96 neurons, all features equally frequent. The bounds
    of stages 2 and 3 are measured for the sets 𝓜_j and 𝓜*_j of the initial weights."""
    problem = params.problem(params.dim)
    d = problem.features
    cells = Cells([1.0], [problem.deviation(0.45)], [params.decay])
    start = random_start(problem, 1, seeds, width=96, scale=0.005)
    sets = InitialSets.of(start, d)
    encoders, begun = start, None
    at_end: dict[str, Any] = {}
    over = torch.zeros(len(seeds), dtype=torch.bool, device=seeds.device)
    for look in _training(params, rule, d).train(problem, cells, seeds, start):
        encoders = look.encoders
        found = sets.specialisation(encoders)
        # A seed without lucky neurons keeps none (NaN), of one trial.
        record(step=look.step, trials=sets.count.clamp(min=1).tolist(), lucky_kept=found.pop("lucky_kept"))
        record(step=look.step, **found)
        size = torch.linalg.vector_norm(encoders.weights[:, 0], dim=-1)
        begun = size if begun is None else begun
        # T₂: some neuron's squared norm has grown d-fold since T₁.
        now = (size.square() >= d * begun.square()).any(-1) & ~over
        over = over | now
        bounded = {"stage_two_growth": sets.growth(encoders, begun)}
        if rule != "unbiased":
            bounded |= sets.over_bias(encoders)
        for name, value in bounded.items():
            at_end[name] = torch.where(now, value, at_end.get(name, torch.nan))
    record(ordinary_over_lucky=sets.others_over_lucky(encoders), weak_rms=sets.weak_rms(encoders), **at_end)
    record(trials=1, stage_two_reached=over.double() + nan_if_diverged(encoders.weights[:, 0]))


def _training(params: Params, rule: str, features: int) -> Contrastive:
    """Looked at from T₁ on, where biases are switched on: as elsewhere, as 0, or by the schedule of the proofs."""
    looks = range(params.bias_on, params.lucky_steps, 10)
    run = Contrastive(
        params.lucky_steps, params.batch, params.rate, params.temperature, params.bias_on, params.bias, looks=looks
    )
    if rule == "unbiased":
        return replace(run, bias=0.0)
    return replace(run, bias=None, bias_growth=params.rate / features) if rule == "printed" else run
