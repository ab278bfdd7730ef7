"""Controls: what must not be learned, a split that is none, inner steps without a rate, and the engine itself."""

from __future__ import annotations

from assay import lab
from assay.training import Seeds

from ..learners import SPLITS, TT, Cell, Conditions, by_cell, train
from ..params import Planted, record_shares
from ..problem import Coupling, Products, SharedFeature
from .learners import train_direct

CASES = ("shuffled labels", "leaked split", "no inner rate")

part = lab.Part("controls", params=Planted)


@part.arm("control", over={"case": list(CASES)}, working_set=Planted.working_set, dtype="float64", tolerance=1e-5)
def control(params: Planted, seeds: Seeds, record: lab.Recorder, *, case: str) -> None:
    """The base setting with labels that the feature does not tell, with a split that is none, and with γ = 0."""
    problem, cells = params.problem(), params.cells()
    tasks = problem.sample(seeds)
    if case == "shuffled labels":
        tasks = problem.shuffled(tasks, seeds)
    if case == "leaked split":
        cells = params.cells((TT, "leaked"))
    if case == "no inner rate":
        cells = [*params.cells(inner_rate=0.0), *params.cells(inner_steps=0)]
    labels: list[dict[str, str | bool]] = [{"split": split, "adapts": steps > 0} for split, _, _, steps, _ in cells]
    run = params.stack(problem, tasks, seeds, cells)
    for look in run.train(params.steps, [params.steps]):
        for at, values in by_cell(labels, {"meta_loss": look.meta_loss, **run.test(look)}):
            record_shares(record, values, run.trials, step=look.step, at=at)


@part.arm(
    "engines",
    over={"inner": [0, 1, 5]},
    uses=("knee", "inner_rate", "outer_rate"),
    dtype="float64",
    tolerance=1e-5,
)
def engines(params: Planted, seeds: Seeds, record: lab.Recorder, *, inner: int) -> None:
    """The engine on inner products against weights and inputs, twelve outer steps from unit-size filters."""
    problem = SharedFeature(120, 20, 4, 6, 3)
    tasks, start = problem.sample(seeds), 0.1 * seeds.normal("initial filters", 8, 120)
    for split in SPLITS:
        cell: Cell = (split, params.inner_rate, params.outer_rate, inner, params.knee)
        conditions = Conditions.of([cell], seeds, 6, 3)
        look = next(train(Products.of(tasks, start), Coupling.of(tasks, tasks), conditions, 12, [12]))
        direct = train_direct(tasks, start, cell, 12)
        ours = start + look.noise @ tasks.noise.flatten(1, 2) + look.feature @ tasks.features
        moved = (direct - start).abs().amax((1, 2))
        record(at={"split": split}, deviation=(ours - direct).abs().amax((1, 2)) / moved)
