"""Figures of hard samples: the number of subclasses across k*, a rule for single samples, and strong noise."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part
from .theory import strong_noise_scales


@part.figure(
    "sweep",
    caption="Error of the coarse network after training, against the number of subclasses k (mean and interval over "
    "seeds). Above k* = s*/(s†ᾱ†), where faint distractors outweigh the subclass features, hard samples are lost.",
    shows=("C2d", "C2i", "N1"),
)
def sweep(m: Measurements[Params]) -> alt.LayerChart:
    words = {"easy_error": "easy samples", "hard_error": "hard samples"}
    rows = m.rows(list(words), arm="sweep").with_columns(samples=pl.col("metric").replace_strict(words))
    frame = charts.summarise(rows, "samples", "k")
    base = alt.Chart(frame, width=420, height=270).encode(x=_subclasses(m), color=alt.Color("samples:N", title=None))
    bars = base.mark_rule(strokeWidth=2).encode(
        y=alt.Y("low:Q", title="error", scale=alt.Scale(domain=[0, 1], clamp=True)), y2="high:Q"
    )
    line = base.mark_line(point=True).encode(y="mean:Q")
    return alt.LayerChart(layer=[bars, line, *_critical(m)])


def _subclasses(m: Measurements[Params]) -> alt.X:
    """The numbers of subclasses of the sweep on a logarithmic axis."""
    scale, ticks = alt.Scale(type="log", nice=False), alt.Axis(values=list(m.params.sweep))
    return alt.X("k:Q", title="subclasses k", scale=scale, axis=ticks)


def _critical(m: Measurements[Params], down: int = 0) -> list[alt.Chart]:
    """A dashed line at k* and its name, so many pixels below the top."""
    critical = m.params.sweep_critical
    mark = alt.Chart(pl.DataFrame({"k": [critical], "text": [f"k* = {critical:.3g}"]}))
    rule = mark.mark_rule(strokeDash=[4, 3], color="#777").encode(x="k:Q")
    word = mark.mark_text(align="right", dx=-4, baseline="top", color="#555")
    return [rule, word.encode(x="k:Q", y=alt.value(down), text="text:N")]


@part.figure(
    "rule",
    caption="How often a rule from the neurons' responses to features tells whether the coarse network gets a hard "
    "sample wrong, and how often the better of always and never does. Left: against the number of subclasses k (mean "
    "and interval over seeds); far from k* all samples come out alike and always or never is as good. Right: each "
    "seed's mean over the two k next to k*, where both outcomes occur (not drawn where no k lies on one side of it).",
    shows=("C2c", "C2h"),
)
def single_samples(m: Measurements[Params]) -> alt.HConcatChart:
    words = {"constant_agreement": "always or never", "rule_agreement": "rule"}
    rows = m.rows(list(words), arm="sweep").with_columns(foretold=pl.col("metric").replace_strict(words))
    order, colours = list(words.values()), alt.Scale(range=["#999", "#c0392b"])
    colour = alt.Color("foretold:N", title=None, sort=order, scale=colours)
    base = alt.Chart(charts.summarise(rows, "foretold", "k"), width=360, height=250).encode(
        x=_subclasses(m), color=colour
    )
    y = alt.Y("low:Q", title="share of hard samples foretold", scale=alt.Scale(domainMax=1, zero=False, clamp=True))
    bars = base.mark_rule(strokeWidth=2).encode(y=y, y2="high:Q")
    left = alt.layer(bars, base.mark_line(point=True).encode(y="mean:Q"), *_critical(m, down=230))
    if not m.params.around_critical:
        return alt.hconcat(left)
    near = rows.filter(pl.col("k").is_in(m.params.around_critical))
    pairs = near.group_by("foretold", "seed", maintain_order=True).agg(pl.col("value").mean())
    seeds = alt.Chart(pairs, width=170, height=250).encode(
        x=alt.X("foretold:N", title=None, sort=order, axis=alt.Axis(labelAngle=0)), y=alt.Y("value:Q", title=None)
    )
    lines = seeds.mark_line(color="#ccc").encode(detail="seed:N")
    right = alt.layer(lines, seeds.mark_point(filled=True, size=50, opacity=0.9).encode(color=colour))
    chart: alt.HConcatChart = alt.hconcat(left, right).resolve_scale(y="shared")
    return chart


@part.figure(
    "strong-noise",
    caption="The second distractor: hard samples whose only disturbance is one patch of noise of deviation σ_ζ*. The "
    "coarse network begins to err near s*/k, the fine one near s*/√(2 log 2k) (dashed).",
    shows=("C2e",),
)
def strong_noise(m: Measurements[Params]) -> alt.LayerChart:
    words = {"coarse": "coarse labels", "fine": "fine labels"}
    rows = m.rows("hard_error", arm="strong-noise").with_columns(network=pl.col("labels").replace_strict(words))
    frame = charts.summarise(rows, "network", "strong")
    base = alt.Chart(frame, width=400, height=250).encode(
        x=alt.X("strong:Q", title="σ of the strong noise", scale=alt.Scale(type="log", nice=False)),
        color=alt.Color("network:N", title=None),
    )
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", title="error on hard samples"))
    scales = strong_noise_scales(m.params.subclasses, m.params.feature_patches)
    marks = alt.Chart(pl.DataFrame({"strong": list(scales)}))
    rules = marks.mark_rule(strokeDash=[3, 3], color="#777").encode(x="strong:Q")
    return alt.LayerChart(layer=[line, rules])
