"""The first two steps: which way the neurons turn on structured inputs, and on labels of hidden codes."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from assay import lab
from assay.probes.directions import cosines, direction_maps
from assay.training import Seeds

from ..learners import Stages, emerge, initialise, smooth
from ..params import SETTINGS, TUNING_SEED, Patterns
from .problem import CodeProblem
from .theory import (
    component_reports,
    gradient_components,
    mean_pairwise_cosine,
    relevant_over_background,
    tangents,
)


class Params(Patterns):
    code_patterns: int = Field(250, ge=4, description="D of the hidden-code problem")
    code_relevant: int = Field(50, ge=2, description="k of the hidden-code problem")

    @model_validator(mode="after")
    def _codes_exist(self) -> Self:
        self.code_problem()
        return self

    def code_problem(self) -> CodeProblem:
        return CodeProblem(self.code_patterns, self.code_relevant)


part = lab.Part(
    "first_steps",
    params=Params,
    presets={
        "smoke": lab.PartPreset(code_patterns=60, code_relevant=20),
        "laptop": lab.PartPreset(code_patterns=150, code_relevant=50, fewer={"codes": 4}),
    },
)


@part.arm(
    "emergence",
    over=[
        *({"setting": name, "inputs": "structured"} for name in SETTINGS),
        *({"setting": "parity", "inputs": name} for name in ("uniform", "shuffled")),
    ],
    uses=tuple(Patterns.model_fields),
    working_set=lambda params: 4.0 * params.samples * params.dim,
)
def emergence(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str, inputs: str) -> None:
    """The first two steps in the ambient space: angles, gradient components and a map of the neurons."""
    problem, stages = params.problem(inputs, "ambient"), params.stages()
    hidden, y = replace(problem, basis="pattern").sample(seeds, "train", params.samples)
    dictionary, truth = problem.dictionary(seeds), problem.truth(seeds)
    if inputs == "shuffled":
        y = y.gather(1, seeds.permutation("shuffled labels", params.samples))
    start = initialise(seeds, stages, params.dim)
    one, two = emerge(start, hidden @ dictionary.mT, y, stages)
    for step, net in enumerate((start, one, two)):
        cos, tan = cosines(net.weights, truth)[..., 0], tangents(net.weights, truth)
        record(step=step, largest_cosine=cos.amax(1), median_cosine=cos.abs().median(1).values)
        record(step=step, smallest_cosine=cos.abs().amin(1), tangent=tan.square().mean(1).sqrt())
    if inputs == "structured" and setting in ("parity", "tiny-samples"):
        nets = [replace(net, weights=net.weights @ dictionary) for net in (start, one)]
        for report in component_reports(problem, stages, nets, hidden, y, problem.relevant_set(seeds)):
            record(step=report.step, **report.metrics())
            record.array("gate", report.gate, step=report.step)
            record.array("signal", report.signal, step=report.step)
    if setting == "parity" and inputs in ("structured", "uniform"):
        initial = replace(start, weights=start.weights @ dictionary)
        components = gradient_components(initial, hidden, y, smooth(stages.smoothing))
        record(step=1, relevant_over_background=relevant_over_background(components, problem.relevant_set(seeds)))
    if inputs == "structured" and setting == "parity":
        for step, points in enumerate(_maps([net.weights for net in (start, one, two)], truth)):
            record.array("map", points, step=step)


def _maps(snapshots: list[Tensor], truth: Tensor) -> list[Tensor]:
    """The plane's points of all neurons and then of ± the truth, (seeds, neurons + 2, 2) for every snapshot."""
    maps: list[list[Tensor]] = [[] for _ in snapshots]
    for seed, direction in enumerate(truth):
        drawn = direction_maps([weights[seed] for weights in snapshots], torch.cat([direction, -direction]))
        for points, each in zip(maps, drawn, strict=True):
            assert each.references is not None
            points.append(torch.cat([each.points, each.references]))
    return [torch.stack(points) for points in maps]


@part.arm("codes", uses=("code_patterns", "code_relevant", "samples", "half_width"))
def codes(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Two steps on labels of hidden codes, where no count of patterns tells the label."""
    problem = params.code_problem()
    fixed = Seeds((TUNING_SEED,))  # one set of constants, so that a seed's run does not depend on its company
    stages = Stages(params.code_relevant, params.half_width, problem.correlation(fixed), problem.scale(fixed))
    x, y = problem.sample(seeds, "train", params.samples)
    start = initialise(seeds, stages, problem.features)
    for step, net in enumerate((start, *emerge(start, x, y, stages))):
        cos = cosines(net.weights, problem.truth(seeds))[..., 0].abs()
        record(step=step, pairwise_cosine=mean_pairwise_cosine(net.weights), largest_cosine=cos.amax(1))
