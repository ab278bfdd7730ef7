"""Early growth: what the inner steps multiply and how fast feature and noise grow while all filters are tiny."""

from __future__ import annotations

from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..learners import SPLITS, TV, Cell, Conditions, by_cell, train
from ..params import PROBLEM, Planted
from ..problem import Coupling, Products
from . import learners


class Params(Planted):
    early_scale: float = Field(1e-8, gt=0, description="σ₀ where early growth is measured")
    early_rate: float = Field(0.01, gt=0, description="η where early growth is measured")


part = lab.Part("growth", params=Params)


@part.arm(
    "early-growth",
    over={"energy": [4.0, 8.0], "inner": [1, 2, 3, 5]},
    uses=(*PROBLEM, "tasks", "filters", "knee", "inner_rate", "early_scale", "early_rate"),
    dtype="float64",
    tolerance=1e-5,
)
def early_growth(params: Params, seeds: Seeds, record: lab.Recorder, *, energy: float, inner: int) -> None:
    """From tiny filters: growth per outer step and amplification by the inner steps, against the rate formulas."""
    tasks = params.problem(noise_energy=energy).sample(seeds)
    start = params.early_scale * seeds.normal("initial filters", 2 * params.filters, params.dim)
    cells: list[Cell] = [(split, params.inner_rate, params.early_rate, inner, params.knee) for split in SPLITS]
    conditions = Conditions.of(cells, seeds, params.samples, params.support)
    parts = (Products.of(tasks, start).stacked(2), Coupling.of(tasks, tasks).stacked(2))
    first, last = train(*parts, conditions, 20, [5, 20])
    found = dict(vars(learners.early_growth(first, last, conditions)))
    inside = found.pop("inner_only_noise").chunk(2)[1]
    for at, values in by_cell([{"split": split} for split in SPLITS], found):
        record(at=at, **values)
    record(at={"split": TV}, inner_only_noise=inside)
