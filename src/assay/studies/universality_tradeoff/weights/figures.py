"""Weights of features by block, and spectra."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, Values, charts

from ..theory import even_weights, leading_complexity, predictor_norm
from .arms import FEW, HALF, SCALED, Params, part
from .claims import trained

KINDS = {
    "shared, S": "#4c78a8",
    "of this task, P": "#f58518",
    "of another task: 0": "#e8e8e8",
    "spurious, U": "#bab0ac",
}


@part.figure(
    "feature-sets",
    caption="Which features the data of each linear task has (top): all tasks share S, each has a set P of its own, in "
    "whose place other tasks have 0, and the spurious features U are drawn anew in the second view of an input. Below, "
    "the squared weight that trained encoders give to these sets, on an even mixture of the tasks and on the first "
    "task alone (mean and 95 % interval over seeds; of U the largest); red ticks are predicted: 1 and 1/T, and 1, 1 "
    "and 0.",
    shows=("C5b", "C5c", "C5e", "N5"),
)
def feature_sets(m: Measurements[Params]) -> Any:
    tasks = m.params.mixture_tasks[0]
    problem = m.params.problem(tasks)
    cells = []
    for t in range(tasks):
        own = problem.own(t)
        for place in range(problem.dim):
            shared, spurious = place < problem.shared, place >= problem.features
            kinds = list(KINDS)
            kind = kinds[0] if shared else kinds[3] if spurious else kinds[1] if place in own else kinds[2]
            cells.append({"task": f"task {t + 1}", "feature": place + 1, "kind": kind})
    colour = alt.Color("kind:N", title=None, sort=None, scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())))
    grid = alt.Chart(pl.DataFrame(cells), width=26 * problem.dim, height=28 * tasks, title="data of the tasks")
    features = alt.X("feature:O", title="feature z", axis=alt.Axis(labelAngle=0))
    drawn = grid.mark_rect(stroke="white", strokeWidth=2).encode(
        x=features, y=alt.Y("task:N", title=None), color=colour
    )
    mixed = _set_weights(m, {"arm": "mixture", "tasks": tasks}, tasks, [1.0, *[1 / tasks] * tasks, 0.0])
    alone = _set_weights(m, {"arm": "single"}, 3, [1.0, 1.0, 0.0, 0.0, 0.0])
    below = [
        _weights_chart(frame, title) for frame, title in ((mixed, f"trained on all {tasks}"), (alone, "on one of 3"))
    ]
    return alt.vconcat(drawn, alt.hconcat(*below)).resolve_scale(color="independent")


def _set_weights(m: Measurements[Params], where: dict[str, Any], tasks: int, predicted: list[float]) -> pl.DataFrame:
    """The weights of S, of each task's own set and of U."""
    values = [m.final("shared_weight", **where)]
    values += [m.final("private_weight", number=t + 1, **where) for t in range(tasks)]
    values.append(m.final("spurious_weight", **where))
    names = ["S", *(f"P{t + 1}" for t in range(tasks)), "U"]
    rows = [
        {"set": name, "predicted": level, "seed": seed, "value": value}
        for name, level, found in zip(names, predicted, values, strict=True)
        for seed, value in found.by_seed.items()
    ]
    return charts.summarise(pl.DataFrame(rows), "set", "predicted")


def _weights_chart(frame: pl.DataFrame, title: str) -> Any:
    base = alt.Chart(frame, width=170, height=150, title=title).encode(
        x=alt.X("set:N", sort=None, title=None, axis=alt.Axis(labelAngle=0))
    )
    y = alt.Y("mean:Q", title="squared weight", scale=alt.Scale(domain=[0, 1.05]))
    return alt.layer(
        base.mark_rule().encode(y=alt.Y("low:Q", title="squared weight"), y2="high:Q"),
        base.mark_point(filled=True, size=55).encode(y=y),
        base.mark_tick(thickness=2, size=16, color="#d62728").encode(y="predicted:Q"),
    )


@part.figure(
    "spectra",
    caption="Squared singular values of linear encoders trained on mixtures of T linear tasks and on one task alone: "
    "trained (points, mean over seeds with 95 % interval) and the optimum that keeps all features apart (red ticks). "
    "They differ although the trained encoders are optimal: private features of different tasks share directions. By "
    "the blocks of each task the weights agree (table 'weights').",
    shows=("X2b", "C5b", "C5e"),
)
def spectra(m: Measurements[Params]) -> Any:
    charts_ = []
    for tasks in (*m.params.mixture_tasks, 1):
        where: dict[str, Any] = {"arm": "mixture", "tasks": tasks} if tasks > 1 else {"arm": "single"}
        found = m.array("spectrum", **where)
        alpha, beta = even_weights(tasks)
        predicted = [alpha] * m.params.shared + [beta] * (tasks * (m.params.relevant - m.params.shared))
        rows = [
            {"index": i + 1, "seed": seed, "value": float(value)}
            for seed, spectrum in enumerate(found)
            for i, value in enumerate(spectrum)
        ]
        frame = charts.summarise(pl.DataFrame(rows), "index")
        padded = predicted + [0.0] * (len(found[0]) - len(predicted))
        frame = frame.with_columns(optimum=pl.Series(padded))
        title = f"T = {tasks}" if tasks > 1 else "one task alone"
        base = alt.Chart(frame, width=200, height=210, title=title).encode(
            x=alt.X("index:O", title="index", axis=alt.Axis(labelAngle=0))
        )
        y = alt.Y("mean:Q", title="squared singular value", scale=alt.Scale(domain=[0, 1.05]))
        charts_.append(
            alt.layer(
                base.mark_rule().encode(y=alt.Y("low:Q", title="squared singular value"), y2="high:Q"),
                base.mark_point(filled=True, size=40).encode(y=y),
                base.mark_tick(thickness=2, size=12, color="#d62728").encode(y="optimum:Q"),
            )
        )
    return alt.hconcat(*charts_)


