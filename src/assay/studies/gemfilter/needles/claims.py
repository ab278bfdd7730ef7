"""The claims of the source on a real model and needle prompts."""

from __future__ import annotations

from typing import Any

import polars as pl

from assay.lab import Judgement, Measurements, Values, combine

from .arms import Params, part


def needles(m: Measurements[Params], metric: str, **where: Any) -> Values:
    """One value per seed at the first length."""
    return m.final(metric, arm="needles", length=m.params.real_lengths[0], **where)


def both(m: Measurements[Params], metric: str, **where: Any) -> Values:
    """The mean over lengths, one value per seed."""
    rows = m.rows(metric, arm="needles", length=list(m.params.real_lengths), **where)
    assert set(rows.group_by("seed").len()["len"]) == {len(m.params.real_lengths)}
    return m.per_seed(rows, lambda each: each["value"].mean(), f"{metric} of {' '.join(map(str, where.values()))}")


def accuracy(m: Measurements[Params], method: str) -> Values:
    return both(m, "accuracy", method=method)


@part.claim(
    "C1c",
    "real model: the chosen layer, before the last, keeps nine tenths of the needle's tokens",
    source="Figures 9.2 and 9.5",
)
def chosen_layer_finds(m: Measurements[Params]) -> Judgement:
    return both(m, "recall", rule=m.params.filter_rule, layer=m.params.filter_layer).at_least(0.9)


@part.claim(
    "C1d", "real model: so does the last row alone, by the source's rule at its best layer", source="Algorithm 1"
)
def last_row_finds(m: Measurements[Params]) -> Judgement:
    return both(m, "recall", rule="logits", layer=m.params.text_layer).at_least(0.9)


@part.claim(
    "C2d",
    "real model: GemFilter (chosen layer and rule, k = n/8) answers as often as full attention",
    source="Figure 9.4",
)
def chosen_keeps_accuracy(m: Measurements[Params]) -> Judgement:
    return (accuracy(m, "gemfilter") - accuracy(m, "full")).at_least(-0.02)


@part.claim("C2e", "real model: so does GemFilter with the source's rule", source="Figure 9.4")
def text_rule_keeps_accuracy(m: Measurements[Params]) -> Judgement:
    return (accuracy(m, "text rule") - accuracy(m, "full")).at_least(-0.02)


@part.claim("C2f", "real model: GemFilter (chosen) answers as often as SnapKV", source="Figure 9.4")
def chosen_matches_snapkv(m: Measurements[Params]) -> Judgement:
    return (accuracy(m, "gemfilter") - accuracy(m, "snapkv")).at_least(-0.02)


@part.claim(
    "C2h",
    "real model: GemFilter (chosen) answers more often than SnapKV",
    source="Figure 9.4",
    printed="it significantly outperforms SnapKV on needles",
    paper=0.046,
)
def chosen_outdoes_snapkv(m: Measurements[Params]) -> Judgement:
    return (accuracy(m, "gemfilter") - accuracy(m, "snapkv")).above(0)


@part.claim(
    "C2i",
    "real model: GemFilter (chosen) answers more often than full attention",
    source="Figure 9.4",
    printed="it significantly outperforms full attention on needles",
    paper=0.059,
)
def chosen_outdoes_full(m: Measurements[Params]) -> Judgement:
    return (accuracy(m, "gemfilter") - accuracy(m, "full")).above(0)


@part.claim("C2g", "real model: GemFilter (chosen) answers more often than H2O", source="Table 9.1")
def chosen_beats_h2o(m: Measurements[Params]) -> Judgement:
    return (accuracy(m, "gemfilter") - accuracy(m, "h2o")).above(0)


@part.claim("C4f", "real model: the chosen layer answers more often than an early one by 0.3", source="Table 9.2")
def chosen_beats_early(m: Measurements[Params]) -> Judgement:
    early = needles(m, "accuracy", layer=m.params.scan_layers[0], method=None)
    return (needles(m, "accuracy", method="gemfilter") - early).at_least(0.3)


