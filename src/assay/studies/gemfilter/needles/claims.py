"""The claims of the source on a real model and needle prompts: one fact hidden in a long text, and a question about it.

Every method keeps an eighth of the prompt. A seed is one prompt of each length.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from assay.lab import Judgement, Measurements, Values, combine

from .arms import Params, part

#: SmolLM2-135M has 30 layers.
LAST_LAYER = 29


def needles(m: Measurements[Params], metric: str, **where: Any) -> Values:
    """One value per seed at the first length."""
    return m.final(metric, arm="needles", length=m.params.real_lengths[0], **where)


def both(m: Measurements[Params], metric: str, **where: Any) -> Values:
    """The mean over lengths, one value per seed; of shares it is a share of as many trials as all of them had."""
    parts = [m.final(metric, arm="needles", length=length, **where) for length in m.params.real_lengths]
    mean = sum(parts[1:], parts[0]) / len(parts)
    return mean.as_share() if all(part.scale == "share" for part in parts) else mean


def accuracy(m: Measurements[Params], method: str) -> Values:
    return both(m, "accuracy", method=method)


def gap(m: Measurements[Params], ours: str, theirs: str) -> Values:
    """The share of prompts that one method answers, less another's."""
    return (accuracy(m, ours) - accuracy(m, theirs)).named(f"share answered, {ours} − {theirs}")


@part.claim(
    "C1c",
    "The layer chosen for a real language model keeps nine tenths of a hidden fact's tokens when it keeps an eighth of "
    "the prompt.",
    source="Figures 9.2 and 9.5",
    headline=True,
)
def chosen_layer_finds(m: Measurements[Params]) -> Judgement:
    found = both(m, "recall", rule=m.params.filter_rule, layer=m.params.filter_layer)
    return found.named("share of the needle kept").at_least(0.9)


@part.claim(
    "C1d",
    "By the source's rule, at a layer chosen on tuning prompts, the last attention row of a real language model keeps "
    "nine tenths of a hidden fact's tokens in an eighth of the prompt.",
    source="Algorithm 2",
)
def last_row_finds(m: Measurements[Params]) -> Judgement:
    found = both(m, "recall", rule="logits", layer=m.params.text_layer)
    return found.named("share of the needle kept").at_least(0.9)


@part.claim(
    "C2d",
    "On needle prompts a real model answers at most two points in a hundred less often with GemFilter, layer and rule "
    "chosen for it, than with full attention.",
    source="Figure 9.4",
)
def chosen_keeps_accuracy(m: Measurements[Params]) -> Judgement:
    return gap(m, "gemfilter", "full").at_least(-0.02)


@part.claim(
    "C2e",
    "On needle prompts a real model answers at most two points in a hundred less often with GemFilter by the source's "
    "rule than with full attention.",
    source="Figure 9.4",
)
def text_rule_keeps_accuracy(m: Measurements[Params]) -> Judgement:
    return gap(m, "text rule", "full").at_least(-0.02)


@part.claim(
    "C2f",
    "On needle prompts a real model answers at most two points in a hundred less often with GemFilter, layer and rule "
    "chosen for it, than with SnapKV at the same budget.",
    source="Figure 9.4",
)
def chosen_matches_snapkv(m: Measurements[Params]) -> Judgement:
    return gap(m, "gemfilter", "snapkv").at_least(-0.02)


@part.claim(
    "C2g",
    "On needle prompts a real language model answers more often with GemFilter than with H2O at the same budget.",
    source="Table 9.1",
    headline=True,
)
def chosen_beats_h2o(m: Measurements[Params]) -> Judgement:
    return gap(m, "gemfilter", "h2o").above(0)


@part.claim(
    "C2h",
    "On needle prompts a real language model answers more often with GemFilter than with SnapKV at the same budget.",
    source="Figure 9.4",
    printed="it significantly outperforms SnapKV on needles",
    paper=0.046,
)
def chosen_outdoes_snapkv(m: Measurements[Params]) -> Judgement:
    return gap(m, "gemfilter", "snapkv").above(0)