@part.table(
    "weights",
    caption="Squared weights after training, by the blocks of each task's Gram matrix, beside the predicted ones: "
    "shared features, private ones (mean over tasks), the largest entry off the diagonal of a block, and spurious "
    "ones.",
    shows=("C5b", "C5c", "C5d", "C5e", "N5", "X3a", "X3b", "X3c", "X3d", "X3e"),
)
def weights(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for tasks in m.params.mixture_tasks:
        where = {"arm": "mixture", "tasks": tasks}
        private = [m.final("private_weight", number=t + 1, **where) for t in range(tasks)]
        rows.append(_row(m, f"even mixture, T = {tasks}", where, private, [1 / tasks] * tasks))
    alone = [m.final("private_weight", arm="single", number=t) for t in (1, 2, 3)]
    rows.append(_row(m, "one task of three", {"arm": "single"}, alone, [1, 0, 0]))
    drawn = [m.final("private_weight", arm="uneven", number=t) for t in (1, 2, 3)]
    program = [m.exact("uneven_private", arm="program", number=t).value for t in (1, 2, 3)]
    rows.append(_row(m, "shares 0.6, 0.3, 0.1", {"arm": "uneven"}, drawn, program))
    for scales in SCALED:
        where = {"arm": "scaled", "scales": scales}
        drawn = [m.final("private_weight", number=t, **where) for t in (1, 2, 3)]
        program = [m.exact("scaled_private", arm="program", scales=scales, number=t).value for t in (1, 2, 3)]
        shared = m.exact("scaled_shared", arm="program", scales=scales).value
        rows.append(_row(m, f"standard deviations, {scales}", where, drawn, program, shared))
    return pl.DataFrame(rows)


def _row(
    m: Measurements[Params],
    name: str,
    where: dict[str, Any],
    private: list[Values],
    predicted: list[float],
    shared: float = 1.0,
) -> dict[str, str]:
    return {
        "pretraining": name,
        "shared": charts.plus_minus(m.final("shared_weight", **where)),
        "shared, predicted": f"{abs(shared):.3f}",
        "private": ", ".join(f"{values.array.mean():.3f}" for values in private),
        "private, predicted": ", ".join(f"{abs(value):.3f}" for value in predicted),
        "off diagonal": f"{m.final('off_diagonal', **where).array.max():.3f}",
        "spurious": f"{m.final('spurious_weight', **where).array.max():.4f}",
    }


@part.table(
    "trained-bounds",
    caption="Trained linear encoders, put through the probe of feature weights, beside what the theory predicts from "
    "the optimal weights: the norm of the smallest exact predictor of a label that is half private, the largest weight "
    "of a spurious coordinate (0 by the theory), the complexity's leading term and the risk bound with ten labels.",
    shows=("C5f", "C5g"),
)
def trained_bounds(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for tasks, where in trained(m):
        alpha, beta = even_weights(tasks)
        leading = leading_complexity(m.params.problem(tasks), alpha, beta, HALF, FEW)
        rows.append(
            {
                "pretraining": "target alone" if tasks == 1 else f"T = {tasks}",
                "predictor norm": charts.plus_minus(m.final("predictor_norm", **where)),
                "norm, predicted": f"{predictor_norm(alpha, beta, 1 - HALF, HALF):.3f}",
                "largest spurious weight": f"{m.final('spurious_weight', **where).array.max():.4f}",
                "leading term": charts.plus_minus(m.final("trained_leading", **where)),
                "leading term, predicted": f"{leading:.3f}",
                "risk bound": charts.plus_minus(m.final("trained_bound", **where), 2),
            }
        )
    return pl.DataFrame(rows)


@part.table(
    "program",
    caption="The convex program behind the optimal weights, solved for even mixtures of T tasks with s shared of r "
    "features each: the largest difference between a squared weight and the predicted one, 1 on shared and 1/T on "
    "private features. Last row: the contrastive losses of two encoders of one mixture on the same sample, one with "
    "all features apart and one of lower rank in which private features of different tasks share directions, differ by "
    "rounding alone (from the least to the largest seed).",
    shows=("C5a", "X2a"),
)
def program(m: Measurements[Params]) -> pl.DataFrame:
    cases = m.rows("weight_error", arm="program")["case"].unique(maintain_order=True)
    rows = [
        ("C5a", f"{case}: largest |weight − predicted|", m.exact("weight_error", arm="program", case=case), "0")
        for case in cases
    ]
    lower = m.exact("rank", arm="equal-optima").value
    same = m.every("loss_difference", arm="equal-optima")
    return charts.by_claim([*rows, ("X2a", f"|difference of losses| at a rank lower by {lower:g}", same, "0")])
