"""The claims of the source on planted needles, where it is known which layer of the hand-set model finds what."""

from __future__ import annotations

from typing import Any

from scipy import stats

from assay.lab import Judgement, Measurements, Values, combine

from ..params import DEPTHS
from .arms import Params, part
from .problem import TASKS
from .theory import FOUND, LAYERS

HARD = "two-hop"
FOUND_LAYER = FOUND[TASKS[HARD]][0]


def planted(m: Measurements[Params], metric: str, *, length: int | None = None, **where: Any) -> Values:
    """One value per seed from the planted needles of two hops, at the first length unless another is asked for."""
    return m.final(metric, arm="planted", task=HARD, length=length or m.params.lengths[0], **where)


@part.claim(
    "C1a",
    "planted, two hops: the last row of a layer before the last covers the value",
    source="Figures 9.2 and 9.5",
)
def value_is_found(m: Measurements[Params]) -> Judgement:
    return planted(m, "coverage", layer=FOUND_LAYER).at_least(0.95)


@part.claim(
    "C1b",
    "planted, two hops: the first layer covers the value no better than twice by chance, 2k/n",
    source="Figure 9.5",
)
def first_layer_does_not(m: Measurements[Params]) -> Judgement:
    return planted(m, "coverage", layer=0).at_most(0.25)


@part.claim("C2a", "planted: GemFilter answers as often as full attention", source="Figure 9.4")
def keeps_accuracy(m: Measurements[Params]) -> Judgement:
    gap = planted(m, "accuracy", method="gemfilter") - planted(m, "accuracy", method="full")
    return gap.at_least(-0.02)


@part.claim("C2b", "planted: and on the longest prompts", source="Figure 9.4")
def keeps_accuracy_when_long(m: Measurements[Params]) -> Judgement:
    n = max(m.params.lengths)
    ours, full = (planted(m, "accuracy", length=n, method=method) for method in ("gemfilter", "full"))
    return (ours - full).at_least(0)


@part.claim(
    "C2c", "planted, two hops: GemFilter answers more often than SnapKV at the same budget", source="Figure 9.4"
)
def better_than_snapkv(m: Measurements[Params]) -> Judgement:
    return (planted(m, "accuracy", method="gemfilter") - planted(m, "accuracy", method="snapkv")).above(0)


@part.claim(
    "C4a",
    "planted, two hops: the first layer that covers the value is the same for nine prompts in ten (depth 1 aside: the "
    "last tokens are kept by every layer)",
    source="Figure 9.5",
    printed="min(topk_index − needle_index), without the absolute value",
)
def first_layer_is_consistent(m: Measurements[Params]) -> Judgement:
    return planted(m, "first_layer_share").at_least(0.9)


@part.claim("C4b", "planted, two hops: the found layer answers more often than the first by 0.3", source="Table 9.2")
def found_beats_first(m: Measurements[Params]) -> Judgement:
    return (planted(m, "accuracy", layer=FOUND_LAYER) - planted(m, "accuracy", layer=0)).at_least(0.3)


@part.claim("C4c", "planted, two hops: the last layer no longer points at the value: worse by 0.3", source="Table 9.2")
def found_beats_last(m: Measurements[Params]) -> Judgement:
    return (planted(m, "accuracy", layer=FOUND_LAYER) - planted(m, "accuracy", layer=LAYERS - 1)).at_least(0.3)


@part.claim("C4d", "planted, two hops: over layers, accuracy follows coverage (rank correlation)", source="Table 9.2")
def accuracy_follows_coverage(m: Measurements[Params]) -> Judgement:
    layers = [planted(m, metric, layer=i) for metric in ("coverage", "accuracy") for i in range(LAYERS)]
    follows = combine(
        lambda v: stats.spearmanr(v[:LAYERS], v[LAYERS:]).statistic, layers, "rank correlation of accuracy and coverage"
    )
    return follows.above(0.8)


@part.claim("C5a", "planted, two hops: the last row answers more often than the middle row by 0.3", source="Figure G.3")
def last_beats_middle(m: Measurements[Params]) -> Judgement:
    return (planted(m, "accuracy", row="last") - planted(m, "accuracy", row="middle")).at_least(0.3)


@part.claim("C6a", "planted: one run and two answer alike", source="Figure G.4")
def one_run_is_alike(m: Measurements[Params]) -> Judgement:
    gap = planted(m, "accuracy", method="gemfilter") - planted(m, "accuracy", method="one-run")
    return gap.between(-0.03, 0.03)


@part.claim(
    "C7b",
    "planted: an index set of GemFilter holds more of the needle than one of SnapKV",
    source="Figures G.5 to G.7",
)
def selection_holds_the_needle(m: Measurements[Params]) -> Judgement:
    ours, theirs = (planted(m, "needle_recall", method=method) for method in ("gemfilter", "snapkv"))
    return (ours - theirs).above(0)


@part.claim("N3", "planted: when the facts about the asked key are missing nothing is answered", source="control")
def absent_needle(m: Measurements[Params]) -> Judgement:
    return planted(m, "accuracy", method="absent").at_most(0.05)


@part.claim("N4", "planted: as many tokens at random, with the question, are not enough", source="control")
def random_tokens(m: Measurements[Params]) -> Judgement:
    return planted(m, "accuracy", method="random").at_most(0.25)


@part.claim(
    "N5",
    "planted: the printed listing, which returns the first tokens for any scores, is not enough, even with the "
    "question's tokens given besides",
    source="Listing of Section 9.3",
    printed="indices of the sort of the top-k indices",
)
def printed_listing(m: Measurements[Params]) -> Judgement:
    return planted(m, "accuracy", method="listing").at_most(1 / len(DEPTHS) + 0.1)
