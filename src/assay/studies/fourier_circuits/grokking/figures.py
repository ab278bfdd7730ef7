"""Figure 4.4 redrawn from our runs: accuracies over training, and the delay between them."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from .arms import SUMS, Params, part

_CURVES = {"train_accuracy": "training", "validation_accuracy": "validation"}
_COLOURS = alt.Scale(range=["#3366aa", "#c0392b"])


def words(m: Measurements[Params], setting: str) -> str:
    """What a setting trains on, with the weight decay where it is not the source's."""
    params = m.params_of(setting)
    decay = f", weight decay {params.decay:g}" if setting.endswith("strong") else ""
    return f"{params.sizes}{decay}"


@part.figure(
    "grokking",
    caption="Figure 4.4: training (blue) and validation accuracy (red) with 95 % intervals over seeds, on half of all "
    "inputs. Grey spans the mean steps at which they reach 0.99; a run that never does counts with its last step, "
    "which ≥ tells. The last panel has the same p and number of training inputs for both k.",
    shows=("C6a", "C6b", "C6c", "C6d", "C6e", "C6f", "C6g", "C6h", "C6i", "C6k", "C6l", "C6m", "C6n"),
)
def grokking(m: Measurements[Params]) -> alt.VConcatChart:
    panels = [_panel(m, setting) for setting in SUMS] + [_equal(m)]
    return alt.vconcat(alt.hconcat(*panels[:3]), alt.hconcat(*panels[3:]))


def _panel(m: Measurements[Params], setting: str) -> alt.LayerChart:
    where = {"arm": "grokking", "setting": setting}
    rows = m.rows(list(_CURVES), **where).with_columns(curve=pl.col("metric").replace_strict(_CURVES))
    frame = charts.summarise(rows, "curve", "step")
    fits, generalises = (float(m.final(f"{name}_step", **where).array.mean()) for name in ("train", "validation"))
    span = alt.Chart(pl.DataFrame({"from": [fits], "to": [generalises]})).mark_rect(color="#bbb", opacity=0.35)
    title = words(m, setting) + _delay_words(m, setting)
    lines = charts.band(
        frame, x="step", y="accuracy", colour="curve", domain=(0, 1), width=210, height=150, title=title
    )
    lines = lines.encode(color=alt.Color("curve:N", title=None, scale=_COLOURS))
    layers: alt.LayerChart = span.encode(x="from:Q", x2="to:Q") + lines
    return layers


def _delay_words(m: Measurements[Params], setting: str) -> str:
    """The geometric mean of validation over training step, as '×3.1' or '×≥ 3.1'; nothing where training never fits."""
    where = {"arm": "grokking", "setting": setting}
    ratio = m.final("log_ratio", **where).array
    if not np.isfinite(ratio).all():
        return ""
    least = "≥ " if m.final("generalised", **where).array.min() < 1 else ""
    return f": ×{least}{10 ** ratio.mean():.1f}"


def _equal(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows(list(_CURVES), arm="equal-counts").with_columns(
        curve=pl.col("metric").replace_strict(_CURVES), k=pl.col("setting").str.replace("equal-", "k = ")
    )
    frame = charts.summarise(rows, "curve", "k", "step")
    params = m.params_of("equal-3")
    title = f"p = {params.modulus}, {params.train_count} training inputs"
    chart: alt.LayerChart = charts.band(
        frame, x="step", y="accuracy", colour="curve", dash="k", domain=(0, 1), width=210, height=150, title=title
    )
    return chart.encode(color=alt.Color("curve:N", title=None, scale=_COLOURS))
