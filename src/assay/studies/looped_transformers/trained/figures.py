"""What training finds: errors of trained transformers beside those of the construction."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, NotMeasured, Values, charts

from ..figures import powers_of_ten
from .arms import TRAININGS, Params, part


def _words(point: dict[str, str]) -> str:
    if point["free"] == "step":
        return "step only, task loss"
    return f"from {point['start']}, {point['loss']} loss"


@part.figure(
    "trained",
    caption="After training (an extension of the source): root mean square errors on fresh prompts of the training "
    "length, at the loops of training and at two and four times as many (geometric mean over seeds). Left the error on "
    "the task, right the distance from θ*. The construction takes 1/L of each prompt, trained transformers one step "
    "for all. Trained on the task from the construction, the answer improves while θ* is lost; from random weights, "
    "further loops undo what was learned.",
    shows=("X9a", "X9c", "X9f", "X9g", "X9h", "X9i"),
)
def trained(m: Measurements[Params]) -> alt.HConcatChart:
    frames = []
    for point in TRAININGS:
        for who in ("trained", "construction"):
            rows = m.rows(
                ["task_rms", "parameter_rms"], arm="trained", tested=m.params.compared_examples, who=who, **point
            )
            name = _words(point) if who == "trained" else "construction, 1/L"
            frames.append(rows.with_columns(curve=pl.lit(name)))
    frame = (
        pl.concat(frames)
        .group_by("curve", "metric", "step", maintain_order=True)
        .agg(value=pl.col("value").clip(1e-8).log().mean().exp())
    )
    order = ["construction, 1/L", *(_words(point) for point in TRAININGS)]
    parts = [
        alt.Chart(frame.filter(metric=metric), width=290, height=280, title=title)
        .mark_line(point=True)
        .encode(
            x=alt.X("step:Q", title="loops", axis=alt.Axis(values=frame["step"].unique().sort().to_list())),
            y=alt.Y("value:Q", title="root mean square", **powers_of_ten(frame["value"])),
            color=alt.Color("curve:N", title=None, sort=order),
            tooltip=["curve:N", "step:Q", alt.Tooltip("value:Q", format=".3g")],
        )
        for metric, title in (("task_rms", "task error"), ("parameter_rms", "parameter error"))
    ]
    return alt.hconcat(*parts)


@part.table(
    "trained",
    caption="Trained transformers on fresh prompts (root mean square, geometric mean over seeds): half, the same and "
    "four times the examples of training, and up to four times its loops; beside it the construction with 1/L of each "
    "prompt. The cosine compares the weights with the construction up to scale and shear; the learned step is η·n of "
    "the one that was trained alone.",
    shows=("X9a", "X9b", "X9c", "X9d", "X9e", "X9f", "X9g", "X9h", "X9i"),
)
def trained_table(m: Measurements[Params]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for point in TRAININGS:
        try:
            cosine, step = (m.final(name, arm="trained", **point) for name in ("construction_cosine", "learned_step"))
        except NotMeasured:
            continue
        found = m.rows("task_rms", arm="trained", **point)
        for tested, loops in found.select("tested", "step").unique().sort("tested", "step").iter_rows():
            where = {"arm": "trained", "tested": tested, **point}
            values = {
                f"{who} {what}": _geometric(m.at(metric, loops, who=who, **where))
                for metric, what in (("task_rms", "task"), ("parameter_rms", "θ*"))
                for who in ("trained", "construction")
            }
            rows.append(
                {
                    "training": _words(point),
                    "n": tested,
                    "loops": loops,
                    **values,
                    "cos": charts.plus_minus(cosine, 2),
                    "learned step": charts.plus_minus(step, 3) if point["free"] == "step" else None,
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def _geometric(values: Values) -> float:
    return float(f"{np.exp(np.log(np.maximum(values.array, 1e-12)).mean()):.3g}")
