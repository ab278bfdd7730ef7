"""What chunks keep and answer: against the prompt's length, against their size, and where the evidence is far apart."""

from __future__ import annotations

from contextlib import suppress

import altair as alt
import polars as pl

from assay.lab import Measurements, NotMeasured, charts

from .arms import Params, part
from .learners import KINDS, WORD, size_name
from .problem import FAR

_METHODS = ["full", "whole", "chunks"]
_LEVEL, _NARROW = alt.Axis(labelAngle=0), alt.Scale(paddingInner=0.8)


def _over_kinds(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """The mean over kinds of facts per seed, summarised over seeds; shares are drawn between 0 and 1."""
    seeds = rows.group_by("seed", *by, maintain_order=True).agg(pl.col("value").mean())
    return charts.summarise(seeds, *by).with_columns(pl.col("low", "high").clip(0, 1))


def _within_and_beyond(m: Measurements[Params], metric: str) -> pl.DataFrame:
    """The rows of all lengths; those beyond the context where they were measured."""
    frames = []
    for name in ("chunks", "chunks-beyond"):
        with suppress(NotMeasured):
            frames.append(m.rows(metric, arm=name))
    if not frames:
        m.rows(arm="chunks")
    return pl.concat(frames, how="diagonal_relaxed")


def _panel(frame: pl.DataFrame, x: alt.X, y: str, colour: str, order: list[str], title: str) -> alt.LayerChart:
    """Points with intervals side by side, tied by lines."""
    base = alt.Chart(frame, width=300, height=230, title=title).encode(
        x=x,
        xOffset=alt.XOffset(f"{colour}:N", sort=order or None),
        color=alt.Color(f"{colour}:N", title=None, sort=order or None, legend=alt.Legend(symbolOpacity=1)),
    )
    height = alt.Y("mean:Q", title=y, scale=alt.Scale(domain=[0, 1]))
    lines = base.mark_line(point=True).encode(y=height)
    return alt.LayerChart(layer=[base.mark_rule(opacity=0.5).encode(y="low:Q", y2="high:Q"), lines])


@part.figure(
    "chunk-lengths",
    caption="A real model on prompts of several lengths: share of a hidden fact's tokens kept (left) and answered "
    "(right), mean over kinds of facts, with 95 % intervals over seeds, at k = n/8 and 1,024 at most. Chunks go on "
    "beyond the context, where it was measured.",
    shows=("X3a", "X3b", "X4a", "X4b", "X8a"),
)
def chunk_lengths(m: Measurements[Params]) -> alt.HConcatChart:
    names = {"full": "full attention", "whole": "whole prompt", size_name(m.params.chunk): size_name(m.params.chunk)}
    panels = []
    for metric, title in (("recall", "kept"), ("accuracy", "answered")):
        with suppress(NotMeasured):
            rows = _within_and_beyond(m, metric).filter(pl.col("method").is_in(list(names)))
            frame = _over_kinds(rows, "length", "method").with_columns(pl.col("method").replace(names))
            x = alt.X("length:O", title="tokens of the prompt", axis=_LEVEL, scale=_NARROW)
            panels.append(_panel(frame, x, f"share {title}", "method", list(names.values()), title))
    if not panels:
        m.rows(arm="chunks")
    return alt.hconcat(*panels)


@part.figure(
    "chunk-sizes",
    caption="A real model on the longest prompts of its context: share of a hidden fact's tokens kept against the size "
    "of a chunk, per kind of fact; and, at the chosen size, chunks without overlap, with an anchor, and the whole "
    "prompt. Intervals of 95 % over seeds.",
    shows=("X3b", "X5a", "X5b", "X5c", "X5d", "X5e", "X7"),
)
def chunk_sizes(m: Measurements[Params]) -> alt.HConcatChart:
    rows = m.rows("recall", arm="chunks", length=max(m.params.chunk_lengths))
    sizes = {size_name(size): size for size in m.params.chunk_sizes}
    cut = rows.filter(pl.col("method").is_in(list(sizes)))
    frame = charts.summarise(cut, "method", "kind").with_columns(
        pl.col("low", "high").clip(0, 1), size=pl.col("method").replace_strict(sizes, return_dtype=pl.Int64)
    )
    x = alt.X("size:O", title="tokens of a chunk", axis=_LEVEL, scale=_NARROW)
    left = _panel(frame, x, "share of the fact kept", "kind", [], "by size, per kind of fact")
    names = {
        "whole": "whole prompt",
        size_name(m.params.chunk): "chunks",
        "no overlap": "no overlap",
        "anchor": "anchor",
    }
    others = _over_kinds(rows.filter(pl.col("method").is_in(list(names))), "method")
    right = _bars(others.with_columns(pl.col("method").replace(names)), "method", list(names.values()))
    return alt.hconcat(left, right.properties(title=f"chunks of {m.params.chunk}, all kinds"))


def _bars(frame: pl.DataFrame, x: str, order: list[str]) -> alt.LayerChart:
    base = alt.Chart(frame, height=230, width=alt.Step(56)).encode(
        x=alt.X(f"{x}:N", title=None, sort=order, axis=alt.Axis(labelAngle=-30))
    )
    bars = base.mark_bar().encode(y=alt.Y("mean:Q", title="share of the fact kept", scale=alt.Scale(domain=[0, 1])))
    return alt.LayerChart(layer=[bars, base.mark_rule(color="#1c2430").encode(y="low:Q", y2="high:Q")])


@part.figure(
    "chunks-far",
    caption="A real model on questions whose evidence stands in several places, first length: share of all facts kept, "
    "of the last fact (which a question of two hops does not name), and share answered, per method. Intervals of 95 % "
    "over seeds.",
    shows=("X9a", "X9b", "X9c", "X9d", "X9e", "X9f", "X9g", "X9h"),
)
def far_apart(m: Measurements[Params]) -> alt.FacetChart:
    words = {"recall": "facts kept", "last_recall": "last fact kept", "accuracy": "answered"}
    rows = m.rows(list(words), arm="chunks-far")
    frame = charts.summarise(rows, "task", "method", "metric").with_columns(
        pl.col("low", "high").clip(0, 1), pl.col("metric").replace(words)
    )
    base = alt.Chart().encode(
        y=alt.Y("task:N", title=None, sort=list(FAR), axis=alt.Axis(labelLimit=200)),
        yOffset=alt.YOffset("method:N", sort=_METHODS),
        color=alt.Color("method:N", title=None, sort=_METHODS, legend=alt.Legend(symbolOpacity=1)),
    )
    share = alt.Scale(domain=[0, 1])
    points = base.mark_point(filled=True, size=45).encode(x=alt.X("mean:Q", title="share", scale=share))
    spans = base.mark_rule(opacity=0.6).encode(x=alt.X("low:Q", title="share", scale=share), x2="high:Q")
    made: alt.FacetChart = (
        alt.layer(spans, points, data=frame)
        .properties(width=190, height=alt.Step(18))
        .facet(column=alt.Column("metric:N", title=None, sort=list(words.values())))
    )
    return made


@part.table(
    "chunk-answers",
    caption="Questions answered on prompts that no other arm reads: the longest within a real model's context, by the "
    "kind of fact, with full attention, from the whole prompt's filter and from chunks; and facts of one word beyond "
    "the context, from chunks.",
    shows=("X4c", "X8b", "X8c"),
)
def answers(m: Measurements[Params]) -> pl.DataFrame:
    ours, longest = size_name(m.params.chunk), max(m.params.chunk_lengths)
    rows: list[dict[str, str]] = []
    with suppress(NotMeasured):
        for kind in KINDS:
            found = {
                name: charts.plus_minus(m.final("accuracy", arm="chunk-answers", kind=kind, method=method), 2)
                for name, method in {"full": "full", "whole": "whole", "chunks": ours}.items()
            }
            rows.append({"tokens": f"{longest:,}", "fact": kind} | found)
    with suppress(NotMeasured):
        for length in m.params.chunk_beyond:
            answered = m.final("accuracy", arm="chunk-words", length=length, method=ours)
            beyond = {"full": "–", "whole": "–", "chunks": charts.plus_minus(answered, 2)}
            rows.append({"tokens": f"{length:,}", "fact": WORD} | beyond)
    if not rows:
        m.rows(arm="chunk-answers")
    return pl.DataFrame(rows)


@part.table(
    "chunk-lists",
    caption="A list of eight things that stand an eighth of the text apart, first length, as full attention, the whole "
    "prompt's filter and chunks give it: share of the mentions' tokens that is kept, and of the things that are named.",
    shows=("X12a", "X12b", "X12c"),
)
def lists(m: Measurements[Params]) -> pl.DataFrame:
    def cell(metric: str, method: str) -> str:
        return charts.plus_minus(m.final(metric, arm="chunk-lists", method=method), 2)

    return pl.DataFrame(
        {"method": name, "kept": "1" if name == "full" else cell("recall", name), "named": cell("named", name)}
        for name in ("full", "whole", "chunks")
    )


@part.table(
    "chunk-controls",
    caption="What must change the selection of a model that reads in chunks and what must not, first length: share of "
    "the fact kept when it is asked for, when nothing is, when something else is, and when the boundary of two chunks "
    "cuts it; and kept tokens that change with the order of chunks, over those that pooling may mix.",
    shows=("X6a", "X6b", "N11", "N12", "N13"),
)
def controls(m: Measurements[Params]) -> pl.DataFrame:
    rows = [
        {"case": method, "mean": charts.plus_minus(m.final("recall", arm="chunk-controls", method=method), 2)}
        for method in ("asked", "no question", "another fact", "cut, no overlap", "cut, overlap")
    ]
    changed = m.final("changed", arm="chunk-controls")
    return pl.DataFrame([*rows, {"case": "another order: changed / may change", "mean": charts.plus_minus(changed, 2)}])


@part.table(
    "chunk-choice",
    caption="What texts that no other arm reads choose for chunks and for whole prompts of a real model: the layer and "
    "the width of pooling, at the longest prompts within the context, from the smallest to the largest over seeds, "
    "against those of the study; and the share of the needle's tokens kept in prompts held out.",
    shows=("N14", "N17"),
)
def chunk_choice(m: Measurements[Params]) -> pl.DataFrame:
    used = {
        "chunks": (m.params.chunk_layer, m.params.chunk_kernel),
        "whole": (m.params.whole_layer, m.params.whole_kernel),
    }
    rows = {}
    for reading, (layer, kernel) in used.items():
        where = {"arm": "chunk-choice", "reading": reading}
        rows[f"{reading}: layer chosen"] = m.every("chosen_layer", **where), f"{layer} ± 2"
        rows[f"{reading}: width of pooling chosen"] = m.every("chosen_kernel", **where), f"{kernel}, as used here"
        rows[f"{reading}: share of held-out needles kept"] = m.every("held_out_recall", **where), "1"
    return charts.quantities(rows)
