"""The role of λ, drawn against the closed form."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements

from .arms import Params, part
from .theory import regularised_optimum


@part.figure(
    "regularisation",
    caption="All inputs (setting full-k3), penalty λΣ‖θ_i‖^{k+1}, a dot per seed. Left: the normalised margin of the "
    "trained network over γ*; theory has 1 at every λ left of the dashed line, γ*(p−1)/p. Right of the line the zero "
    "network is best, which has no margin. Middle: the norm ‖θ‖ that training ends at, which is zero up to what is "
    "left of descent where the zero network is best. Right: the objective reached and its global minimum in closed "
    "form (line).",
    shows=("C7d", "C7e", "C7f"),
)
def regularisation(m: Measurements[Params]) -> alt.HConcatChart:
    params = m.params_of("full-k3")
    limit = params.threshold
    titles = {"full_margin_ratio": "smallest margin/γ*", "norm": "norm ‖θ‖", "objective": "objective"}
    rows = m.rows(list(titles), arm="regularisation").select("strength", "seed", "metric", "value")
    vanished = (pl.col("strength") >= limit) & (pl.col("metric") == "full_margin_ratio")
    rows = rows.filter(~vanished)
    fine = np.geomspace(float(rows["strength"].to_numpy().min()), float(rows["strength"].to_numpy().max()), 200)
    best = [regularised_optimum(params.modulus, params.terms, float(strength)) for strength in fine]
    x = alt.X("strength:Q", title="λ", scale=alt.Scale(type="log"), axis=alt.Axis(format=".0e", tickCount=5))
    parts = []
    for metric, title in titles.items():
        scale = alt.Scale(domain=[0, 1.05]) if metric == "full_margin_ratio" else alt.Scale()
        dots = alt.Chart(rows.filter(metric=metric), width=230, height=210)
        dots = dots.mark_point(filled=True, opacity=0.6, color="#c0392b")
        chart = dots.encode(x=x, y=alt.Y("value:Q", title=title, scale=scale))
        rule = alt.Chart(pl.DataFrame({"strength": [limit]})).mark_rule(strokeDash=[4, 3], color="#777").encode(x=x)
        if metric == "objective":
            line = alt.Chart(pl.DataFrame({"strength": fine, "value": best})).mark_line(color="#555")
            parts.append(rule + (line.encode(x=x, y="value:Q") + chart))
        else:
            parts.append(rule + chart)
    return alt.hconcat(*parts)
