"""Amplification by the inner steps against theory."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements

from ..learners import TT, TV
from .arms import Params, part


@part.figure(
    "amplification",
    caption="What J inner steps multiply while everything is small: measured against predicted, s = 4 and 8 and J = "
    "1, 2, 3, 5 (mean over seeds; line: equal). Own noise without a split follows (1 + γ‖ξ‖²/(2hn))^J; the feature "
    "(1 + γπ‖ν‖²/(2h))^J in both; validation noise is not amplified.",
    shows=("C4a", "C4b", "C4d"),
)
def amplification(m: Measurements[Params]) -> alt.LayerChart:
    labels = {
        ("noise", TT): "own noise, train-train",
        ("noise", TV): "validation noise, train-validation",
        ("feature", TT): "feature, train-train",
        ("feature", TV): "feature, train-validation",
    }
    keys = ["energy", "inner", "split"]
    frames = []
    for (kind, split), label in labels.items():
        measured = m.rows(f"{kind}_gain", arm="early-growth", split=split).group_by(keys).agg(pl.col("value").mean())
        predicted = m.rows(f"predicted_{kind}_gain", arm="early-growth", split=split).group_by(keys)
        both = measured.join(predicted.agg(predicted=pl.col("value").mean()), on=keys)
        frames.append(both.with_columns(what=pl.lit(label)))
    frame = pl.concat(frames).sort(*keys, "what")
    ends = pl.DataFrame({"predicted": [0.9, 1.15 * max(frame["predicted"].to_list())]})
    scale = alt.Scale(type="log", nice=False, domain=ends["predicted"].to_list())
    line = alt.Chart(ends).mark_line(color="#999").encode(x="predicted:Q", y="predicted:Q")
    dots = (
        alt.Chart(frame, width=380, height=320)
        .mark_point(filled=True, size=70, opacity=0.85)
        .encode(
            x=alt.X("predicted:Q", title="predicted factor", scale=scale),
            y=alt.Y("value:Q", title="measured factor", scale=scale),
            color=alt.Color("what:N", title=None, sort=list(labels.values()), legend=alt.Legend(labelLimit=260)),
            shape=alt.Shape("what:N", sort=list(labels.values()), legend=None),
            tooltip=["what:N", "energy:Q", "inner:Q", alt.Tooltip("value:Q", format=".3f")],
        )
    )
    return alt.LayerChart(layer=[line, dots])
