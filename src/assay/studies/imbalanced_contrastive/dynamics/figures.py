"""Figures 1 and 6 of the source redrawn, and the kinds of neurons after training."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl
import torch

from assay.lab import Measurements, NotMeasured, charts
from assay.probes.specialisation import lucky_neurons, mixed_neurons

from ..params import Dynamics
from .arms import part


@part.figure(
    "stages",
    caption="Figure 1: the purest neuron of each seed (geometric mean over seeds): its projection on its dominant "
    "feature, on the median other feature and on a noise direction (root mean square), how much of its energy lies in "
    "features, and what becomes of noise (mean and 95 % interval): the norm outside the features of the same neuron "
    "over that at the start, which should stay near 1, and the root mean square of noise directions in the median "
    "neuron as a share of ‖w‖/√d₁, which should fall below one half. Stage 1 ends where biases are switched on, near "
    "the step at which features hold half of the energy; stage 3 begins where the dominant projection grows at a tenth "
    "of its initial rate.",
    shows=("C3a", "C3b", "C3c", "C3d", "C3e", "C3f", "C3l"),
)
def stages(m: Measurements[Dynamics]) -> alt.HConcatChart:
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
    figure: alt.HConcatChart = alt.hconcat(left + rule, right + rule, _noise(m) + rule).resolve_scale(
        color="independent"
    )
    return figure


def _noise(m: Measurements[Dynamics]) -> alt.LayerChart:
    """The purest neuron's norm outside the features over its start, and noise directions of the median neuron."""
    where = dict(arm="dynamics", attention="softmax")
    start = m.at("noise_norm", 0, **where).by_seed
    norm = m.curve("noise_norm", **where).with_columns(
        value=pl.col("value") / pl.col("seed").replace_strict(start), what=pl.lit("norm outside features/start")
    )
    share = m.curve("noise_rms", **where).with_columns(
        value=pl.col("value") * m.params.dynamics_dim**0.5, what=pl.lit("noise direction × √d₁/‖w‖")
    )
    frame = charts.summarise(pl.concat([norm, share], how="diagonal"), "what", "step")
    base = alt.Chart(frame, width=250, height=260).encode(
        x=alt.X("step:Q", title="step"),
        color=alt.Color(
            "what:N", title=None, sort=None, legend=alt.Legend(orient="bottom", columns=1, symbolType="stroke")
        ),
    )
    y = alt.Y("low:Q", title="noise, relative", scale=alt.Scale(domainMin=0))
    layers = [base.mark_area(opacity=0.2).encode(y=y, y2="high:Q"), base.mark_line().encode(y="mean:Q")]
    return alt.LayerChart(layer=[*layers, charts.rules({"½": 0.5}, width=250)])


def _stage_ends(dominant: pl.DataFrame, bias_on: int) -> list[int]:
    """The steps at which stages one and two end; the second only where growth has slowed to a tenth."""
    curve = dominant.sort("step").with_columns(rate=pl.col("value").log().diff() / pl.col("step").diff()).drop_nulls()
    slow = curve.filter((pl.col("step") > bias_on) & (pl.col("rate") < 0.1 * curve["rate"][0]))["step"]
    return [bias_on, *([int(slow[0])] if len(slow) else [])]


@part.figure(
    "heat-map",
    caption="Figure 6: squared cosine of every neuron with every feature in seed 0 (rare features right of the line). "
    "Stars are lucky neurons, circles mixed ones; neurons are sorted by their strongest feature. A lucky neuron may "
    "also count as mixed when its second feature has cos² ≥ 0.1 and is five times weaker.",
    shows=("C7j", "C7k", "C7l", "C7m"),
)
def heat_map(m: Measurements[Dynamics]) -> alt.LayerChart | alt.FacetChart:
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


@part.table(
    "specialists",
    caption="Neurons after training (Figure 6 and variants): lucky neurons in all and per frequent and rare feature, "
    "mixed ones, features per neuron (cos² ≥ 0.1), for both attentions and other rules for the bias. Silent: the share "
    "of neurons that answer no sample, counted under the other rules alone.",
    shows=("C7j", "C7k", "C7l", "C2f"),
)
def specialists(m: Measurements[Dynamics]) -> pl.DataFrame:
    columns = {
        "lucky": "lucky",
        "mixed": "mixed",
        "lucky per frequent": "lucky_per_frequent",
        "lucky per rare": "lucky_per_rare",
        "features per neuron": "features_per_neuron",
        "final loss": "loss",
    }
    conditions = [(f"{a} attention", dict(arm="dynamics", attention=a)) for a in ("softmax", "uniform")]
    conditions += [(f"uniform, bias {b}", dict(arm="other-biases", bias_rule=b)) for b in ("none", "printed")]
    rows = []
    for name, where in conditions:
        try:
            found = {title: charts.plus_minus(m.final(metric, **where), 2) for title, metric in columns.items()}
        except NotMeasured:
            continue
        other = where["arm"] == "other-biases"
        found["silent"] = charts.plus_minus(m.final("silent", **where), 2) if other else "–"
        rows.append({"training": name, **found})
    return pl.DataFrame(rows)
