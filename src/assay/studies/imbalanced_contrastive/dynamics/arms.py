"""One training watched step by step: a neuron through three stages, and what all neurons look like at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from assay import lab
from assay.training import Seeds

from ..learners import Attention, Cells, Look, aligned, nan_if_diverged, random_start
from ..params import Dynamics
from ..problem import TokenPairs
from .learners import purest_neuron, specialists

part = lab.Part(
    "dynamics",
    params=Dynamics,
    presets={
        "smoke": lab.PartPreset(dynamics_dim=60, dynamics_steps=60),
        "paper": lab.PartPreset(fewer={"dynamics": 20, "other-biases": 20}),
    },
)


def _cells(params: Dynamics, problem: TokenPairs) -> Cells:
    return Cells([params.dynamics_rare], [problem.deviation(params.dynamics_noise)], [params.decay])


def _looks(params: Dynamics, problem: TokenPairs, seeds: Seeds, attention: Attention, **changes: Any) -> list[Look]:
    """The training, which an arm may change in a few words, seen about fifty times."""
    steps = params.dynamics_steps
    looks = sorted({0, params.bias_on, *range(0, steps, max(1, steps // 50))})
    run = replace(params.recipe(steps, attention, looks=looks), **changes)
    start = random_start(problem, 1, seeds, width=params.width, scale=params.init, attention=attention)
    return list(run.train(problem, _cells(params, problem), seeds, start))


@part.arm(
    "dynamics",
    over={"attention": ["softmax", "uniform"]},
    tolerance=2e-2,
    working_set=lambda p: 12.0 * p.batch * p.tokens * p.dynamics_dim,
)
def dynamics(params: Dynamics, seeds: Seeds, record: lab.Recorder, *, attention: Attention) -> None:
    """Figures 1 and 6: one neuron through three stages, and what all neurons look like at the end."""
    problem = params.problem(params.dynamics_dim)
    looks = _looks(params, problem, seeds, attention)
    for step, seen in purest_neuron(looks, problem.features):
        record(step=step, **seen)
    cosines = aligned(looks[-1].encoders.weights, problem.features)[:, 0]
    record(**specialists(cosines, problem.majority))
    record.array("squared_cosines", cosines.square())


@part.arm(
    "other-biases",
    over={"bias_rule": ["none", "printed"]},
    tolerance=2e-2,
    working_set=lambda p: 12.0 * p.batch * p.dynamics_dim,
)
def other_biases(params: Dynamics, seeds: Seeds, record: lab.Recorder, *, bias_rule: str) -> None:
    """The same training without biases, and with the proofs' own schedule √(2 log d/d)‖w‖ growing by η/d."""
    problem = params.problem(params.dynamics_dim)
    printed = {"bias": None, "bias_growth": params.rate / problem.features}
    rules: dict[str, dict[str, Any]] = {"none": {"bias_on": None}, "printed": printed}
    last = _looks(params, problem, seeds, "uniform", **rules[bias_rule])[-1]
    cosines = aligned(last.encoders.weights, problem.features)[:, 0]
    record(**specialists(cosines, problem.majority), loss=last.loss[:, 0])
    run = params.recipe(1, "uniform")
    batch = run.pairs(problem, _cells(params, problem), seeds, "silence").next(512)
    outputs = last.encoders(run.attended(batch)[0])
    silent = (outputs.abs().amax(-2) == 0).double().mean(-1) + nan_if_diverged(last.encoders.weights)
    record(trials=params.width, silent=silent[:, 0])
