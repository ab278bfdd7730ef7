"""From a study's parameters to problems, stacked runs and predictions; shared by its arms, claims and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.methods.split_rates import Rates, SplitEffect, predict_split_effect
from assay.training.seeds import Seeds

from . import theory
from .learners import SPLITS, Conditions, Coupling, Products, Unseen
from .problem import SharedFeature, Tasks

Cell = tuple[str, float, float, int, float]  # split, γ, η, J, h


def problem_of(params: Any, tasks: int | None = None, noise_energy: float | None = None) -> SharedFeature:
    """The problem at these parameters, or with another number of tasks or another noise energy."""
    return SharedFeature(
        params.dim, params.dictionary, params.tasks if tasks is None else tasks, params.samples, params.support,
        noise_energy=params.noise_energy if noise_energy is None else noise_energy, task_norm=params.task_norm,
    )  # fmt: skip


def knee_of(params: Any) -> float:
    return theory.RELU_KNEE if params.activation == "relu" else float(params.knee)


def cells_of(params: Any, splits: Sequence[str] = SPLITS) -> list[Cell]:
    rates = (params.inner_rate, params.outer_rate, params.inner_steps, knee_of(params))
    return [(split, *rates) for split in splits]


def prediction(params: Any, **changed: Any) -> SplitEffect:
    """The rate formulas at these parameters, per unit outer rate; ``changed`` replaces some of them."""
    names = ("noise_energy", "tasks", "inner_steps", "inner_rate")
    chosen = {name: changed[name] if name in changed else getattr(params, name) for name in names}
    return predict_split_effect(
        chosen["noise_energy"], params.samples, params.support, chosen["tasks"], chosen["inner_steps"],
        chosen["inner_rate"], knee=params.knee, task_norm=params.task_norm, initial_scale=params.initial_scale,
        filters=params.filters,
    )  # fmt: skip


def rates_of(effect: SplitEffect, split: str) -> Rates:
    return effect.train_train if split == "train-train" else effect.train_val


@dataclass(frozen=True)
class Stack:
    """All runs of a unit: what they train on, how, and what they are tested on."""

    products: Products
    coupling: Coupling
    conditions: Conditions
    unseen: Unseen


def stack(
    problem: SharedFeature, tasks: Tasks, seeds: Seeds, cells: Sequence[Cell], *, filters: int, scale: float,
    unseen_tasks: int, unseen_samples: int,
) -> Stack:  # fmt: skip
    """``cells`` × seeds, all on the same draws."""
    start = scale * seeds.normal("initial filters", 2 * filters, problem.dim)
    fresh = problem.sample_unseen(seeds, unseen_tasks, problem.support + unseen_samples)
    count = len(cells)
    tested = Products.of(fresh, start).stacked(count), Coupling.of(tasks, fresh).stacked(count)
    return Stack(
        Products.of(tasks, start).stacked(count),
        Coupling.of(tasks, tasks).stacked(count),
        Conditions.of(cells, seeds, problem.samples, problem.support),
        Unseen(*tested, problem.support),
    )


def look_steps(steps: int, every: int) -> list[int]:
    return sorted({*range(0, steps + 1, every), steps})


def working_set(params: Any, runs: int = 2) -> float:
    """Bytes that one seed's stacked runs touch in an inner step: a handful of arrays of filters × samples."""
    return 8.0 * 6 * runs * params.tasks * 2 * params.filters * params.samples
