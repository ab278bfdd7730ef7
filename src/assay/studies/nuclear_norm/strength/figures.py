"""Ranks of features and accuracy outside by the strength of the penalty, and spectra with and without it."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from ..images.arms import SHOWN
from .arms import PENALTIES, Params, part

QUANTITIES = {
    "stable_rank": "stable rank ‖F‖_F²/‖F‖₂²",
    "centred_rank": "stable rank, centred",
    "printed_rank": "printed ‖F‖_F²/‖F‖₂",
    "norm": "nuclear norm over rows",
    "accuracy": "accuracy",
    "validation": "validation accuracy",
}
NONE = 0.003  # where no penalty stands on a logarithmic axis


@part.figure(
    "rank-and-strength",
    caption="Features outside the training domains and accuracy in the reversed one, by the strength λ of the nuclear "
    "norm (mean over seeds with its interval; no penalty at the left end). The penalised norm and the printed ratio "
    "fall with the scale of the features; the stable rank is what no scale moves.",
    shows=("C3a", "C3b", "C3c", "C3d", "C3e", "C3f", "X11", "X12"),
)
def rank_and_strength(m: Measurements[Params]) -> Any:
    rows = m.rows(list(QUANTITIES), arm="strength", penalty="nuclear norm")
    rows = rows.with_columns(strength=pl.max_horizontal(pl.col("lam"), pl.lit(NONE)))
    frame = charts.summarise(rows, "cue", "metric", "strength")
    panels = []
    for metric, title in QUANTITIES.items():
        base = alt.Chart(frame.filter(pl.col("metric") == metric), width=230, height=170).encode(
            x=alt.X("strength:Q", title="λ", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(tickCount=4)),
            color=alt.Color("cue:N", title="cue", sort=None),
        )
        if metric in ("printed_rank", "norm"):  # an interval may reach below zero, which has no logarithm
            panels.append(
                base.mark_line(point=True).encode(y=alt.Y("mean:Q", title=title, scale=alt.Scale(type="log")))
            )
            continue
        scale = alt.Scale(zero=False)
        low = base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", title=title, scale=scale), y2="high:Q")
        panels.append(low + base.mark_line(point=True).encode(y=alt.Y("mean:Q", title=title, scale=scale)))
    return alt.vconcat(alt.hconcat(*panels[:3]), alt.hconcat(*panels[3:]))


@part.figure(
    "rank-at-equal-length",
    caption="Stable rank of features (above) and accuracy (below, trainings with nine tenths of the validation "
    "accuracy without a penalty or more) in the reversed domain against the features' length ‖F‖_F/√rows, for three "
    "penalties of rising strength (means over seeds; the lines meet in the training without a penalty). At equal "
    "length the nuclear norm leaves a lower rank than the Frobenius control; the scale-free norm changes rank without "
    "shrinking. A gain in accuracy by rank would put the nuclear norm above the control at equal length.",
    shows=("X13", "X14", "X15", "X16", "X17", "X18"),
)
def rank_at_equal_length(m: Measurements[Params]) -> Any:
    frame = _means(m, ["stable_rank", "accuracy", "length", "validation"])
    frame = frame.filter((pl.col("length") > 1e-3) & (pl.col("stable_rank") > 0))
    plain = pl.col("validation").filter(pl.col("lam") == 0).first().over("cue")
    classify = frame.filter(pl.col("validation") >= 0.9 * plain)
    rows = []
    for shown, metric, title in (
        (frame, "stable_rank", "stable rank outside"),
        (classify, "accuracy", "accuracy outside"),
    ):
        panels = [_at_length(shown.filter(cue=cue), metric, title).properties(title=f"{cue} cue") for cue in SHOWN]
        rows.append(alt.hconcat(*panels))
    return alt.vconcat(*rows)


def _at_length(frame: pl.DataFrame, metric: str, title: str) -> Any:
    length = alt.X(
        "length:Q", title="length of features", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(tickCount=4)
    )
    return (
        alt.Chart(frame, width=300, height=210)
        .mark_line(point=True)
        .encode(
            x=length,
            y=alt.Y(f"{metric}:Q", title=title, scale=alt.Scale(zero=False)),
            color=alt.Color("penalty:N", title=None, sort=list(PENALTIES)),
            order="lam:Q",
            tooltip=["penalty:N", "lam:Q", alt.Tooltip(f"{metric}:Q", format=".3f")],
        )
    )


def _means(m: Measurements[Params], metrics: list[str]) -> pl.DataFrame:
    """A row per cue, penalty and strength with the means over seeds; every penalty starts from the training without."""
    rows = charts.summarise(m.rows(metrics, arm="strength"), "cue", "penalty", "lam", "metric")
    wide = rows.select("cue", "penalty", "lam", "metric", "mean").pivot(on="metric", index=["cue", "penalty", "lam"])
    start = wide.filter(pl.col("lam") == 0)
    others = [start.with_columns(penalty=pl.lit(name)) for name in PENALTIES[1:]]
    return pl.concat([wide, *others]).sort("cue", "penalty", "lam")


@part.figure(
    "spectra",
    caption="Singular values of the features in the reversed domain over the largest, with and without the nuclear "
    "norm (mean over seeds, on a logarithmic scale; values below a millionth are left out).",
    shows=("X13", "X14"),
)
def spectra(m: Measurements[Params]) -> Any:
    rows = []
    for cue in SHOWN:
        lam = m.notes(arm="strength", cue=cue)[0]["spectrum_strength"]
        for name, shown in (("none", "no penalty"), ("nuclear norm", f"nuclear norm, λ = {lam:g}")):
            values = np.asarray(m.array(f"spectrum: {name}", arm="strength", cue=cue), dtype=float)
            shares = (values / np.maximum(values[:, :1], 1e-30)).mean(0)
            rows += [
                {"cue": cue, "training": shown, "place": place, "share": float(share)}
                for place, share in enumerate(shares, 1)
                if share > 1e-6
            ]
    chart = alt.Chart(pl.DataFrame(rows), width=300, height=230).encode(
        x=alt.X("place:Q", title="place"),
        y=alt.Y("share:Q", title="singular value/largest", scale=alt.Scale(type="log")),
        color=alt.Color("training:N", title=None, sort=None),
    )
    return alt.hconcat(
        *(
            chart.transform_filter(alt.datum.cue == cue).mark_line(point=True).properties(title=f"{cue} cue")
            for cue in SHOWN
        )
    )


@part.table(
    "strengths",
    caption="Trainings by penalty and strength: accuracy in the reversed domain and on held-out images of the training "
    "domains, and the features' normalised nuclear norm, length and ranks outside. All three quantities of Figure 6.5 "
    "stand side by side: the penalty, the printed ratio and the stable rank.",
    shows=("C3a", "C3b", "C3c", "C3d", "X11", "X12", "X13", "X14", "X15", "X16"),
)
def strengths(m: Measurements[Params]) -> pl.DataFrame:
    metrics = ["accuracy", "validation", "norm", "length", "printed_rank", "stable_rank", "centred_rank"]
    frame = _means(m, metrics).filter((pl.col("lam") > 0) | (pl.col("penalty") == "nuclear norm"))
    return frame.select("cue", "penalty", pl.col("lam").alias("λ"), *(pl.col(name).round(3) for name in metrics))


@part.table(
    "accuracy-by-rank",
    caption="What the nuclear norm gains in accuracy in the reversed domain, in percentage points, means over seeds "
    "with 95 % intervals: over the Frobenius control at equal length of features (mean over the strengths at which the "
    "training still classifies), and above ERM's own curve of accuracy there against validation accuracy over steps, "
    "by the strength λ. What lies on that curve is had by stopping ERM earlier.",
    shows=("X17", "X18", "X19", "X20"),
)
def accuracy_by_rank(m: Measurements[Params]) -> pl.DataFrame:
    compared: dict[str, tuple[str, dict[str, Any]]] = {"Frobenius control at equal length": ("matched_accuracy", {})}
    for lam in m.params.strengths:
        compared[f"ERM's curve, λ = {lam:g}"] = ("above_curve", {"penalty": "nuclear norm", "lam": lam})
    rows = []
    for name, (metric, where) in compared.items():
        found = {cue: m.final(metric, arm="strength", cue=cue, **where) for cue in SHOWN}
        rows.append({"over": name} | {f"{cue} cue": charts.measured(values * 100, 3) for cue, values in found.items()})
    return pl.DataFrame(rows)
