"""The prefill's speed-up with its ceiling, and its memory."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, NotMeasured

from . import theory
from .arms import Params, part

_SPEED_UPS = alt.Scale(domain=[1, 2.6], zero=False, nice=False)


@part.figure(
    "cost",
    caption="Operations of a full prefill over those of GemFilter's pass 1, by the cost model with its linear terms. "
    "Dashed: m/r, which no prompt exceeds. The source states 2.4 for all three models.",
    shows=("C3d", "C3i"),
)
def cost(m: Measurements[Params]) -> alt.LayerChart:
    frame = m.rows("speed_up", arm="cost").group_by("model", "length", maintain_order=True).agg(pl.col("value").mean())
    base = alt.Chart(frame, width=420, height=260).encode(
        x=alt.X(
            "length:Q",
            title="prompt length n",
            scale=alt.Scale(type="log", base=2),
            axis=alt.Axis(format=".2~s", values=list(m.params.cost_lengths)),
        ),
        y=alt.Y("value:Q", title="prefill speed-up", scale=_SPEED_UPS),
        color=alt.Color("model:N", title=None, sort=list(theory.MODELS)),
    )
    rows = [(name, theory.ceiling(shape.layers, layer)) for name, (shape, layer) in theory.MODELS.items()]
    limits = pl.DataFrame(rows, schema=["model", "value"], orient="row")
    rule = alt.Chart(limits).mark_rule(strokeDash=[4, 3]).encode(y=alt.Y("value:Q", scale=_SPEED_UPS), color="model:N")
    return alt.LayerChart(layer=[rule, base.mark_line(point=True)])


@part.table(
    "memory",
    caption="Prefill memory by the cost model in GiB (weights and caches, bf16, k = 1024) at 120k tokens. The source "
    "states 30 % less than SnapKV and 70 % less than full attention: reached only when pass 1 loads its layers alone.",
    shows=("C3e", "C3f", "C3h"),
)
def memory(m: Measurements[Params]) -> pl.DataFrame:
    if theory.LONG not in m.params.cost_lengths:
        raise NotMeasured("no prompt of 120k tokens is among the lengths")
    made = []
    for model in theory.MODELS:
        cells: dict[str, Any] = {"model": model}
        for method in ("full", "snapkv", "gemfilter", "filter only"):
            where = {"arm": "cost", "model": model, "length": theory.LONG, "method": method}
            cells[method] = round(m.exact("prefill_bytes", **where).value / 2**30, 1)
        cells["against SnapKV"] = round(cells["filter only"] / cells["snapkv"], 2)
        cells["against full"] = round(cells["filter only"] / cells["full"], 2)
        made.append(cells)
    return pl.DataFrame(made)
