"""The planted problem, its network and the two loops of FOMAML: what most of the parts read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from assay import lab
from assay.methods.split_rates import Rates, SplitEffect, predict_split_effect
from assay.training import Seeds

from . import theory
from .learners import SPLITS, TT, Cell, Stack
from .problem import SharedFeature, Tasks

# Names for uses=: an arm that reads none of the others is not run again when one of those changes.
PROBLEM = ("dim", "dictionary", "samples", "support", "task_norm")
NETWORK = ("filters", "activation", "knee")
TEST = ("unseen_tasks", "unseen_samples")


def record_shares(
    record: lab.Recorder,
    values: Mapping[str, Any],
    trials: Mapping[str, int],
    *,
    step: int | None = None,
    at: Mapping[str, Any] | None = None,
) -> None:
    """Record ``values``, those that ``trials`` names as shares of so many."""
    plain = {name: value for name, value in values.items() if name not in trials}
    if plain:
        record(step=step, at=at, **plain)
    for name in (name for name in values if name in trials):
        record(step=step, at=at, trials=trials[name], **{name: values[name]})


class Planted(lab.Params):
    dim: int = Field(2000, ge=10, description="dimension d of a patch")
    dictionary: int = Field(200, ge=2, description="task features M")
    tasks: int = Field(10, ge=1, description="observed tasks K")
    samples: int = Field(4, ge=4, description="samples n per task")
    support: int = Field(2, ge=2, description="samples n₁ of a task's training half")
    noise_energy: float = Field(8.0, gt=0, description="s, the mean squared norm of a noise patch")
    task_norm: float = Field(0.3, gt=0, description="σ_s√d, the norm of a task's own feature (the shared one has 1)")
    filters: int = Field(10, ge=1, description="filters m per class")
    initial_scale: float = Field(1e-4, gt=0, description="σ₀ of the initial filters")
    activation: Literal["huberized", "relu"] = Field("huberized", description="activation of the network")
    knee: float = Field(0.5, gt=0, description="knee h of the Huberized ReLU")
    inner_rate: float = Field(0.5, ge=0, description="inner rate γ")
    outer_rate: float = Field(0.05, gt=0, description="outer rate η")
    inner_steps: int = Field(5, ge=0, description="inner steps J")
    steps: int = Field(600, ge=10, description="outer steps T")
    look_every: int = Field(20, ge=1, description="outer steps between measurements")
    unseen_tasks: int = Field(60, ge=4, description="new tasks for testing")
    unseen_samples: int = Field(4, ge=2, description="test samples of each")

    @model_validator(mode="after")
    def _possible_problem(self) -> Self:
        self.problem()
        return self

    def problem(self, *, tasks: int | None = None, noise_energy: float | None = None) -> SharedFeature:
        """The problem at these parameters, or with another number of tasks or another noise energy."""
        return SharedFeature(
            self.dim,
            self.dictionary,
            self.tasks if tasks is None else tasks,
            self.samples,
            self.support,
            noise_energy=self.noise_energy if noise_energy is None else noise_energy,
            task_norm=self.task_norm,
        )

    @property
    def bend(self) -> float:
        """h of the activation in use: the knee, or next to nothing for ReLU."""
        return theory.RELU_KNEE if self.activation == "relu" else float(self.knee)

    def cells(
        self, splits: Sequence[str] = SPLITS, *, inner_rate: float | None = None, inner_steps: int | None = None
    ) -> list[Cell]:
        """One cell for each split, all else equal: at these parameters, or with another inner rate or other inner
        steps."""
        rate = self.inner_rate if inner_rate is None else inner_rate
        steps = self.inner_steps if inner_steps is None else inner_steps
        return [(split, rate, self.outer_rate, steps, self.bend) for split in splits]

    def stack(self, problem: SharedFeature, tasks: Tasks, seeds: Seeds, cells: Sequence[Cell]) -> Stack:
        """``cells`` × seeds on the same draws, with filters and test of this size."""
        start = self.initial_scale * seeds.normal("initial filters", 2 * self.filters, problem.dim)
        unseen = problem.sample_unseen(seeds, self.unseen_tasks, problem.support + self.unseen_samples)
        return Stack.of(tasks, unseen, start, cells, seeds)

    def working_set(self) -> float:
        """Bytes that a seed's runs, one per split, touch in an inner step: a handful of arrays of filters × samples."""
        return 8.0 * 6 * 2 * self.tasks * 2 * self.filters * self.samples

    def prediction(self, **changed: float) -> SplitEffect:
        """The rate formulas at these parameters, per unit outer rate; ``changed`` replaces some of them."""
        names = ("noise_energy", "tasks", "inner_steps", "inner_rate")
        chosen: dict[str, Any] = {name: changed[name] if name in changed else getattr(self, name) for name in names}
        return predict_split_effect(
            **chosen,
            samples=self.samples,
            support=self.support,
            knee=self.knee,
            task_norm=self.task_norm,
            initial_scale=self.initial_scale,
            filters=self.filters,
        )

    def rates(self, split: str, **changed: float) -> Rates:
        """The rates of feature and noise with or without a split."""
        effect = self.prediction(**changed)
        return effect.train_train if split == TT else effect.train_val
