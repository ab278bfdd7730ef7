"""Figures and tables, with the source's numbers beside ours."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, NotMeasured, charts
from assay.methods.gemfilter.layers import stages_of

from . import theory
from .hand_set import FOUND, LAYERS
from .layer_figures import recall_panel, stage_bands
from .problem import TASKS
from .study import study

_SPEED_UPS = alt.Scale(domain=[1, 2.6], zero=False, nice=False)
METHODS = ["full", "snapkv", "h2o", "one-run", "gemfilter", "text rule", "text rule, question kept", "random"]


@study.figure(
    "cost",
    caption="Operations of a full prefill over those of GemFilter's pass 1, by the cost model with its linear terms. "
    "Dashed: m/r, which no prompt exceeds. The source states 2.4 for all three models.",
)
def cost(m: Measurements) -> alt.LayerChart:
    frame = m.rows("speed_up", arm="cost").group_by("model", "length", maintain_order=True).agg(pl.col("value").mean())
    base = alt.Chart(frame, width=420, height=260).encode(
        x=alt.X(
            "length:Q",
            title="prompt length n",
            scale=alt.Scale(type="log", base=2),
            axis=alt.Axis(format=".2~s", values=list(m.params.cost_lengths)),
        ),
        y=alt.Y("value:Q", title="prefill speed-up", scale=_SPEED_UPS),
        color=alt.Color("model:N", title=None, sort=list(theory.MODELS)),
    )
    rows = [(name, theory.ceiling(shape.layers, layer)) for name, (shape, layer) in theory.MODELS.items()]
    limits = pl.DataFrame(rows, schema=["model", "value"], orient="row")
    rule = alt.Chart(limits).mark_rule(strokeDash=[4, 3]).encode(y=alt.Y("value:Q", scale=_SPEED_UPS), color="model:N")
    return alt.layer(rule, base.mark_line(point=True))


@study.figure(
    "planted-layers",
    caption="The hand-set model on planted needles (first length): share of prompts whose value is kept, and share "
    "answered, against the filter layer. Shaded: the three stages. Values at depth 1 stand among the recent tokens, "
    "which every layer keeps: that is the floor of 0.2.",
)
def planted_layers(m: Measurements) -> alt.HConcatChart:
    parts = []
    for task, hops in TASKS.items():
        rows = m.rows(["coverage", "accuracy"], arm="planted", task=task, length=m.params.lengths[0])
        frame = charts.summarise(rows.filter(pl.col("layer").is_not_null()), "layer", "metric")
        back = stage_bands(stages_of([float(layer in FOUND[hops]) for layer in range(LAYERS)]))
        lines = (
            alt.Chart(frame)
            .mark_line(point=True)
            .encode(
                x=alt.X("layer:Q", title="filter layer", axis=alt.Axis(values=list(range(LAYERS)), format="d")),
                y=alt.Y("mean:Q", title="share of prompts", scale=alt.Scale(domain=[0, 1])),
                color=alt.Color("metric:N", title=None, sort=["coverage", "accuracy"]),
                strokeDash=alt.StrokeDash("metric:N", sort=["coverage", "accuracy"], legend=None),
            )
        )
        parts.append(
            alt.layer(back, lines).properties(width=280, height=230, title=task).resolve_scale(color="independent")
        )
    return alt.hconcat(*parts)


@study.figure(
    "recall",
    caption="Real model: share of the needle's tokens among the kept n/8, per layer and rule, with 95 % intervals over "
    "seeds; a panel per length. The strip: the three stages by the chosen rule. The source's rule is logits.",
)
def recall(m: Measurements) -> alt.HConcatChart:
    parts = []
    for length in m.params.real_lengths:
        rows = m.rows("recall", arm="needles", length=length)
        parts.append(recall_panel(rows, m.params.filter_rule, f"n = {length}, k = {length // 8}"))
    return alt.hconcat(*parts)


@study.figure(
    "needles",
    caption="Real model: share of needle prompts answered, depth against length, per method, all at k = n/8. Prompts a "
    "cell: seeds over depths.",
)
def heat_map(m: Measurements) -> alt.FacetChart:
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


def needle_cells(m: Measurements) -> pl.DataFrame:
    """The mean over the prompts of every cell, with the long ones where they ran."""
    frames = []
    for arm in ("needles", "needles-long"):
        with suppress(NotMeasured):
            depth = m.rows("depth", arm=arm).select("seed", "length", depth="value")
            found = m.rows("accuracy", arm=arm).filter(pl.col("method").is_not_null()).drop("depth", strict=False)
            frames.append(found.join(depth, on=["seed", "length"], validate="m:1"))
    if not frames:
        m.rows(arm="needles")
    keys = ("method", "length", "depth")
    return pl.concat(frames, how="diagonal_relaxed").group_by(keys, maintain_order=True).agg(pl.col("value").mean())


@study.figure(
    "filter-layer",
    caption="Real model, first length: share answered against the filter layer with the chosen rule, 95 % intervals "
    "over seeds; and the source's PassageRetrieval scores of LLaMA 3.1 8B (Table 9.2). Layers as a share of all.",
)
def filter_layer(m: Measurements) -> alt.LayerChart:
    rows = m.rows("accuracy", arm="needles", length=m.params.real_lengths[0])
    chosen = rows.filter(method="gemfilter").with_columns(
        layer=pl.lit(m.params.filter_layer, dtype=rows.schema["layer"])
    )
    frame = charts.summarise(pl.concat([rows.filter(pl.col("layer").is_not_null()), chosen]), "layer").sort("layer")
    top = int(m.rows("recall", arm="needles")["layer"].max() or 1)
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
    return alt.layer(bars, line)


@study.figure(
    "rows",
    caption="Share answered when the last, the middle or the largest query row scores the tokens: hand-set model, real "
    "model (the source's rule), and the source's Mistral Nemo. In the hand-set model the largest row is the last one.",
)
def rows(m: Measurements) -> alt.Chart:
    found = [_row_frame(m, "hand-set, two hops", arm="planted", task="two-hop", length=m.params.lengths[0])]
    with suppress(NotMeasured):
        found.append(_row_frame(m, "real model", arm="needles", length=m.params.real_lengths[0]))
    printed = (
        m.paper.filter(where="Figure G.3").select(row="method", mean="value").with_columns(model=pl.lit("source, Nemo"))
    )
    frame = pl.concat([*found, printed], how="diagonal_relaxed")
    order = ["last", "middle", "largest"]
    return (
        alt.Chart(frame, height=240, width=alt.Step(34))
        .mark_bar()
        .encode(
            x=alt.X("model:N", title=None, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("row:N", sort=order),
            y=alt.Y("mean:Q", title="accuracy", scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("row:N", title="row", sort=order),
        )
    )


def _row_frame(m: Measurements, name: str, **where: Any) -> pl.DataFrame:
    rows = m.rows("accuracy", **where).filter(pl.col("row").is_not_null())
    return charts.summarise(rows, "row").select("row", "mean").with_columns(model=pl.lit(name))


@study.figure(
    "selected",
    caption="Which tokens of one prompt are kept, per layer (needle at half depth where a seed has one, first length). "
    "GemFilter has one set for all layers; of SnapKV the shade is the share of key-value heads. Orange: the needle.",
)
def selected(m: Measurements) -> alt.HConcatChart:
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


@study.table(
    "needles",
    caption="Real model: share of needle prompts answered with its 95 % interval over seeds, per length, all at "
    "k = n/8; and the source's averages (ROUGE-1, k = 1024), Phi-3.5 for full, SnapKV and GemFilter, Nemo for one-run.",
)
def needle_table(m: Measurements) -> pl.DataFrame:
    m.rows(arm="needles")
    printed = {name: m.paper_value(where="Figure 9.4", model="Phi-3.5 Mini", method=name, task="needle") for name in
               ("full", "snapkv", "gemfilter")}  # fmt: skip
    printed["one-run"] = m.paper_value(where="Figure G.4", method="one-run", task="needle")
    made = []
    for method in METHODS:
        cells: dict[str, Any] = {"method": method}
        for length in m.params.real_lengths:
            values = m.final("accuracy", arm="needles", length=length, method=method)
            cells[f"n = {length}"] = charts.plus_minus(values, 2)
        made.append({**cells, "prompts": len(values.by_seed), "paper": printed.get(method)})
    return pl.DataFrame(made, infer_schema_length=None)


@study.table(
    "planted",
    caption="Hand-set model: share of planted prompts whose two-token value is answered, at k = n/8, mean over seeds. "
    "SnapKV and H2O drop, layer by layer, what only the second token needs.",
)
def planted_table(m: Measurements) -> pl.DataFrame:
    made = []
    for method in ("full", "snapkv", "h2o", "one-run", "gemfilter", "random", "listing", "absent"):
        cells: dict[str, Any] = {"method": method}
        for task in TASKS:
            for length in m.params.lengths:
                values = m.final("accuracy", arm="planted", task=task, length=length, method=method, depth=None)
                cells[f"{task}, n = {length}"] = round(float(values.array.mean()), 3)
        made.append(cells)
    return pl.DataFrame(made)


@study.table(
    "selection",
    caption="What an index set holds: share of the needle's tokens, share of blocks of 16 tokens touched (spread), and "
    "the spread of all of a method's sets together. First lengths, mean over seeds.",
)
def selection(m: Measurements) -> pl.DataFrame:
    made = []
    places = [("hand-set, two hops", {"arm": "planted", "task": "two-hop", "length": m.params.lengths[0]})]
    if "needles" in m.frame["arm"]:
        places.append(("real model", {"arm": "needles", "length": m.params.real_lengths[0]}))
    for name, where in places:
        for method in ("gemfilter", "snapkv"):
            cells: dict[str, Any] = {"model": name, "method": method}
            for metric in ("needle_recall", "spread", "spread_of_all"):
                try:
                    cells[metric.replace("_", " ")] = charts.plus_minus(m.final(metric, method=method, **where), 2)
                except NotMeasured:
                    cells[metric.replace("_", " ")] = None
            made.append(cells)
    return pl.DataFrame(made, infer_schema_length=None)


@study.table(
    "memory",
    caption="Prefill memory by the cost model in GiB (weights and caches, bf16, k = 1024) at 120k tokens. The source "
    "states 30 % less than SnapKV and 70 % less than full attention: reached only when pass 1 loads its layers alone.",
)
def memory(m: Measurements) -> pl.DataFrame:
    n = theory.longest_read(m.params.cost_lengths)
    made = []
    for model in theory.MODELS:
        cells: dict[str, Any] = {"model": model, "n": n}
        for method in ("full", "snapkv", "gemfilter", "filter only"):
            values = m.final("prefill_bytes", arm="cost", model=model, length=n, method=method)
            cells[method] = round(float(values.array[0]) / 2**30, 1)
        cells["against SnapKV"] = round(cells["filter only"] / cells["snapkv"], 2)
        cells["against full"] = round(cells["filter only"] / cells["full"], 2)
        made.append(cells)
    return pl.DataFrame(made)


@study.table(
    "source",
    caption="The source's LongBench averages (Table 9.1 over 14 tasks, Table G.1 over 6 with the chat template), and "
    "the mean of its printed tasks where it prints them. LongBench is not run here; the loader and metrics are there.",
)
def source(m: Measurements) -> pl.DataFrame:
    printed = m.paper.filter(pl.col("where").is_in(["Table 9.1", "Table G.1"]))
    means = printed.filter(pl.col("task") != "average").group_by("where", "model", "method").agg(
        pl.col("value").mean().round(2).alias("mean of its tasks")
    )  # fmt: skip
    averages = printed.filter(task="average").select("where", "model", "method", pl.col("value").alias("paper"))
    return averages.join(means, on=["where", "model", "method"], how="left", maintain_order="left")
