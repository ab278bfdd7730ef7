"""Risk against the number of labels and of tasks, with the bound."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..theory import bound_ratio
from .arms import PRIVATE, Params, part

FULL = "T = {}"


@part.figure(
    "risk",
    caption="Linear tasks: risk (mean squared error, label variance 1) of norm-bounded least squares on the optimal "
    "encoder of T tasks, against the number of labels, for three private shares v₂ of the label. T = 1 is the target's "
    "own encoder, for which there is a closed form while labels are fewer than its r features, 1 − m/r (dashed). With "
    "v₂ = 0.1 it has the highest risk, not the lowest; at 40 labels all risks are 0. The encoder of 32 tasks is at its "
    "worst where shared features alone interpolate (m = s), unless v₂ = 0.1.",
    shows=("C6a", "C6b", "C6c", "C6d", "C6e", "C6i", "N6", "X4b"),
)
def risk(m: Measurements[Params]) -> Any:
    frame = charts.summarise(m.rows("risk", arm="probe"), "private", "tasks", "labels")
    frame = frame.with_columns(name=pl.format(FULL, "tasks"), part=pl.format("v₂ = {}", "private"))
    order = [f"T = {t}" for t in m.params.risk_tasks]
    form = m.rows("specific", arm="probe", tasks=1).unique(["private", "labels"], maintain_order=True)
    form = form.filter(pl.col("labels") < m.params.risk_relevant).select("private", "labels", exact="value")
    frame = frame.join(form, on=["private", "labels"], how="left").sort("private", "tasks", "labels")
    base = alt.Chart(frame, width=200, height=230).encode(
        x=alt.X("labels:Q", title="labels m"),
        color=alt.Color("name:N", title=None, sort=order, legend=alt.Legend(symbolOpacity=1)),
    )
    band = base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", title="risk"), y2="high:Q")
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", title="risk"))
    own = alt.Chart(frame).transform_filter((alt.datum.tasks == 1) & alt.expr.isValid(alt.datum.exact))
    closed = own.mark_line(strokeDash=[5, 4], color="black").encode(x="labels:Q", y=alt.Y("exact:Q", title="risk"))
    return alt.layer(band, line, closed, data=frame).facet(column=alt.Column("part:N", title=None))


@part.figure(
    "bounds",
    caption="Left: absolute error (solid) and the source's risk bound (dashed), for half of the label private: the "
    "bound holds and lies above the error of predicting 0 (dashed). Middle: leading term of the universal bound over "
    "the specific one against the number of tasks (lines), and the measured ratio of risks at m = s labels (points). "
    "Where a point lies below 1 and its line above (v₂ = 0.1), the bounds rank the two encoders the wrong way round. "
    "Right: measured Rademacher complexity over the leading term, the largest over labels and private shares (mean and "
    "range over seeds); at 1 and below no further term is needed.",
    shows=("C6f", "C6g", "C6h", "X4a", "X4c", "N7"),
)
def bounds(m: Measurements[Params]) -> Any:
    names = {"absolute_risk": "measured", "bound": "bound"}
    rows = m.rows(list(names), arm="probe", private=0.5).with_columns(what=pl.col("metric").replace_strict(names))
    frame = charts.summarise(rows, "what", "tasks", "labels").with_columns(name=pl.format(FULL, "tasks"))
    frame = frame.filter(pl.col("mean") > 1e-9)
    order = [f"T = {t}" for t in m.params.risk_tasks]
    left = (
        alt.Chart(frame, width=300, height=250)
        .mark_line(point=True)
        .encode(
            x=alt.X("labels:Q", title="labels m"),
            y=alt.Y("mean:Q", title="absolute error", scale=alt.Scale(type="log")),
            color=alt.Color("name:N", title=None, sort=order),
            strokeDash=alt.StrokeDash("what:N", sort=["measured", "bound"], legend=None),
        )
    )
    trivial = float(m.rows("trivial", arm="probe")["value"][0])
    parts = (left + charts.rules({"predicting 0": trivial}, width=300), _ratios(m), _complexities(m))
    return alt.hconcat(*parts).resolve_scale(color="independent")


def _complexities(m: Measurements[Params]) -> Any:
    """E‖Aξ‖ by draws over its bound by Jensen's inequality."""
    columns = ["seed", "tasks", "private", "labels"]
    both = m.rows("complexity", arm="probe").join(m.rows("leading", arm="probe"), on=columns, suffix="_leading")
    share = both.with_columns(ratio=pl.col("value") / pl.col("value_leading"))
    worst = share.group_by("tasks", "seed").agg(pl.col("ratio").max())
    frame = worst.group_by("tasks").agg(
        mean=pl.col("ratio").mean(), low=pl.col("ratio").min(), high=pl.col("ratio").max()
    )
    base = alt.Chart(frame.sort("tasks"), width=200, height=250).encode(
        x=alt.X("tasks:O", title="tasks T", axis=alt.Axis(labelAngle=0))
    )
    y = alt.Y("mean:Q", title="complexity / leading term", scale=alt.Scale(zero=False))
    bars = base.mark_rule().encode(y=alt.Y("low:Q", title="complexity / leading term"), y2="high:Q")
    return bars + base.mark_point(filled=True, size=60).encode(y=y) + charts.rules({"1": 1.0}, width=200)


def _ratios(m: Measurements[Params]) -> Any:
    tasks = [t for t in m.params.risk_tasks if t > 1]
    labels = min(m.params.risk_labels, key=lambda n: abs(n - m.params.risk_shared))
    rows, curve = [], []
    for private in PRIVATE:
        name = f"v₂ = {private}"
        own = m.final("risk", arm="probe", tasks=1, private=private, labels=labels)
        for t in tasks:
            found = m.final("risk", arm="probe", tasks=t, private=private, labels=labels) / own
            rows.append({"T": t, "name": name, "ratio": float(found.array.mean())})
        top = max(tasks)
        curve += [
            {"T": t, "name": name, "ratio": bound_ratio(m.params.tasks_of(t), private)} for t in range(1, top + 1)
        ]
    colour = alt.Color("name:N", title=None)
    y = alt.Y("ratio:Q", title="universal / specific", scale=alt.Scale(type="log", domain=[0.5, 8]))
    line = alt.Chart(pl.DataFrame(curve), width=260, height=250).mark_line()
    points = alt.Chart(pl.DataFrame(rows)).mark_point(filled=True, size=60)
    x = alt.X("T:Q", title="tasks T", scale=alt.Scale(type="log", base=2))
    return line.encode(x=x, y=y, color=colour) + points.encode(x=x, y=y, color=colour)


@part.table(
    "other-task",
    caption="The encoder of one linear task used for another: mean squared error of least squares against the number "
    "of labels, and what least squares with the private part as noise predicts. The limit is the private share v₂.",
    shows=("C6j", "C6k"),
)
def other_task(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for private in PRIVATE:
        for labels in m.params.floor_labels:
            where = {"arm": "other-task", "labels": labels, "private": private}
            found = charts.plus_minus(m.final("risk", **where))
            rows.append(
                {
                    "v₂": private,
                    "labels": labels,
                    "risk": found,
                    "predicted": round(m.exact("predicted", **where).value, 3),
                    "floor": private,
                }
            )
    return pl.DataFrame(rows)