@part.claim(
    "C2i",
    "On needle prompts a real language model answers more often with GemFilter than with full attention.",
    source="Figure 9.4",
    printed="it significantly outperforms full attention on needles",
    paper=0.059,
)
def chosen_outdoes_full(m: Measurements[Params]) -> Judgement:
    return gap(m, "gemfilter", "full").above(0)


@part.claims_over(
    {"C2j": {"method": "full", "words": "full attention"}, "C2k": {"method": "gemfilter", "words": "GemFilter"}},
    statement="With {words} a real language model answers more needle prompts in its chat template than plain ones.",
    source="Table G.1, Appendix G.4.7",
)
def template_helps(m: Measurements[Params], *, method: str) -> Judgement:
    plain = m.final("accuracy", arm="needles-plain", length=m.params.real_lengths[0], method=method)
    gain = needles(m, "accuracy", method=method) - plain
    return gain.named("share answered, chat template − plain").above(0)


@part.claim(
    "C4f",
    "On needle prompts the chosen filter layer of a real model answers 30 points in a hundred more than an early one.",
    source="Table 9.2",
)
def chosen_beats_early(m: Measurements[Params]) -> Judgement:
    early = needles(m, "accuracy", layer=m.params.scan_layers[0], method=None)
    found = needles(m, "accuracy", method="gemfilter") - early
    return found.named(f"share answered, chosen layer − layer {m.params.scan_layers[0]}").at_least(0.3)


@part.claim(
    "C4g",
    "On needle prompts a real model answers at most ten points in a hundred less often with a filter layer well after "
    "the chosen one than with the chosen one.",
    source="Table 9.2",
    when={"a scan with layers after the chosen one": lambda p: p.later_layer is not None},
)
def band_works(m: Measurements[Params]) -> Judgement:
    later = needles(m, "accuracy", layer=m.params.later_layer, method=None)
    found = later - needles(m, "accuracy", method="gemfilter")
    return found.named(f"share answered, layer {m.params.later_layer} − chosen layer").at_least(-0.1)


@part.claim(
    "C4h",
    "In nine of ten needle prompts the same layer of a real model, or a neighbour, is the first to keep the answer "
    "(those at the very end aside).",
    source="Figure 9.5",
)
def first_layer_is_consistent(m: Measurements[Params]) -> Judgement:
    where = {"arm": "needles", "length": m.params.real_lengths[0]}
    first = m.per_seed(m.rows("coverage", rule=m.params.filter_rule, **where), _first_layer, "first layer")
    # To Polars NaN is larger than any number: a prompt of unknown depth stays and makes the claim fail.
    inner = m.rows("depth", **where).filter((pl.col("value") < 1) | ~pl.col("value").is_finite())
    depth = m.per_seed(inner, lambda rows: rows["value"][0], "depth")
    found = combine(lambda v: v[0], [first, depth], "first layer of the prompts of inner depth")
    seen = [int(layer) for layer in found.array if layer >= 0]
    common = max(set(seen), key=lambda layer: (seen.count(layer), -layer)) if seen else None
    near = found.map(lambda layer: common is not None and abs(layer - common) <= 1).by_seed
    words = f"share of prompts that layer {common} or a neighbour answers first"
    return Values.measured(near, words, dict.fromkeys(near, 1)).at_least(0.9)


def _first_layer(rows: pl.DataFrame) -> float:
    """The first layer that covers the answer; far below the first of all where none does."""
    return float(min(rows.filter(pl.col("value") == 1)["layer"], default=-10))


@part.claim(
    "C4i",
    "On needle prompts the last layer of a real model, SmolLM2-135M, answers less often as the filter than the chosen "
    "one.",
    source="Table 9.2",
    when={"a scan with the last layer of SmolLM2": lambda p: p.model == "smollm2" and LAST_LAYER in p.scan_layers},
)
def last_layer_is_worse(m: Measurements[Params]) -> Judgement:
    last = needles(m, "accuracy", layer=LAST_LAYER, method=None)
    return (needles(m, "accuracy", method="gemfilter") - last).named("share answered, chosen layer − last").above(0)


