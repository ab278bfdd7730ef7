"""Growth in stage one, measured and predicted."""

from __future__ import annotations

import altair as alt

from assay.lab import Measurements

from .arms import Params, part


@part.figure(
    "stage-one",
    caption="Growth per step of frequent and rare features and of noise directions from small weights, measured "
    "(points, all seeds) and predicted (lines), over the frequency ε of the rare ones, for two weight decays. Below 1 "
    "a feature is never learned.",
    shows=("C1c", "C1d", "C1e", "C1f", "C1g"),
)
def stage_one(m: Measurements[Params]) -> alt.HConcatChart:
    rows = m.rows(["growth", "predicted_growth"], arm="stage-one", views="paired")
    frame = rows.pivot("metric", index=["decay", "epsilon", "part", "seed"], values="value")
    parts = []
    for decay in frame["decay"].unique().sort():
        group = frame.filter(decay=decay)
        base = alt.Chart(group, width=270, height=230, title=f"λ = {decay:g}").encode(
            x=alt.X("epsilon:Q", title="ε of rare features"),
            color=alt.Color("part:N", title=None, sort=["frequent", "rare", "noise"]),
        )
        dots = base.mark_point(filled=True, size=35).encode(
            y=alt.Y("growth:Q", title="growth per step", scale=alt.Scale(zero=False))
        )
        parts.append(base.mark_line().encode(y=alt.Y("predicted_growth:Q", title="growth per step")) + dots)
    figure: alt.HConcatChart = alt.hconcat(*parts).resolve_scale(y="shared")
    return figure