@part.claim(
    "C4g",
    "real model: a layer well after the chosen one works nearly as well (within 0.1)",
    source="Table 9.2",
    when={"a scan with layers after the chosen one": lambda p: p.later_layer is not None},
)
def band_works(m: Measurements[Params]) -> Judgement:
    later = needles(m, "accuracy", layer=m.params.later_layer, method=None)
    return (later - needles(m, "accuracy", method="gemfilter")).at_least(-0.1)


@part.claim(
    "C4h",
    "real model: the first layer whose selection holds the answer is the same for nine prompts in ten, "
    "within one layer (chosen rule, first length, depth 1 aside)",
    source="Figure 9.5",
)
def first_layer_is_consistent(m: Measurements[Params]) -> Judgement:
    where = {"arm": "needles", "length": m.params.real_lengths[0]}
    first = m.per_seed(m.rows("coverage", rule=m.params.filter_rule, **where), _first_layer, "first layer")
    # To Polars NaN is larger than any number: a prompt of unknown depth stays and makes the claim undecided.
    inner = m.rows("depth", **where).filter((pl.col("value") < 1) | ~pl.col("value").is_finite())
    depth = m.per_seed(inner, lambda rows: rows["value"][0], "depth")
    found = combine(lambda v: v[0], [first, depth], "first layer of the prompts of inner depth")
    seen = [int(layer) for layer in found.array if layer >= 0]
    common = max(set(seen), key=lambda layer: (seen.count(layer), -layer)) if seen else None
    near = found.map(lambda layer: common is not None and abs(layer - common) <= 1)
    return near.named(f"share of prompts that layer {common} or a neighbour answers first").at_least(0.9)


def _first_layer(rows: pl.DataFrame) -> float:
    """The first layer that covers the answer; far below the first of all where none does."""
    return float(min(rows.filter(pl.col("value") == 1)["layer"], default=-10))


def row_gap(m: Measurements[Params], row: str) -> Values:
    return needles(m, "accuracy", row="last") - needles(m, "accuracy", row=row)


@part.claim(
    "C5b", "real model, the source's rule: the last row beats the middle row by 0.3", source="Figure G.3", paper=0.640
)
def last_beats_middle_row(m: Measurements[Params]) -> Judgement:
    return row_gap(m, "middle").at_least(0.3)


@part.claim(
    "C5c",
    "real model, the source's rule: the last row beats the row of largest norm by 0.3",
    source="Figure G.3",
    paper=0.713,
)
def last_beats_largest_row(m: Measurements[Params]) -> Judgement:
    return row_gap(m, "largest").at_least(0.3)


@part.claim("C6b", "real model, within its context: one run and two answer alike", source="Figure G.4", paper=0.011)
def one_run_is_alike(m: Measurements[Params]) -> Judgement:
    return (accuracy(m, "gemfilter") - accuracy(m, "one-run")).between(-0.03, 0.03)


@part.claim(
    "C6c",
    "real model: most of the gain is the selection: two runs on random tokens are worse by 0.3",
    source="Figure G.4",
)
def selection_matters(m: Measurements[Params]) -> Judgement:
    return (accuracy(m, "gemfilter") - accuracy(m, "random")).at_least(0.3)


@part.claim(
    "C7c",
    "real model: an index set of GemFilter holds more of the needle than one of SnapKV",
    source="Figures G.5 to G.7",
)
def selection_holds_the_needle(m: Measurements[Params]) -> Judgement:
    return (both(m, "needle_recall", method="gemfilter") - both(m, "needle_recall", method="snapkv")).above(0)


@part.claim(
    "C7d",
    "real model: it is less scattered: it touches fewer blocks of 16 tokens than a set of SnapKV",
    source="Figures G.5 to G.7",
)
def selection_is_concentrated(m: Measurements[Params]) -> Judgement:
    return (both(m, "spread", method="snapkv") - both(m, "spread", method="gemfilter")).above(0)


@part.claim("N6", "real model: with the needle's tokens exchanged for others the answer is gone", source="control")
def without_the_needle(m: Measurements[Params]) -> Judgement:
    return needles(m, "accuracy", method="without the needle").at_most(0.2)


@part.claim(
    "N8",
    "real model: full attention itself answers half of the prompts, so that equal shares mean something",
    source="control",
)
def full_attention_answers(m: Measurements[Params]) -> Judgement:
    return accuracy(m, "full").at_least(0.5)