def row_gap(m: Measurements[Params], row: str) -> Values:
    found = needles(m, "accuracy", row="last") - needles(m, "accuracy", row=row)
    return found.named(f"share answered, last row − {row} row")


@part.claim(
    "C5b",
    "On needle prompts, by the source's rule, the last attention row of a real model answers 30 points in a hundred "
    "more than the middle row.",
    source="Figure G.3",
    paper=0.640,
)
def last_beats_middle_row(m: Measurements[Params]) -> Judgement:
    return row_gap(m, "middle").at_least(0.3)


@part.claim(
    "C5c",
    "On needle prompts, by the source's rule, a real model's last attention row answers 30 points in a hundred more "
    "than the row of largest norm.",
    source="Figure G.3",
    paper=0.713,
)
def last_beats_largest_row(m: Measurements[Params]) -> Judgement:
    return row_gap(m, "largest").at_least(0.3)


@part.claim(
    "C6b",
    "On needle prompts within its context a real model answers as often with GemFilter in two runs as in one, within "
    "three points in a hundred.",
    source="Figure G.4",
    paper=0.011,
)
def one_run_is_alike(m: Measurements[Params]) -> Judgement:
    return gap(m, "gemfilter", "one-run").equals(
        0, within=0.03, because="about three times the source's own difference"
    )


@part.claim(
    "C6c",
    "On needle prompts a real model answers 30 points in a hundred more from the tokens that GemFilter keeps than from "
    "as many random ones.",
    source="Figure G.4",
    headline=True,
)
def selection_matters(m: Measurements[Params]) -> Judgement:
    return gap(m, "gemfilter", "random").at_least(0.3)


@part.claim(
    "C6d",
    "On needle prompts beyond its context a real model answers at least as often with GemFilter in two runs as in one.",
    source="Figure G.4",
    when={"prompts beyond the model's context": lambda p: min(p.beyond_lengths) > p.context},
)
def two_runs_beyond_the_context(m: Measurements[Params]) -> Judgement:
    where = {"arm": "needles-beyond", "length": m.params.beyond_lengths[0]}
    two, one = (m.final("accuracy", method=method, **where) for method in ("gemfilter", "one-run"))
    return (two - one).named("share answered, two runs − one").at_least(0)


@part.claim(
    "C7c",
    "On needle prompts the tokens that GemFilter keeps in a real model hold more of the hidden fact than a set of "
    "SnapKV's does.",
    source="Figures G.5 to G.7",
    headline=True,
)
def selection_holds_the_needle(m: Measurements[Params]) -> Judgement:
    ours, theirs = (both(m, "needle_recall", method=method) for method in ("gemfilter", "snapkv"))
    return (ours - theirs).named("share of the needle kept, GemFilter − SnapKV").above(0)


@part.claim(
    "C7d",
    "On needle prompts the tokens that GemFilter keeps in a real model touch fewer blocks of 16 tokens than a set of "
    "SnapKV's does.",
    source="Figures G.5 to G.7",
)
def selection_is_concentrated(m: Measurements[Params]) -> Judgement:
    ours, theirs = (both(m, "spread", method=method) for method in ("gemfilter", "snapkv"))
    return (theirs - ours).named("share of blocks touched, SnapKV − GemFilter").above(0)


@part.claim(
    "N6",
    "With the hidden fact's tokens exchanged for others in GemFilter's selection, a real model answers at most a "
    "fifth of the needle prompts.",
    source="control",
)
def without_the_needle(m: Measurements[Params]) -> Judgement:
    return needles(m, "accuracy", method="without the needle").named("share answered").at_most(0.2)


@part.claim(
    "N8",
    "With full attention a real model answers half of the needle prompts, so that equal shares of two methods mean "
    "something.",
    source="control",
)
def full_attention_answers(m: Measurements[Params]) -> Judgement:
    return accuracy(m, "full").named("share answered").at_least(0.5)
