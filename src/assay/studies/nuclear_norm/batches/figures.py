"""Rows of a batch against features: accuracy outside and the ratio of weights."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, NotMeasured, charts

from .arms import Params, part


@part.figure(
    "rows-per-batch",
    caption="The diagonal model trained with the nuclear norm of batches of different size (mean over seeds with its "
    "interval). Left: accuracy outside the training domain. Right: weight of environmental over invariant features, "
    "with the share below which the mean margin outside is positive and the share that few rows lead to. The source's "
    "networks have 0.05 rows per feature.",
    shows=("C8c", "X8"),
)
def rows_per_batch(m: Measurements[Params]) -> Any:
    note = m.notes(arm="rows")[0]
    right = _panel(m, "accuracy", "accuracy outside")
    share = _panel(m, "beta_share", "β/α") + charts.rules(
        {"needed outside": 1 / note["needed_ratio"], "few rows": 1 / note["few_rows_ratio"]}, width=300
    )
    return alt.hconcat(right, share)


def _panel(m: Measurements[Params], metric: str, title: str) -> Any:
    frame = charts.summarise(m.rows(metric, arm="rows"), "rows_share")
    base = alt.Chart(frame, width=300, height=240).encode(
        x=alt.X("rows_share:Q", title="rows per batch/features", scale=alt.Scale(type="log", nice=False))
    )
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", title=title, scale=alt.Scale(domain=[0, 1])))
    return line + base.mark_rule().encode(y="low:Q", y2="high:Q")


@part.table(
    "diagonal",
    caption="The diagonal model trained on samples: mean weights of invariant (α) and environmental (β) features, "
    "environmental features in use, and accuracy outside the training domain.",
    shows=("C7d", "C7e", "C8c", "X8", "N1"),
)
def diagonal(m: Measurements[Params]) -> pl.DataFrame:
    points: list[tuple[str, dict[str, Any]]] = [
        (method, {"arm": "diagonal", "method": method}) for method in ("no penalty", "weight decay")
    ]
    points += [(f"limit of {limit} features", {"arm": "limited", "limit": limit}) for limit in m.params.limits]
    points += [
        (f"nuclear norm, {m.params.rows(share)} rows", {"arm": "rows", "rows_share": share})
        for share in m.params.row_shares
    ]
    rows = []
    for name, where in points:
        try:
            rows.append(
                {
                    "training": name,
                    "α": charts.plus_minus(m.final("alpha", **where), 4),
                    "β": charts.plus_minus(m.final("beta", **where), 4),
                    "environmental in use": f"{m.final('environmental_kept', **where).array.mean():.0f}",
                    "accuracy outside": charts.plus_minus(m.final("accuracy", **where)),
                }
            )
        except NotMeasured:
            continue
    return pl.DataFrame(rows)
