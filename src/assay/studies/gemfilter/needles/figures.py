"""What the real model keeps per layer, what it answers, and which tokens one prompt is left with."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, NotMeasured, charts
from assay.methods.gemfilter.layers import LayerScan, stages_of

from ..planted.figures import stage_bands
from .arms import Params, part

METHODS = ["full", "snapkv", "h2o", "one-run", "gemfilter", "text rule", "text rule, question kept", "random"]


def recall_panel(rows: pl.DataFrame, rule: str, title: str) -> alt.LayerChart:
    """Curves per rule over (rule, layer, seed, value), with the stages by one rule under them. A share lies between 0
    and 1, and its interval is drawn to there."""
    frame = charts.summarise(rows, "layer", "rule").with_columns(pl.col("low", "high").clip(0, 1))
    means = frame.filter(rule=rule).sort("layer")["mean"].to_list()
    curves = charts.band(frame, x="layer", y="needle recall", colour="rule", domain=(-0.15, 1), height=240)
    both = alt.LayerChart(layer=[stage_bands(stages_of(means), strip=True), curves])
    panel: alt.LayerChart = both.resolve_scale(color="independent").properties(width=330, height=240, title=title)
    return panel


def scans_chart(scans: Mapping[int, LayerScan], keep: Mapping[int, int]) -> alt.HConcatChart:
    """The same on any model, for ``assay needle --layers``: a panel per prompt length, with the stages by the rule that
    finds the needles in most layers; intervals are over prompts."""
    parts = []
    for length, scan in scans.items():
        rows = [
            (rule, layer, number, value)
            for rule in scan.rules
            for layer, values in enumerate(scan.of(rule).tolist())
            for number, value in enumerate(values)
        ]
        frame = pl.DataFrame(rows, schema=["rule", "layer", "seed", "value"], orient="row")
        rule = scan.best_rule()
        parts.append(recall_panel(frame, rule, f"n = {length}, k = {keep[length]}; stages by the rule {rule}"))
    return alt.hconcat(*parts)


@part.figure(
    "recall",
    caption="Real model: share of the needle's tokens among the kept n/8, per layer and rule, with 95 % intervals over "
    "seeds; a panel per length. The strip: the three stages by the chosen rule. The source's rule is logits.",
    shows=("C1c", "C1d", "C4h"),
)
def recall(m: Measurements[Params]) -> alt.HConcatChart:
    parts = []
    for length in m.params.real_lengths:
        rows = m.rows("recall", arm="needles", length=length)
        parts.append(recall_panel(rows, m.params.filter_rule, f"n = {length}, k = {length // 8}"))
    return alt.hconcat(*parts)


@part.figure(
    "needles",
    caption="Real model: share of needle prompts answered, depth against length, per method, all at k = n/8. Prompts a "
    "cell: seeds over depths.",
    shows=("C2g", "C6c", "C6d", "N8"),
)
def heat_map(m: Measurements[Params]) -> alt.FacetChart:
    frame = needle_cells(m).filter(pl.col("method").is_in(METHODS))
    base = alt.Chart(frame).encode(
        x=alt.X("length:O", title="prompt length", axis=alt.Axis(labelAngle=0)), y=alt.Y("depth:O", title="depth")
    )
    tiles = base.mark_rect().encode(
        color=alt.Color("value:Q", title="answered", scale=alt.Scale(domain=[0, 1], scheme="blues"))
    )
    label = base.mark_text(fontSize=11).encode(
        text=alt.Text("value:Q", format=".2~f"),
        color=alt.condition("datum.value > 0.6", alt.value("white"), alt.value("#1c2430")),
    )
    return (
        alt.layer(tiles, label)
        .properties(width=130, height=120)
        .facet(facet=alt.Facet("method:N", title=None, sort=METHODS), columns=4)
    )


def needle_cells(m: Measurements[Params]) -> pl.DataFrame:
    """The mean over the prompts of every cell, with the long ones where they ran."""
    frames = []
    for arm in ("needles", "needles-long", "needles-beyond"):
        with suppress(NotMeasured):
            depth = m.rows("depth", arm=arm).select("seed", "length", depth="value")
            found = m.rows("accuracy", arm=arm).filter(pl.col("method").is_not_null()).drop("depth", strict=False)
            frames.append(found.join(depth, on=["seed", "length"], validate="m:1"))
    if not frames:
        m.rows(arm="needles")
    keys = ("method", "length", "depth")
    return pl.concat(frames, how="diagonal_relaxed").group_by(keys, maintain_order=True).agg(pl.col("value").mean())


@part.figure(
    "filter-layer",
    caption="Real model, first length: share answered against the filter layer with the chosen rule, 95 % intervals "
    "over seeds; and the source's PassageRetrieval scores of LLaMA 3.1 8B (Table 9.2). Layers as a share of all.",
    shows=("C4f", "C4g", "C4i"),
)
def filter_layer(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows("accuracy", arm="needles", length=m.params.real_lengths[0])
    chosen = rows.filter(method="gemfilter").with_columns(
        layer=pl.lit(m.params.filter_layer, dtype=rows.schema["layer"])
    )
    frame = charts.summarise(pl.concat([rows.filter(pl.col("layer").is_not_null()), chosen]), "layer").sort("layer")
    top = max(m.rows("recall", arm="needles")["layer"].to_list()) or 1
    ours = frame.with_columns(depth=pl.col("layer") / top, model=pl.lit("here, needles"))
    printed = m.paper.filter(where="Table 9.2", task="PRe").select(
        depth=pl.col("method").str.extract(r"(\d+)").cast(pl.Float64) / 31, mean=pl.col("value") / 100
    )
    both = pl.concat([ours, printed.with_columns(model=pl.lit("source, PassageRetrieval"))], how="diagonal_relaxed")
    base = alt.Chart(both, width=420, height=260).encode(
        x=alt.X("depth:Q", title="filter layer / last layer"), color=alt.Color("model:N", title=None)
    )
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", title="accuracy", scale=alt.Scale(domain=[0, 1])))
    bars = base.mark_rule(clip=True).encode(y="low:Q", y2="high:Q").transform_filter("isValid(datum.low)")
    return alt.LayerChart(layer=[bars, line])


@part.figure(
    "selected",
    caption="Which tokens of one prompt are kept, per layer (needle at half depth where a seed has one, first length). "
    "GemFilter has one set for all layers; of SnapKV the shade is the share of key-value heads. Orange: the needle.",
    shows=("C7c", "C7d"),
)
def selected(m: Measurements[Params]) -> alt.HConcatChart:
    length = m.params.real_lengths[0]
    depths = m.rows("depth", arm="needles", length=length).sort("seed")["value"]
    shown = int((depths - 0.5).abs().arg_min() or 0)
    kept, heads, needle = (m.array(name, arm="needles", length=length)[shown] for name in ("kept", "heads", "needle"))
    layers = heads.shape[0]
    ours = [(int(i), layer, 1.0) for i in kept for layer in range(layers)]
    theirs = [(int(i), int(layer), float(heads[layer, i])) for layer, i in zip(*np.nonzero(heads), strict=True)]
    band = pl.DataFrame({"start": [int(needle[0])], "end": [int(needle[1]) + 1]})
    parts = []
    for title, points in (("GemFilter", ours), ("SnapKV", theirs)):
        frame = pl.DataFrame(points, schema=["index", "layer", "share"], orient="row")
        dots = (
            alt.Chart(frame)
            .mark_square(size=7, color="#b2182b")
            .encode(
                x=alt.X("index:Q", title="position in the prompt", scale=alt.Scale(domain=[0, length], nice=False)),
                y=alt.Y("layer:Q", title="layer", scale=alt.Scale(domain=[-0.5, layers - 0.5], nice=False)),
                opacity=alt.Opacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0, 1]), legend=None),
            )
        )
        mark = alt.Chart(band).mark_rect(color="#f4a300", opacity=0.45).encode(x="start:Q", x2="end:Q")
        parts.append(alt.layer(mark, dots).properties(width=380, height=240, title=title))
    return alt.hconcat(*parts)


@part.table(
    "needles",
    caption="Real model: share of needle prompts answered with its 95 % interval over seeds, per length, all at "
    "k = n/8; and the source's averages (ROUGE-1, k = 1024), Phi-3.5 for full, SnapKV and GemFilter, Nemo for one-run. "
    "Plain: without the chat template, where that was measured. Without the needle: from GemFilter's tokens with the "
    "fact exchanged for others, at the first length.",
    shows=("C2d", "C2e", "C2f", "C2g", "C2h", "C2i", "C2j", "C2k", "C6b", "C6c", "N6", "N8"),
)
def needle_table(m: Measurements[Params]) -> pl.DataFrame:
    m.rows(arm="needles")
    printed = {
        name: m.paper_value(where="Figure 9.4", model="Phi-3.5 Mini", method=name, task="needle")
        for name in ("full", "snapkv", "gemfilter")
    }
    printed["one-run"] = m.paper_value(where="Figure G.4", method="one-run", task="needle")
    made = []
    for method in METHODS:
        cells: dict[str, Any] = {"method": method}
        for length in m.params.real_lengths:
            values = m.final("accuracy", arm="needles", length=length, method=method)
            cells[f"n = {length}"] = charts.plus_minus(values, 2)
        with suppress(NotMeasured):
            plain = m.final("accuracy", arm="needles-plain", length=m.params.real_lengths[0], method=method)
            cells[f"plain, n = {m.params.real_lengths[0]}"] = charts.plus_minus(plain, 2)
        made.append({**cells, "prompts": len(values.by_seed), "paper": printed.get(method)})
    first = m.params.real_lengths[0]
    blind = m.final("accuracy", arm="needles", length=first, method="without the needle")
    control = {"method": "without the needle", f"n = {first}": charts.plus_minus(blind, 2)}
    made.append({**control, "prompts": len(blind.by_seed)})
    return pl.DataFrame(made, infer_schema_length=None)
