"""The diagonal model by stochastic descent: weight decay, hard limits, and the norm of batches of all sizes."""

from __future__ import annotations

from typing import Annotated, Self

import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from assay import lab
from assay.training import Seeds

from ..params import check_rising
from ..problem import Environments
from . import theory
from .learners import Recipe, train, train_limited


class Params(lab.Params):
    diagonal_invariant: int = Field(50, ge=1, description="invariant features r of the trained diagonal model")
    diagonal_dim: int = Field(297, ge=2, description="its features d in all")
    diagonal_gamma: float = Field(0.45, gt=0, lt=0.5, description="its γ")
    diagonal_samples: int = Field(4000, ge=100, description="training samples")
    diagonal_test: int = Field(4000, ge=100, description="test samples outside the training domain")
    diagonal_steps: int = Field(300, ge=1, description="Adam steps")
    diagonal_rate: PositiveFloat = Field(0.01, description="Adam's rate, which falls linearly to 0")
    diagonal_decay: PositiveFloat = Field(0.1, description="weight decay")
    diagonal_strength: PositiveFloat = Field(0.03, description="strength of the nuclear norm over √rows")
    row_shares: tuple[Annotated[float, Field(gt=0, le=8)], ...] = Field(
        (0.125, 0.25, 0.5, 1.0, 2.0), min_length=1, description="rows per batch over features"
    )
    limits: tuple[PositiveInt, ...] = Field((10, 50), min_length=1, description="features a hard limit lets through")

    @model_validator(mode="after")
    def _rows_are_there(self) -> Self:
        check_rising(row_shares=self.row_shares, limits=self.limits)
        self.diagonal()
        if self.rows(self.row_shares[-1]) > self.diagonal_samples or self.rows(self.row_shares[0]) < 2:
            raise ValueError("row_shares ask for batches of fewer than 2 rows or of more than there are samples")
        if self.limits[-1] > self.diagonal_invariant:
            raise ValueError(f"limits go up to the {self.diagonal_invariant} invariant features, not {self.limits[-1]}")
        return self

    def diagonal(self) -> Environments:
        return Environments(self.diagonal_dim, self.diagonal_invariant, self.diagonal_gamma)

    def rows(self, share: float) -> int:
        return round(share * self.diagonal_dim)

    def recipe(self, rows: int, decay: float = 0.0, strength: float = 0.0) -> Recipe:
        return Recipe(rows, self.diagonal_steps, self.diagonal_rate, decay, strength)


part = lab.Part(
    "batches",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            diagonal_invariant=10,
            diagonal_dim=60,
            diagonal_gamma=0.4,
            diagonal_samples=200,
            diagonal_test=200,
            diagonal_steps=40,
            row_shares=(0.25, 2.0),
            limits=(5,),
        ),
        "laptop": lab.PartPreset(fewer={"limited": 5, "rows": 5}),
        "paper": lab.PartPreset(diagonal_samples=20_000, diagonal_test=20_000, diagonal_steps=3000),
    },
)
RECIPE = tuple(name for name in Params.model_fields if name not in ("row_shares", "limits"))


def _train(params: Params, seeds: Seeds, record: lab.Recorder, recipe: Recipe) -> None:
    problem, steps = params.diagonal(), recipe.steps
    z = problem.sample(seeds, "training", params.diagonal_samples)
    weights = train(z, seeds, recipe, lambda step: record.progress(step, steps))
    _record(params, seeds, record, problem, weights)


def _record(params: Params, seeds: Seeds, record: lab.Recorder, problem: Environments, weights: Tensor) -> None:
    test = problem.sample(seeds, "test", params.diagonal_test, outside=True)
    right = ((test * weights.unsqueeze(1)).sum(2) >= 0).double().mean(1)
    record(trials=params.diagonal_test, accuracy=right)
    r = problem.invariant
    alpha, beta = weights[:, :r].mean(1), weights[:, r:].mean(1)
    record(
        alpha=alpha,
        beta=beta,
        beta_share=beta / alpha,
        environmental_kept=(weights[:, r:].abs() > 0).double().sum(1),
        spread=torch.maximum(weights[:, :r].std(1), weights[:, r:].std(1)) / alpha,
    )
    record.note(few_rows_ratio=theory.few_rows_ratio(problem), needed_ratio=theory.needed_ratio(problem))


@part.arm("diagonal", over={"method": ["no penalty", "weight decay"]}, uses=RECIPE, tolerance=0.02)
def diagonal(params: Params, seeds: Seeds, record: lab.Recorder, *, method: str) -> None:
    """Stochastic gradient descent without a penalty and with weight decay."""
    decay = params.diagonal_decay if method == "weight decay" else 0.0
    _train(params, seeds, record, params.recipe(min(256, params.diagonal_samples), decay))


@part.arm("limited", over={"limit": lambda p: p.limits}, uses=RECIPE, tolerance=0.02)
def limited(params: Params, seeds: Seeds, record: lab.Recorder, *, limit: int) -> None:
    """Full-batch descent that keeps so many of the largest weights after every step."""
    problem = params.diagonal()
    z = problem.sample(seeds, "training", params.diagonal_samples)
    weights = train_limited(z, limit, steps=min(params.diagonal_steps, 100), rate=0.2, decay=0.01)
    _record(params, seeds, record, problem, weights)


@part.arm("rows", over={"rows_share": lambda p: p.row_shares}, uses=RECIPE, tolerance=0.05)
def rows(params: Params, seeds: Seeds, record: lab.Recorder, *, rows_share: float) -> None:
    """The nuclear norm of batches with fewer and with more rows than features."""
    _train(params, seeds, record, params.recipe(params.rows(rows_share), strength=params.diagonal_strength))
