"""What was measured of time and memory."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part

_RATIOS = {
    "prefill_ratio": "prefill",
    "first_token_ratio": "until the first token",
    "token_ratio": "a decoded token",
    "peak_ratio": "peak memory",
}


@part.figure(
    "speed",
    caption="GemFilter on a small random model, as a share of full attention and of SnapKV: seconds of the prefill "
    "(its first pass), until the first token (both passes) and of a decoded token, with 95 % intervals over seeds, and "
    "peak bytes of tensors. Dashed: the share of a full prefill that counted operations predict.",
    shows=("C3j", "C3k", "C3l", "C3m", "C3n", "C3o"),
)
def speed(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows(list(_RATIOS), arm="speed", against=["full", "snapkv"])
    frame = charts.summarise(rows, "metric", "against").with_columns(pl.col("metric").replace_strict(_RATIOS))
    base = alt.Chart(frame, width=alt.Step(60), height=260).encode(
        x=alt.X("metric:N", title=None, sort=list(_RATIOS.values()), axis=alt.Axis(labelAngle=0, labelLimit=120)),
        xOffset=alt.XOffset("against:N"),
    )
    colour = alt.Color("against:N", title="against")
    points = base.mark_point(filled=True, size=70).encode(y=alt.Y("mean:Q", title="GemFilter's share"), color=colour)
    bars = base.mark_rule().encode(y="low:Q", y2="high:Q", color=colour).transform_filter("isValid(datum.low)")
    expected = m.exact("expected_share", arm="speed").value
    return alt.LayerChart(layer=[charts.rules({"predicted": expected}), bars, points])


@part.table(
    "speed",
    caption="Milliseconds of the prefill (GemFilter: its first pass) and of a decoded token, and peak MiB of tensors "
    "until the first token, weights and cache included, on a small random model; mean over seeds. Last, the time of "
    "full attention's prefill over that of the same once more: 1 but for the clock.",
    shows=("C3j", "C3n", "C3o", "C3p", "N10"),
)
def speed_table(m: Measurements[Params]) -> pl.DataFrame:
    made = []
    for method in ("full", "snapkv", "gemfilter"):
        where: dict[str, Any] = {"arm": "speed", "method": method}
        prefill, token = (m.final(name, **where) for name in ("prefill_seconds", "token_seconds"))
        made.append(
            {
                "method": method,
                "prefill ms": charts.plus_minus(prefill, 1, scale=1000),
                "token ms": charts.plus_minus(token, 2, scale=1000),
                "peak MiB": round(m.exact("peak_bytes", **where).value / 2**20, 1),
            }
        )
    made[0]["prefill / itself"] = charts.plus_minus(m.final("prefill_ratio", arm="speed", against="itself"), 2)
    return pl.DataFrame(made)
