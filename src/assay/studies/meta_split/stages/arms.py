"""The race of feature and noise, at every outer step: when does each end its stage?"""

from __future__ import annotations

from typing import Any

import torch

from assay import lab
from assay.training import Seeds

from ..learners import SPLITS, Conditions, by_cell, train
from ..params import NETWORK, PROBLEM, Planted
from ..problem import Coupling, Products
from .learners import outer_energy, stage_metrics

part = lab.Part("stages", params=Planted)


@part.arm(
    "stages",
    uses=(
        *(*PROBLEM, *NETWORK, "tasks", "noise_energy", "initial_scale"),
        *("inner_rate", "outer_rate", "inner_steps", "steps"),
    ),
    dtype="float64",
    tolerance=1e-5,
)
def stages(params: Planted, seeds: Seeds, record: lab.Recorder) -> None:
    """The race of feature and noise in the base setting, at every outer step: when does each end its stage?"""
    tasks = params.problem().sample(seeds)
    start = params.initial_scale * seeds.normal("initial filters", 2 * params.filters, params.dim)
    conditions = Conditions.of(params.cells(), seeds, params.samples, params.support)
    parts = Products.of(tasks, start).stacked(2), Coupling.of(tasks, tasks).stacked(2)
    labels = [{"split": split} for split in SPLITS]
    looks = range(params.steps + 1)
    found = [stage_metrics(look, conditions) for look in train(*parts, conditions, params.steps, looks)]
    curves = {name: torch.stack([each[name] for each in found]) for name in found[0]}
    for place, at in enumerate(labels):
        mine: dict[str, Any] = {name: values.chunk(2, 1)[place] for name, values in curves.items()}
        record.curve(looks, at=at, **mine)
    for at, values in by_cell(labels, outer_energy(parts[0], conditions)):
        record(at=at, **values)
