"""Amplification by the inner steps and growth over the outer ones, against theory."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..learners import TT, TV
from .arms import Params, part


@part.figure(
    "amplification",
    caption="What J inner steps multiply while everything is small: measured against predicted, s = 4 and 8 and J = 1, "
    "2, 3, 5 (mean over seeds; line: equal). Own noise without a split follows (1 + γ‖ξ‖²/(2hn))^J; the feature (1 + "
    "γπ‖ν‖²/(2h))^J in both; validation noise is not amplified.",
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


_RATES = {
    ("outer_noise", TT): "own noise, train-train",
    ("feature", TT): "feature, train-train",
    ("feature", TV): "feature, train-validation",
    ("outer_noise_median", TV): "validation noise, train-validation",
    ("inner_only_noise", TV): "training noise, train-validation",
}


@part.figure(
    "growth-rates",
    caption="Growth per outer step while everything is small, measured over predicted, against the inner steps J for "
    "two noise energies s (mean and 95 % interval over seeds). Feature and noise without a split grow at the rates R_ν "
    "and R_ξ of the formulas. With a split validation noise (median sample) grows at s/(2hKn₂) only, up to the factor "
    "of 2 (dashed) that products between noise vectors may make; training noise, over the same rate, hardly moves.",
    shows=("C4e", "C4f", "C4h", "C4i"),
)
def growth_rates(m: Measurements[Params]) -> alt.HConcatChart:
    frames = [
        m.rows(metric, arm="early-growth", split=split).with_columns(what=pl.lit(label))
        for (metric, split), label in _RATES.items()
    ]
    frame = charts.summarise(pl.concat(frames), "what", "energy", "inner")
    order = list(_RATES.values())
    parts = []
    for energy in frame["energy"].unique().sort():
        base = alt.Chart(frame.filter(energy=energy), width=270, height=260, title=f"s = {energy:g}").encode(
            x=alt.X("inner:O", title="inner steps J", axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("what:N", sort=order),
            color=alt.Color("what:N", title=None, sort=order, legend=alt.Legend(labelLimit=260)),
        )
        bars = base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title="measured/predicted rate"), y2="high:Q")
        dots = base.mark_point(filled=True, size=50, opacity=1).encode(y="mean:Q")
        levels = charts.rules({"as predicted": 1.0, "½": 0.5, "2": 2.0}, width=270)
        parts.append(alt.layer(levels, bars, dots))
    chart: alt.HConcatChart = alt.hconcat(*parts).resolve_scale(y="shared")
    return chart
