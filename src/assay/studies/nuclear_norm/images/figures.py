"""Gains per method and domain with their intervals, ERM's curve, and the tuning."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.evaluation.domain_report import bootstrap
from assay.lab import Measurements, Values, charts

from .arms import METHODS, SHOWN, Params, part
from .claims import PAIRS, above_curve, accuracy, average, average_above_curve
from .problem import NAMES

TARGETS = (*NAMES, "average")
LEVEL = 0.9


def _of(m: Measurements[Params], cue: str, method: str, target: str) -> Values:
    return average(m, cue, method) if target == "average" else accuracy(m, cue, method, target)


def _interval(values: Values) -> dict[str, float]:
    low, high = bootstrap(values.array, LEVEL)
    return {"gain": float(values.array.mean()), "low": low, "high": high}


@part.figure(
    "gains",
    caption="Accuracy with the nuclear norm minus accuracy without it, for ERM, Mixup and SWAD, by the domain that was "
    "left out and on average over them (paired by seed, with 90 % bootstrap intervals). Trial and step are chosen by "
    "held-out images of the training domains.",
    shows=("C1a", "C1b", "C2a", "C2b", "C2c", "C2d", "X10"),
)
def gains(m: Measurements[Params]) -> Any:
    rows = [
        {
            "cue": f"{cue} cue",
            "method": other,
            "target": target,
            **_interval(_of(m, cue, other, target) - _of(m, cue, base, target)),
        }
        for cue in SHOWN
        for base, other in PAIRS.items()
        for target in TARGETS
    ]
    return _intervals(pl.DataFrame(rows), "gain by the nuclear norm", list(PAIRS.values()))


@part.figure(
    "against-erm",
    caption="Accuracy of every method minus that of ERM, on average over the domains left out and in the reversed one "
    "(paired by seed, 90 % bootstrap intervals). All have the same number of trials.",
    shows=("C1a", "C1b", "X10"),
)
def against_erm(m: Measurements[Params]) -> Any:
    rows = [
        {
            "cue": f"{cue} cue",
            "method": method,
            "target": target,
            **_interval(_of(m, cue, method, target) - _of(m, cue, "ERM", target)),
        }
        for cue in SHOWN
        for method in METHODS[1:]
        for target in ("reversed", "average")
    ]
    frame = pl.DataFrame(rows).rename({"method": "target", "target": "method"})
    return _intervals(frame, "accuracy − that of ERM", ["reversed", "average"])


def _intervals(frame: pl.DataFrame, title: str, order: list[str]) -> Any:
    base = alt.Chart(frame).encode(
        y=alt.Y("target:N", sort=None, title=None),
        color=alt.Color("method:N", sort=order, title=None),
        yOffset=alt.YOffset("method:N", sort=order),
    )
    points = base.mark_point(filled=True, size=55).encode(x=alt.X("gain:Q", title=title))
    bars = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    zero = alt.Chart(frame).mark_rule(strokeDash=[4, 4], color="grey").encode(x=alt.datum(0))
    return (
        alt.layer(zero, bars, points)
        .properties(width=270, height=alt.Step(14))
        .facet(column=alt.Column("cue:N", title=None, sort=None))
        .resolve_scale(x="independent")
    )


# Ten methods, and eight colours: no two have the same colour and shape.
STAR = "M0,-1L.23,-.31L.95,-.31L.36,.12L.59,.81L0,.38L-.59,.81L-.36,.12L-.95,-.31L-.23,-.31Z"
HEXAGON = "M.9,0L.45,.78L-.45,.78L-.9,0L-.45,-.78L.45,-.78Z"
SHAPES = (
    *("circle", "square", "triangle-up", "cross", "diamond", "triangle-right", "triangle-down", "triangle-left"),
    *(STAR, HEXAGON),
)


@part.figure(
    "erm-curve",
    caption="Validation accuracy against accuracy in the reversed domain at every look of the chosen ERM trainings "
    "(lines: means over seeds, in the order of steps), and where each method ends that is chosen by validation "
    "(points). What lies on ERM's curve is had by stopping ERM earlier.",
    shows=("C1c", "C1d"),
)
def erm_curve(m: Measurements[Params]) -> Any:
    panels = []
    for cue in SHOWN:
        where = {"arm": "benchmark", "cue": cue, "target": "reversed"}
        looks = charts.summarise(m.rows(["look_validation", "look_accuracy"], method="ERM", **where), "step", "metric")
        curve = looks.select("step", "metric", "mean").pivot(on="metric", index="step").sort("step")
        ends = charts.summarise(m.rows(["validation", "accuracy"], **where), "method", "metric")
        points = ends.select("method", "metric", "mean").pivot(on="metric", index="method")
        line = (
            alt.Chart(curve, width=310, height=260, title=f"{cue} cue")
            .mark_line(point={"color": "#888"}, color="#888")
            .encode(
                x=alt.X("look_validation:Q", title="validation accuracy", scale=alt.Scale(zero=False)),
                y=alt.Y("look_accuracy:Q", title="accuracy, reversed domain", scale=alt.Scale(zero=False)),
                order="step:Q",
            )
        )
        dots = (
            alt.Chart(points)
            .mark_point(filled=True, size=90)
            .encode(
                x="validation:Q",
                y="accuracy:Q",
                color=alt.Color("method:N", title=None, scale=alt.Scale(domain=list(METHODS))),
                shape=alt.Shape("method:N", title=None, scale=alt.Scale(domain=list(METHODS), range=list(SHAPES))),
            )
        )
        panels.append(line + dots)
    return alt.hconcat(*panels)


@part.table(
    "benchmark",
    caption="Accuracy on the domain that was left out, in percent (mean ± half of the 95 % interval over seeds), the "
    "gain over ERM with its 90 % bootstrap interval, and the gain above ERM's own curve of accuracy outside against "
    "validation accuracy over steps.",
    shows=("C1a", "C1b", "C1c", "C1d", "C2a", "C2b", "C2c", "C2d", "X10", "N5", "N6"),
)
def benchmark(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for cue in SHOWN:
        for method in METHODS:
            row: dict[str, Any] = {"cue": cue, "method": method}
            row |= {target: charts.plus_minus(_of(m, cue, method, target), 1, 100.0) for target in TARGETS}
            if method != "ERM":
                found = _interval(average(m, cue, method) - average(m, cue, "ERM"))
                row["gain over ERM"] = (
                    f"{100 * found['gain']:+.1f} [{100 * found['low']:+.1f}, {100 * found['high']:+.1f}]"
                )
                row["above ERM's curve"] = charts.plus_minus(average_above_curve(m, cue, method), 1, 100.0)
            rows.append(row)
    free = [m.final("accuracy", arm="no-cue", target=target) for target in NAMES]
    rows.append(
        {"cue": "none", "method": "ERM"}
        | {target: charts.plus_minus(values, 1, 100.0) for target, values in zip(NAMES, free, strict=True)}
    )
    return pl.DataFrame(rows)


@part.table(
    "tuning",
    caption="What training-domain validation chose for each method when the reversed domain was left out: geometric "
    "mean over seeds of the rate and of the method's own setting (λ or weight decay), mean step, validation accuracy, "
    "and the gap above ERM's curve there. Every method has the same number of trials.",
    shows=("C1c", "C1d"),
)
def tuning(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for cue in SHOWN:
        for method in METHODS:
            where = {"arm": "benchmark", "cue": cue, "method": method, "target": "reversed"}
            own = "chosen_weight_decay" if method == "ERM-decay" else "chosen_lam"
            has = any(word in method for word in ("-", "CORAL", "IRM"))
            rows.append(
                {
                    "cue": cue,
                    "method": method,
                    "trials": m.params.domain_trials,
                    "rate": f"{_geometric(m.final('chosen_learning_rate', **where)):.1e}",
                    "own setting": f"{_geometric(m.final(own, **where)):.2g}" if has else "–",
                    "step": round(float(m.final("chosen_step", **where).array.mean())),
                    "validation": round(float(m.final("validation", **where).array.mean()), 3),
                    "above ERM's curve": charts.plus_minus(above_curve(m, cue, method, "reversed")),
                }
            )
    return pl.DataFrame(rows)


def _geometric(values: Values) -> float:
    return float(np.exp(np.log(values.array).mean()))


@part.table(
    "zero-strength",
    caption="A control of the benchmark: the seeds in which the nuclear norm at strength 0 trains exactly the weights "
    "that plain ERM trains, bit for bit, and the largest difference of a weight that strength 0.1 makes (from the "
    "least to the largest seed), which shows that the penalty is at work.",
    shows=("N4",),
)
def zero_strength(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for cue in SHOWN:
        same, moved = (m.every(metric, arm="zero-strength", cue=cue) for metric in ("identical", "moved_by_penalty"))
        equal = f"{int(same.values.sum())} of {same.seeds} seeds"
        rows.append({"cue": cue, "equal at strength 0": equal, "difference at strength 0.1": charts.measured(moved)})
    return pl.DataFrame(rows)
