"""The claims of the source on planted needles, where it is known which layer of the hand-set model finds what.

Which layer that is, and that no other does, is the construction's and no claim: see the figure of the layers.
"""

from __future__ import annotations

from typing import Any

import polars as pl
from scipy import stats

from assay.lab import Every, Judgement, Measurements, Values

from .arms import Params, part
from .problem import TASKS
from .theory import FOUND

HARD = "two-hop"
FOUND_LAYER = FOUND[TASKS[HARD]][0]


def planted(m: Measurements[Params], metric: str, **where: Any) -> Values:
    """One value per seed from the planted needles of two hops, at the first length."""
    return m.final(metric, arm="planted", task=HARD, length=m.params.lengths[0], **where)


def every_planted(m: Measurements[Params], metric: str, **where: Any) -> Every:
    """All seeds and lengths of the planted needles of two hops."""
    return m.every(metric, arm="planted", task=HARD, **where)


@part.claim(
    "C1a",
    "In a hand-set model the last attention row of a layer before the last one finds planted values that are two hops "
    "away.",
    source="Figures 9.2 and 9.5",
)
def value_is_found(m: Measurements[Params]) -> Judgement:
    return every_planted(m, "coverage", layer=FOUND_LAYER).named("share of values found").at_least(0.95)


@part.claim(
    "C2a",
    "On planted facts of two hops, at every length, a hand-set model answers at least as many prompts from GemFilter's "
    "eighth of the tokens as from all.",
    source="Figure 9.4",
)
def keeps_accuracy(m: Measurements[Params]) -> Judgement:
    ours, full = (every_planted(m, "accuracy", method=method) for method in ("gemfilter", "full"))
    return (ours - full).named("share answered, GemFilter − full attention").at_least(0, tolerance=1e-6)


@part.claim(
    "C2c",
    "On planted facts of two hops a hand-set model answers more prompts with GemFilter than with SnapKV at the same "
    "budget.",
    source="Figure 9.4",
    headline=True,
)
def better_than_snapkv(m: Measurements[Params]) -> Judgement:
    gap = planted(m, "accuracy", method="gemfilter") - planted(m, "accuracy", method="snapkv")
    return gap.named("share answered, GemFilter − SnapKV").above(0)


@part.claim(
    "C4a",
    "In nine of ten planted prompts of two hops the same layer of a hand-set model is the first to find the value "
    "(those at the very end aside).",
    source="Figure 9.5",
    printed="min(topk_index − needle_index), without the absolute value",
)
def first_layer_is_consistent(m: Measurements[Params]) -> Judgement:
    # Values at depth 1 are left out: they stand among the last tokens, which every layer keeps.
    return every_planted(m, "first_layer_share").named("share of the commonest first layer").at_least(0.9)


@part.claim(
    "C4d",
    "Over the layers of a hand-set model, the share of planted prompts of two hops answered follows the share of "
    "values found.",
    source="Table 9.2",
)
def accuracy_follows_coverage(m: Measurements[Params]) -> Judgement:
    where = {"arm": "planted", "task": HARD, "length": m.params.lengths[0]}
    rows = m.rows(["coverage", "accuracy"], **where).filter(pl.col("layer").is_not_null())
    return m.per_seed(rows, _rank_correlation, "rank correlation of answered and found").above(0.8)


def _rank_correlation(rows: pl.DataFrame) -> float:
    found, answered = (rows.filter(metric=name).sort("layer")["value"] for name in ("coverage", "accuracy"))
    return float(stats.spearmanr(found, answered).statistic)


@part.claim(
    "C5a",
    "On planted facts of two hops the last attention row answers 30 points in a hundred more than the middle row "
    "(hand-set model).",
    source="Figure G.3",
)
def last_beats_middle(m: Measurements[Params]) -> Judgement:
    gap = planted(m, "accuracy", row="last") - planted(m, "accuracy", row="middle")
    return gap.named("share answered, last row − middle row").at_least(0.3)


@part.claim(
    "C6a",
    "On planted facts of two hops a hand-set model answers as many prompts with GemFilter in one run as in two, within "
    "three points in a hundred.",
    source="Figure G.4",
)
def one_run_is_alike(m: Measurements[Params]) -> Judgement:
    two, one = (every_planted(m, "accuracy", method=method) for method in ("gemfilter", "one-run"))
    return (two - one).named("share answered, two runs − one").between(-0.03, 0.03)


@part.claim(
    "C7b",
    "On planted facts of two hops the tokens that GemFilter keeps hold more of the facts asked for than a set of "
    "SnapKV's does.",
    source="Figures G.5 to G.7",
)
def selection_holds_the_needle(m: Measurements[Params]) -> Judgement:
    ours, theirs = (planted(m, "needle_recall", method=method) for method in ("gemfilter", "snapkv"))
    return (ours - theirs).named("share of the facts kept, GemFilter − SnapKV").above(0)


def whole_and_cut(m: Measurements[Params], task: str) -> tuple[Every, Every]:
    """Answers when the prompts are read whole, and in chunks, at all lengths."""
    where = {"arm": "planted-chunks", "task": task}
    return m.every("accuracy", method="whole", **where), m.every("accuracy", method="chunks", **where)


@part.claims_over(
    {
        "X1a": {"task": "one-hop", "words": "facts of one hop", "headline": True},
        "X1b": {"task": "two-hop, side by side", "words": "facts of two hops that stand side by side"},
    },
    statement="On planted {words} a hand-set model answers at least as many prompts when its filter layer reads them "
    "in chunks as whole.",
    source="beyond the source",
)
def chunks_find(m: Measurements[Params], *, task: str) -> Judgement:
    whole, cut = whole_and_cut(m, task)
    return (cut - whole).named("share answered, chunks − whole").at_least(0, tolerance=1e-6)


@part.claim(
    "X2",
    "On planted facts of two hops that stand in different chunks a hand-set model loses half of its answers and more "
    "by reading in chunks.",
    source="beyond the source",
    headline=True,
)
def chunks_join_nothing(m: Measurements[Params]) -> Judgement:
    where = {"arm": "planted-chunks", "task": "two-hop, far apart", "length": m.params.cut_lengths[0]}
    whole, cut = (m.final("accuracy", method=method, **where) for method in ("whole", "chunks"))
    return (whole - cut).named("share answered, whole − chunks").at_least(0.5)


@part.claim(
    "N3",
    "When the facts of two hops about the asked key are missing, a hand-set model with GemFilter answers nothing.",
    source="control",
)
def absent_needle(m: Measurements[Params]) -> Judgement:
    return every_planted(m, "accuracy", method="absent").named("share answered").at_most(0)


@part.claim(
    "N4",
    "On planted facts of two hops, random tokens and the question, as many as GemFilter keeps, answer no more than a "
    "quarter of the prompts.",
    source="control",
)
def random_tokens(m: Measurements[Params]) -> Judgement:
    return planted(m, "accuracy", method="random").named("share answered").at_most(0.25)


@part.claim(
    "N5",
    "On planted facts of two hops the printed listing, which keeps the first tokens whatever the scores, answers 30 "
    "points in a hundred less than GemFilter.",
    source="Listing of Appendix G.4.1",
    printed="indices of the sort of the top-k indices",
)
def printed_listing(m: Measurements[Params]) -> Judgement:
    # The question's tokens are given to the listing besides.
    gap = planted(m, "accuracy", method="gemfilter") - planted(m, "accuracy", method="listing")
    return gap.named("share answered, GemFilter − printed listing").at_least(0.3)
