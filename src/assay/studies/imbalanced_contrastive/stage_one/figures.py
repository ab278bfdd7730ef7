"""Growth in stage one, measured and predicted, and the mathematics behind it."""

from __future__ import annotations

import math

import altair as alt
import polars as pl

from assay.lab import Measurements, Values, charts, farthest

from ..problem import MODES
from .arms import DECAYS, Params, part

_KINDS = ["frequent", "rare", "noise"]


@part.figure(
    "stage-one",
    caption="Growth per step of frequent and rare features and of noise directions from small weights, measured "
    "(points, all seeds) and predicted (lines), over the frequency ε of the rare ones, for two weight decays λ. Below "
    "1 a feature is never learned. Right, the control: where the two views of a sample share no features, all shrink "
    "by the weight decay alone (line).",
    shows=("C1c", "C1d", "C1e", "C1f", "C1g", "N1"),
)
def stage_one(m: Measurements[Params]) -> alt.HConcatChart:
    paired = [_growth(m, decay, "paired", f"λ = {decay:g}") for decay in DECAYS]
    control = _growth(m, DECAYS[-1], "unpaired", f"λ = {DECAYS[-1]:g}, views that share nothing")
    figure: alt.HConcatChart = alt.hconcat(*paired, control).resolve_scale(y="shared")
    return figure


def _growth(m: Measurements[Params], decay: float, views: str, title: str) -> alt.LayerChart:
    """Growth over ε under one weight decay; views that share nothing have no predicted pull, only the decay."""
    rows = m.rows(["growth", "predicted_growth"], arm="stage-one", views=views, decay=decay)
    frame = rows.pivot("metric", index=["epsilon", "part", "seed"], values="value")
    lines = frame if views == "paired" else frame.filter(pl.col("part") == "noise")
    x = alt.X("epsilon:Q", title="ε of rare features")
    y = alt.Y("growth:Q", title="growth per step", scale=alt.Scale(zero=False))
    colour = alt.Color("part:N", title=None, sort=_KINDS, scale=alt.Scale(domain=_KINDS))
    dots = alt.Chart(frame, width=230, height=230, title=title).mark_point(filled=True, size=35)
    line = (
        alt.Chart(lines).mark_line().encode(x=x, y=alt.Y("predicted_growth:Q", title="growth per step"), color=colour)
    )
    return alt.LayerChart(layer=[line, dots.encode(x=x, y=y, color=colour)])


@part.table(
    "stage-one",
    caption="What stage one rests on: the step T₁ at which features hold half of the median neuron's squared norm (ε = "
    "0.3, λ = 0.01), what positive and negative pairs contribute along features and along other directions (α: a "
    "neuron's projection on a feature, κ: the feature's correlation between the views; the token mode that is farthest "
    "from what is expected), and the softmax and the loss near zero weights. Means over seeds with 95 % intervals; the "
    "last row from the least to the largest seed.",
    shows=("C1h", "C1b", "C1n", "C1j", "C1k", "C1l", "C1i", "C1m"),
)
def stage_one_table(m: Measurements[Params]) -> pl.DataFrame:
    where = dict(arm="stage-one", views="paired", decay=0.01, epsilon=0.3)
    ended = m.final("stage_one_end", **where) / m.final("stage_one_predicted", **where)
    whole, half = (m.final("softmax_deviation", arm="logits", init=init) for init in (0.01, 0.005))
    noise = f"0, sampling error {0.1 / math.sqrt(m.params.samples):.1g}"
    negative = f"0, sampling error {1.3 / math.sqrt(m.params.samples):.1g}"
    each = f"0, sampling error {math.sqrt(2 / (0.3 * 0.3 * m.params.samples)):.1g}"
    return charts.by_claim(
        [
            ("C1h", "T₁ measured/predicted by the growth factors, median neuron", ended, "1"),
            ("C1b", "pull of positive pairs/(α κ), mean over features", _worst(m, "moment_over_kappa", 1), "1"),
            ("C1n", "the same, largest |… − 1| of any feature", _worst(m, "largest_moment_deviation", 0), each),
            ("C1j", "largest |pull| outside the features/κ", _worst(m, "largest_noise_over_kappa", 0), noise),
            ("C1k", "largest |pull| of negative pairs/κ", _worst(m, "largest_negative_over_kappa", 0), negative),
            ("C1l", "mean similarity of positive pairs/Σ α² κ", _worst(m, "similarity_over_expected", 1), "1"),
            ("C1i", "softmax − 1/|𝔅|: at weights σ₀ over that at σ₀/2", whole / half, "4"),
            ("C1m", "|loss − log |𝔅|| at zero weights", m.every("zero_loss_deviation", arm="logits"), "0"),
        ]
    )


def _worst(m: Measurements[Params], metric: str, level: float) -> Values:
    """The metric in the token mode in which a seed is farthest from a level."""
    modes = [m.final(metric, arm="pair-moments", token_mode=mode) for mode in MODES]
    return farthest(level, modes, metric)
