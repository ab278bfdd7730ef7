"""The synthetic experiment with the constants that the source prints for it."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from assay import lab
from assay.training import Seeds

from .. import theory
from ..learners import SPLITS, Cell, Stack, alignment_metrics, by_cell, look_steps, outer_samples
from ..params import record_shares
from ..problem import SharedFeature
from .theory import printed_scales

RATES = {"0.01/0.001": (0.01, 0.001), "0.001/0.0001": (0.001, 0.0001)}  # inner and outer, printed twice
VARIANTS = ("huberized", "relu", "one step", "swapped rates")  # the rows of Tables 1 to 3


class Params(lab.Params):
    printed_dim: int = Field(1000, ge=100, description="d of the printed synthetic configuration")
    printed_tasks: int = Field(343, ge=2, description="its K (printed: 343)")
    printed_steps: int = Field(1000, ge=20, description="its T (not printed)")
    printed_test_tasks: int = Field(100, ge=4, description="its test tasks (not printed)")
    printed_test_samples: int = Field(50, ge=2, description="test samples of each (not printed)")

    @model_validator(mode="after")
    def _room_for_tasks(self) -> Self:
        if self.printed_tasks > self.printed_dim // 2:
            raise ValueError("printed_tasks cannot exceed half of printed_dim, the size of its dictionary")
        return self


part = lab.Part(
    "printed",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            printed_dim=100, printed_tasks=8, printed_steps=20, printed_test_tasks=5, printed_test_samples=5
        ),
        "laptop": lab.PartPreset(printed_tasks=64, printed_steps=200, fewer={"printed": 4}),
        "paper": lab.PartPreset(fewer={"printed": 5}),
    },
)


def _cell(split: str, variant: str, rates: str) -> Cell:
    """γ, η, J and h of a row of the source's tables."""
    inner, outer = RATES[rates]
    if variant == "swapped rates":
        inner, outer = outer, inner
    return split, inner, outer, 1 if variant == "one step" else 5, theory.RELU_KNEE if variant == "relu" else 0.5


@part.arm(
    "printed",
    over={"rates": list(RATES), "variant": list(VARIANTS)},
    working_set=lambda p: 16.0 * (10 * p.printed_tasks) ** 2,
    dtype="float64",
    tolerance=1e-5,
)
def printed(params: Params, seeds: Seeds, record: lab.Recorder, *, rates: str, variant: str) -> None:
    """The printed synthetic configuration: large noise, large filters, logits of size 25 from the start."""
    scales = printed_scales(params.printed_dim)
    own = scales.sigma_s * scales.d**0.5
    problem = SharedFeature(scales.d, scales.M, params.printed_tasks, 10, 5, noise_energy=scales.s, task_norm=own)
    unseen = problem.sample_unseen(seeds, params.printed_test_tasks, problem.support + params.printed_test_samples)
    start = scales.sigma_0 * seeds.normal("initial filters", 2 * scales.m, scales.d)
    cells = [_cell(split, variant, rates) for split in SPLITS]
    run = Stack.of(problem.sample(seeds), unseen, start, cells, seeds)
    steps = params.printed_steps
    for look in run.train(steps, look_steps(steps, max(1, steps // 10))):
        found = {"meta_loss": look.meta_loss, **run.test(look), **alignment_metrics(look, run.conditions, 1.0)}
        for at, values in by_cell([{"split": split} for split in SPLITS], found):
            memorised = outer_samples(at["split"], problem.tasks, problem.samples, problem.support)
            record_shares(record, values, {**run.trials, "memorised": memorised}, step=look.step, at=at)
