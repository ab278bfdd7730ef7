"""Phases: who wins, feature or noise, over inner steps and tasks, and over noise energy and inner rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds

from ..learners import SPLITS, Stack, by_cell
from ..params import NETWORK, PROBLEM, TEST, Planted, record_shares


class Params(Planted):
    phase_inner_steps: tuple[NonNegativeInt, ...] = Field(
        (0, 1, 2, 3, 4, 5, 6), min_length=2, description="J of the first phase map"
    )
    phase_tasks: tuple[PositiveInt, ...] = Field(
        (2, 5, 10, 20, 40), min_length=2, description="K of the first phase map"
    )
    phase_noise: tuple[PositiveFloat, ...] = Field(
        (1, 2, 4, 6, 8, 12, 16), min_length=2, description="s of the second phase map"
    )
    phase_rates: tuple[Annotated[float, Field(ge=0)], ...] = Field(
        (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0), min_length=2, description="γ of the second map"
    )

    @model_validator(mode="after")
    def _possible_maps(self) -> Self:
        self.problem(tasks=max(self.phase_tasks))
        for name in ("phase_inner_steps", "phase_tasks", "phase_noise", "phase_rates"):
            values = getattr(self, name)
            if len(set(values)) != len(values):
                raise ValueError(f"{name} names a value twice: {values}")
        return self


part = lab.Part(
    "phases",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            phase_inner_steps=(0, 5), phase_tasks=(2, 6), phase_noise=(4, 8), phase_rates=(0.1, 0.5)
        ),
        "laptop": lab.PartPreset(fewer={"phase-steps-tasks": 4, "phase-noise-rate": 4}),
        "paper": lab.PartPreset(
            phase_tasks=(2, 5, 10, 20, 40, 80),
            phase_noise=(1, 2, 3, 4, 5, 6, 8, 10, 12, 16),
            phase_rates=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0),
        ),
    },
)

_BOTH = (*PROBLEM, *NETWORK, *TEST, "initial_scale", "outer_rate", "steps")  # what both maps read


def _record_winners(
    params: Params, record: lab.Recorder, run: Stack, labels: Sequence[dict[str, Any]], **fixed: float
) -> None:
    """Train stacked cells to the end; record the test loss beside the predicted rates."""
    (look,) = run.train(params.steps, [params.steps])
    tested = run.test(look)
    for at, values in by_cell(labels, {name: tested[name] for name in ("test_loss", "test_accuracy")}):
        cell = {name: value for name, value in at.items() if name != "split"}
        rates = params.rates(at["split"], **fixed, **cell)
        found = {**values, "feature_rate": rates.feature, "noise_rate": rates.noise}
        record_shares(record, found, run.trials, at=at)


@part.arm(
    "phase-steps-tasks",
    over={"tasks": lambda p: p.phase_tasks},
    uses=(*_BOTH, "noise_energy", "inner_rate", "phase_inner_steps"),
    working_set=lambda p: 2.0**20,
    dtype="float64",
    tolerance=1e-5,
)
def phase_steps_tasks(params: Params, seeds: Seeds, record: lab.Recorder, *, tasks: int) -> None:
    """Who wins, feature or noise, over inner steps J and tasks K: all J and both splits at once."""
    problem = params.problem(tasks=tasks)
    cells = [cell for steps in params.phase_inner_steps for cell in params.cells(inner_steps=steps)]
    labels = [{"inner_steps": steps, "split": split} for steps in params.phase_inner_steps for split in SPLITS]
    run = params.stack(problem, problem.sample(seeds), seeds, cells)
    fixed = {"tasks": tasks, "inner_rate": params.inner_rate, "noise_energy": params.noise_energy}
    _record_winners(params, record, run, labels, **fixed)


@part.arm(
    "phase-noise-rate",
    over={"noise_energy": lambda p: p.phase_noise},
    uses=(*_BOTH, "tasks", "inner_steps", "phase_rates"),
    working_set=lambda p: 2.0**20,
    dtype="float64",
    tolerance=1e-5,
)
def phase_noise_rate(params: Params, seeds: Seeds, record: lab.Recorder, *, noise_energy: float) -> None:
    """Who wins over noise energy s and inner rate γ: all γ and both splits at once."""
    problem = params.problem(noise_energy=noise_energy)
    cells = [cell for rate in params.phase_rates for cell in params.cells(inner_rate=rate)]
    labels = [{"inner_rate": rate, "split": split} for rate in params.phase_rates for split in SPLITS]
    run = params.stack(problem, problem.sample(seeds), seeds, cells)
    fixed = {"noise_energy": noise_energy, "tasks": params.tasks, "inner_steps": params.inner_steps}
    _record_winners(params, record, run, labels, **fixed)
