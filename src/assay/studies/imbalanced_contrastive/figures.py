"""Figures 1 to 6 of the source redrawn, the pruning experiment, stage one, capacity and images."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl
import torch

from assay.lab import Measurements, charts
from assay.probes.specialisation import lucky_neurons, mixed_neurons

from . import table_figures  # noqa: F401 (they register themselves)
from .study import study

_RARE = "ε of rare features"


@study.figure(
    "stages",
    caption="Figure 1: the purest neuron of each seed (geometric mean over seeds): its projection on its dominant "
    "feature, on the median other feature and on a noise direction (root mean square), and how much of its energy lies "
    "in features. Stage 1 ends where biases are switched on, near the step at which features hold half of the energy; "
    "stage 3 begins where the dominant projection grows at a tenth of its initial rate.",
)
def stages(m: Measurements) -> alt.HConcatChart:
    where = dict(arm="dynamics", attention="softmax")
    names = {"dominant": "dominant feature", "other": "median other feature", "noise_direction": "noise direction"}
    rows = m.rows(list(names), **where).filter(pl.col("value") > 0)
    frame = rows.group_by("metric", "step", maintain_order=True).agg(value=pl.col("value").log().mean().exp())
    frame = frame.with_columns(projection=pl.col("metric").replace_strict(names))
    share = charts.summarise(m.rows("feature_share", **where), "step")
    ends = [0, *_stage_ends(frame.filter(metric="dominant"), m.params.bias_on)]
    lines = pl.DataFrame({"step": ends, "stage": [f"stage {k + 1}" for k in range(len(ends))]})
    rule = alt.Chart(lines).mark_rule(strokeDash=[4, 3], color="#777").encode(x="step:Q")
    label = alt.Chart(lines).mark_text(align="left", baseline="bottom", dx=3, fontSize=11, color="#555")
    rule = rule + label.encode(x="step:Q", y=alt.value(-2), text="stage:N")
    legend = alt.Legend(orient="bottom", columns=3, symbolType="stroke")
    left = alt.Chart(frame, width=330, height=260).mark_line()
    left = left.encode(
        x=alt.X("step:Q", title="step"),
        y=alt.Y("value:Q", title="|projection|", scale=alt.Scale(type="log")),
        color=alt.Color("projection:N", title=None, sort=list(names.values()), legend=legend),
    )
    base = alt.Chart(share, width=250, height=260).encode(x=alt.X("step:Q", title="step"))
    axis = alt.Y("low:Q", title="share of energy in features", scale=alt.Scale(domain=[0, 1]))
    right = base.mark_area(opacity=0.2).encode(y=axis, y2="high:Q") + base.mark_line().encode(y="mean:Q")
    return alt.hconcat(left + rule, right + rule)


def _stage_ends(dominant: pl.DataFrame, bias_on: int) -> list[int]:
    """The steps at which stages one and two end; the second only where growth has slowed to a tenth."""
    curve = dominant.sort("step").with_columns(rate=pl.col("value").log().diff() / pl.col("step").diff()).drop_nulls()
    slow = curve.filter((pl.col("step") > bias_on) & (pl.col("rate") < 0.1 * curve["rate"][0]))["step"]
    return [bias_on, *([int(slow[0])] if len(slow) else [])]


@study.figure(
    "stage-one",
    caption="Growth per step of frequent and rare features and of noise directions from small weights, measured "
    "(points, all seeds) and predicted (lines), over the frequency ε of the rare ones, for two weight decays. Below 1 "
    "a feature is never learned.",
)
def stage_one(m: Measurements) -> alt.HConcatChart:
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
    return alt.hconcat(*parts).resolve_scale(y="shared")


def _sweep(m: Measurements, metric: str, arm: str, y: str, noise: tuple[float, ...], **where: Any) -> alt.LayerChart:
    rows = m.rows(metric, arm=arm, nsr=list(noise), **where).with_columns(
        noise=pl.col("nsr").map_elements(lambda n: f"NSR {n:g}", return_dtype=pl.String)
    )
    frame = charts.summarise(rows.sort("nsr", "epsilon"), "noise", "epsilon").rename({"epsilon": _RARE})
    return charts.band(frame, x=_RARE, y=y, colour="noise", width=280, height=240)


@study.figure(
    "alignment",
    caption="Figures 2 and 3: number of neurons with |cos| ≥ 0.3 per rare feature (left) and the largest |cos| (right) "
    "over ε, per noise level (mean and 95 % interval over seeds; the levels nearly coincide).",
)
def alignment(m: Measurements) -> alt.HConcatChart:
    return alt.hconcat(
        _sweep(m, "aligned", "alignment", "aligned neurons per rare feature", m.params.noise),
        _sweep(m, "best", "alignment", "largest |cos| with a rare feature", m.params.noise),
    )


@study.figure(
    "representation",
    caption="Figures 4 and 5: mean cosine of positive test pairs (left) and test error of a linear head (right) over "
    "ε, per noise level, on samples in which all features are equally frequent.",
)
def representation(m: Measurements) -> alt.HConcatChart:
    levels = tuple(m.params.noise_high)
    return alt.hconcat(
        _sweep(m, "pair_cosine", "representation", "cosine of positive pairs", levels[-3:], test="balanced"),
        _sweep(m, "regression_error", "representation", "mean squared error", levels[:3], test="balanced"),
    ).resolve_scale(color="independent")


@study.figure(
    "tests",
    caption="Why the tests are balanced: the same encoders on test samples with rare features as rare as in training. "
    "There the error is no measure of how well rare features are learned: the rarer they are, the less they count, and "
    "the less rare, the better they are learned, so that it is largest in between.",
)
def tests(m: Measurements) -> alt.HConcatChart:
    nsr = m.params.noise_high[1]
    rows = m.rows(["pair_cosine", "regression_error"], arm="representation", nsr=nsr)
    parts = []
    for metric, title in (("pair_cosine", "cosine of positive pairs"), ("regression_error", "mean squared error")):
        frame = charts.summarise(rows.filter(metric=metric).sort("epsilon"), "test", "epsilon").rename(
            {"epsilon": _RARE}
        )
        parts.append(charts.band(frame, x=_RARE, y=title, colour="test", width=270, height=220))
    return alt.hconcat(*parts)


@study.figure(
    "heat-map",
    caption="Figure 6: squared cosine of every neuron with every feature in seed 0 (rare features right of the line). "
    "Stars are lucky neurons, circles mixed ones; neurons are sorted by their strongest feature. A lucky neuron may "
    "also count as mixed when its second feature has cos² ≥ 0.1 and is five times weaker.",
)
def heat_map(m: Measurements) -> alt.LayerChart:
    squares = m.array("squared_cosines", arm="dynamics", attention="softmax")[0]
    cosines = torch.from_numpy(squares).sqrt()
    lucky, mixed = lucky_neurons(cosines).numpy(), mixed_neurons(cosines).numpy()
    order = np.lexsort((-squares.max(1), squares.argmax(1)))
    marks = [f"{i} {'★' if lucky[i] else '○' if mixed[i] else ' '}" for i in order]
    neurons, features = squares.shape
    frame = pl.DataFrame(
        {
            "neuron": [mark for mark in marks for _ in range(features)],
            "feature": list(range(features)) * neurons,
            "value": squares[order].reshape(-1),
        }
    )
    x = alt.X("feature:O", title="feature", axis=alt.Axis(labelAngle=0))
    y = alt.Y("neuron:O", sort=marks, title="neuron")
    cells = (
        alt.Chart(frame, width=36 * features, height=17 * neurons)
        .mark_rect()
        .encode(
            x=x,
            y=y,
            color=alt.Color("value:Q", title="cos²", scale=alt.Scale(scheme="blues", domain=[0, 1])),
            tooltip=["neuron:O", "feature:O", alt.Tooltip("value:Q", format=".3f")],
        )
    )
    border = alt.Chart(pl.DataFrame({"feature": [m.params.majority]})).mark_rule(color="#d55e00", strokeWidth=2)
    return alt.layer(cells, border.encode(x=alt.X("feature:O", bandPosition=0)))


@study.figure(
    "coefficients",
    caption="Rare over frequent coefficients while training goes on, from random weights without pruning; dotted: ε. "
    "By the printed scaling every curve should reach its dotted line and stay: look whether it is passed through.",
)
def coefficients(m: Measurements) -> alt.LayerChart:
    rows = m.rows("energy_ratio", arm="longer").with_columns(
        frequency=pl.col("epsilon").map_elements(lambda e: f"ε = {e:g}", return_dtype=pl.String)
    )
    frame = charts.summarise(rows.sort("epsilon", "step"), "frequency", "step")
    levels = rows.select("frequency", value=pl.col("epsilon")).unique().sort("value")
    rule = alt.Chart(levels).mark_rule(strokeDash=[2, 3]).encode(y="value:Q", color=alt.Color("frequency:N", sort=None))
    return charts.band(frame, x="step", y="rare/frequent coefficient", colour="frequency", width=480) + rule


@study.figure(
    "capacity",
    caption="Share of rare features that have a lucky neuron of their own (left) and mean number of features per "
    "neuron, cos² ≥ 0.1 (right), over the width, after training.",
)
def capacity(m: Measurements) -> alt.HConcatChart:
    rows = m.rows(["covered", "features_per_neuron"], arm="widths").with_columns(
        frequency=pl.col("epsilon").map_elements(lambda e: f"ε = {e:g}", return_dtype=pl.String)
    )
    parts = []
    for metric, title, domain in (
        ("covered", "rare features with a neuron", (0.0, 1.0)),
        ("features_per_neuron", "features per neuron", None),
    ):
        frame = charts.summarise(rows.filter(metric=metric).sort("epsilon", "neurons"), "frequency", "neurons")
        chart = charts.band(frame, x="neurons", y=title, colour="frequency", domain=domain, width=270, height=230)
        ticks = alt.Axis(values=list(m.params.widths))
        parts.append(chart.encode(x=alt.X("neurons:Q", scale=alt.Scale(type="log", nice=False), axis=ticks)))
    return alt.hconcat(*parts)


@study.figure(
    "pruning",
    caption="From a constructed stage-three state, λ = 0.01: the rare feature's mean coefficient (solid) and that of "
    "the frequent ones (dashed), above, and the share of the rare feature's neurons among the pruned, below (a running "
    "mean over five looks, since it oscillates).",
)
def pruning(m: Measurements) -> alt.VConcatChart:
    decay = m.params.pruned_decays[0]
    order = ["plain", "logit-masked", "straight-through"]
    rows = m.rows(["rare_coefficient", "frequent_coefficient"], arm="pruning", decay=decay).with_columns(
        kind=pl.when(pl.col("metric") == "rare_coefficient").then(pl.lit("rare")).otherwise(pl.lit("frequent"))
    )
    frame = charts.summarise(rows, "epsilon", "gradient", "kind", "step")
    share = charts.summarise(m.rows("pruned_rare_share", arm="pruning", decay=decay), "epsilon", "gradient", "step")
    share = share.sort("epsilon", "gradient", "step").with_columns(
        smooth=pl.col("mean").rolling_mean(5, min_samples=1).over("epsilon", "gradient")
    )
    colour = alt.Color("gradient:N", title=None, sort=order, scale=alt.Scale(domain=order))
    upper, lower = [], []
    for epsilon in m.params.pruned_rare:
        base = alt.Chart(frame.filter(epsilon=epsilon), width=210, height=200, title=f"ε = {epsilon:g}")
        dash = alt.StrokeDash("kind:N", title=None, sort=["rare", "frequent"], scale=alt.Scale(range=[[1, 0], [4, 3]]))
        y = alt.Y("mean:Q", title="mean coefficient")
        upper.append(base.mark_line().encode(x=alt.X("step:Q", title=None), y=y, color=colour, strokeDash=dash))
        below = alt.Chart(share.filter(epsilon=epsilon), width=210, height=110)
        y = alt.Y("smooth:Q", title="rare among pruned", scale=alt.Scale(domain=[0, 1]))
        lower.append(below.mark_line().encode(x=alt.X("step:Q", title="step"), y=y, color=colour))
    return alt.vconcat(alt.hconcat(*upper).resolve_scale(y="shared"), alt.hconcat(*lower))


@study.figure(
    "one-step",
    caption="What masking 1, 2, ... of the rare feature's neurons adds to the growth of the rare feature and of the "
    "others in a single step at the constructed state (mean and 95 % interval over seeds).",
)
def one_step(m: Measurements) -> alt.HConcatChart:
    names = {"rare_boost": "rare feature", "other_boost": "other features"}
    rows = m.rows(list(names), arm="one-step", scale=1.0).with_columns(feature=pl.col("metric").replace_strict(names))
    parts = []
    for epsilon in m.params.pruned_rare:
        group = rows.filter(epsilon=epsilon)
        frame = charts.summarise(group.sort("feature", "pruned"), "feature", "pruned").rename(
            {"pruned": "pruned neurons"}
        )
        chart = charts.band(
            frame, x="pruned neurons", y="added growth per unit rate", colour="feature", width=190, height=200,
            title=f"ε = {epsilon:g}",
        )  # fmt: skip
        ticks = alt.Axis(values=list(range(1, m.params.per_feature + 1)), format="d")
        parts.append(chart.encode(x=alt.X("pruned neurons:Q", axis=ticks)))
    return alt.hconcat(*parts).resolve_scale(y="shared")


@study.figure(
    "images",
    caption="Long-tailed images: probe accuracy (left) and head–tail gap Δ₂₀ (right) with and without pruning, every "
    "seed a dot, means as bars.",
)
def images(m: Measurements) -> alt.HConcatChart:
    rows = m.rows(["accuracy", "gap"], arm="images").with_columns(
        ratio=pl.col("imbalance").map_elements(lambda r: f"ρ = {r:g}", return_dtype=pl.String)
    )
    order = ["none", "logit-masked", "self-competitor"]
    parts = []
    for metric, title in (("accuracy", "probe accuracy"), ("gap", "gap, head − tail")):
        base = alt.Chart(rows.filter(metric=metric)).encode(
            x=alt.X("pruning:N", sort=order, title=None, axis=alt.Axis(labelAngle=-30)),
            color=alt.Color("pruning:N", sort=order, legend=None),
        )
        y = alt.Y("value:Q", title=title, scale=alt.Scale(zero=False))
        dots = base.mark_point(filled=True, opacity=0.6, size=40).encode(y=y)
        bars = base.mark_tick(thickness=3, size=26).encode(y=alt.Y("mean(value):Q", title=title))
        layered = alt.layer(dots, bars).properties(width=130, height=220)
        parts.append(layered.facet(alt.Column("ratio:N", title=None, sort=None)))
    return alt.hconcat(*parts)
