"""What the contrastive update does to weights and risk."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part
from .claims import bound_factor


@part.figure(
    "linear-update",
    caption="Contrastive update of a universal linear encoder on the target's data, against the radius γ it may move "
    "by (1: full recovery). Left: weight √β of the target's private features, measured (points) and by the formula "
    "(line). Right: risk of a linear predictor with s labels, half of the label private; dashed, on the specific "
    "encoder.",
    shows=("C8a", "C8d", "N8"),
)
def linear_update(m: Measurements[Params]) -> Any:
    x = alt.X("reach:Q", title="radius γ / radius of full recovery")
    weights = charts.summarise(m.rows("root_weight", arm="linear-update"), "reach")
    line = m.rows("predicted", arm="linear-update").unique("reach").sort("reach")
    left = alt.layer(
        alt.Chart(line, width=280, height=230).mark_line(color="#777").encode(x=x, y="value:Q"),
        alt.Chart(weights).mark_point(filled=True, size=60).encode(x=x, y=alt.Y("mean:Q", title="√β")),
    )
    risk = charts.summarise(m.rows("risk", arm="linear-update"), "reach")
    base = alt.Chart(risk, width=280, height=230).encode(x=x)
    specific = float(m.rows("specific_risk", arm="linear-update")["value"].to_numpy().mean())
    right = alt.layer(
        base.mark_rule().encode(y=alt.Y("low:Q", title="risk"), y2="high:Q"),
        base.mark_line(point=True).encode(y=alt.Y("mean:Q", title="risk", scale=alt.Scale(zero=True))),
        charts.rules({"specific encoder": specific}, width=280),
    )
    return alt.hconcat(left, right)


@part.table(
    "linear-update",
    caption="Contrastive update of a linear encoder: weights √β measured and predicted, the largest change of another "
    "task's weight, the factor 2 + α/β + β/α of the bound at the measured weights, and the risk with s labels.",
    shows=("C8a", "C8b", "C8c", "C8d"),
)
def update_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for reach in m.params.update_reaches:
        where = {"arm": "linear-update", "reach": reach}
        rows.append(
            {
                "γ / full recovery": reach,
                "√β": charts.plus_minus(m.final("root_weight", **where)),
                "predicted √β": round(m.exact("predicted", **where).value, 3),
                "others' change": f"{m.final('other_change', **where).array.max():.1e}",
                "factor of the bound": charts.plus_minus(bound_factor(m, reach)),
                "risk": charts.plus_minus(m.final("risk", **where)),
            }
        )
    return pl.DataFrame(rows)
