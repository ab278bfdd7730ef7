"""The claims on transformers: the shape of attention heads (C5), grokking (C6), and a control."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, Values

from .study import study

STRONG = "sum-of-2-strong"


def _share(m: Measurements, name: str, setting: str = STRONG, arm: str = "grokking", modes: int = 2) -> Values:
    return m.final(f"top{modes}_{name}", arm=arm, setting=setting)


def _gain(m: Measurements, setting: str = STRONG, arm: str = "grokking", modes: int = 2) -> Values:
    """The share of the strongest modes of the median head, trained over untrained."""
    ratio = _share(m, "trained", setting, arm, modes) / _share(m, "untrained", setting, arm, modes)
    return ratio.named(f"share of {modes} modes, trained/untrained")


_HEADS = {
    "C5a": ("a grokked one-layer transformer (k = 2, weight decay 1) has periodic heads: two modes carry at least 4 "
            "times the share of the untrained head", "Figure 4.3, against the untrained head",
            lambda m: _gain(m).at_least(4)),
    "C5b": ("so has one trained with the source's weight decay of 1e-3, k = 2", "Figure 4.3",
            lambda m: _gain(m, "sum-of-2").at_least(4)),
    "C5c": ("k = 3, weight decay 1e-3", "Figure C.5", lambda m: _gain(m, "sum-of-3").at_least(4)),
    "C5d": ("k = 4, weight decay 1e-3", "Figure 4.3", lambda m: _gain(m, "sum-of-4").at_least(4)),
    "C5e": ("heads of the grokked transformer are two superposed cosines: two modes carry at least half of the power",
            "Introduction of chapter 4, Figure 4.3",
            lambda m: _share(m, "trained").named("share of 2 modes").at_least(0.5)),
    "C5f": ("key-query weights take part: with those of the start under the trained embeddings the share is smaller",
            "Figure 4.3 reads W^{KQ}; at one layer no number is ever a query",
            lambda m: (_share(m, "trained") / _share(m, "embedding")).named("share of 2 modes, all trained/embeddings "
                                                                            "alone").above(1)),
}  # fmt: skip
for _id, (_statement, _source, _judge) in _HEADS.items():
    study.claim(_id, _statement, source=_source)(_judge)

for _letter, _setting, _words, _source in (
    ("g", "heads-3", "k = 3, p = 61, 160 heads", "Figure C.5"),
    ("h", "heads-4", "k = 4, p = 31, 160 heads", "Figure 4.3"),
    ("i", "heads-5", "k = 5, p = 17, 160 heads", "Figure C.6"),
    ("j", "heads-3-strong", "k = 3, p = 61, 160 heads, weight decay 1", "Figure C.5"),
):

    @study.claim(f"C5{_letter}", f"at the source's size, {_words}: at least 4 times the untrained head", source=_source)
    def at_size(m: Measurements, setting: str = _setting) -> Judgement:
        return _gain(m, setting, "attention").at_least(4)


def delay(m: Measurements, k: int, suffix: str = "") -> Values:
    """log10 of validation over training step to 0.99; where validation never got there, a lower bound."""
    return m.final(f"log_ratio{suffix}", arm="grokking", setting=f"sum-of-{k}").named(f"delay at k = {k}")


def known_delay(m: Measurements, k: int, suffix: str = "") -> Values:
    """The same, without a value where it is a lower bound: such a seed cannot show that another delay is longer."""
    known = m.final(f"generalised{suffix}", arm="grokking", setting=f"sum-of-{k}").by_seed
    return Values({s: d if known[s] else math.nan for s, d in delay(m, k, suffix).by_seed.items()}, f"delay at k = {k}")


for _letter, (_few, _many) in zip("abc", ((2, 3), (3, 4), (3, 5)), strict=True):

    @study.claim(
        f"C6{_letter}",
        f"the delay is longer at k = {_few} than at k = {_many}",
        source="Figure 4.4; log10 of the ratio of steps to 0.99, runs that never generalise counted as at least",
    )
    def shorter(m: Measurements, few: int = _few, many: int = _many) -> Judgement:
        return (delay(m, few) - known_delay(m, many)).above(0)


for _letter, _k in zip("defg", (2, 3, 4, 5), strict=True):

    @study.claim(
        f"C6{_letter}",
        f"there is grokking at k = {_k}: validation reaches 0.99 later than training",
        source="Figure 4.4; a run that never generalises counts as at least",
    )
    def some(m: Measurements, k: int = _k) -> Judgement:
        return delay(m, k).above(0)


def _final_gap(m: Measurements) -> Values:
    three, four = (m.final("validation_accuracy", arm="equal-counts", setting=f"equal-{k}") for k in (3, 4))
    return (four - three).named("validation accuracy, k = 4 − k = 3")


def _plateau(m: Measurements) -> Judgement:
    gap = m.final("mirrored_accuracy", arm="grokking", setting="sum-of-2") - m.final(
        "unmirrored_accuracy", arm="grokking", setting="sum-of-2"
    )
    return gap.named("accuracy on mirrored − on other validation pairs").at_least(0.7)


_GROKKING = {
    "C6h": ("k = 2 groks within the run when weight decay is 1", "Figure 4.4 with a stronger decay",
            lambda m: m.final("generalised", arm="grokking", setting=STRONG).named("share of runs that generalise")
            .at_least(1)),
    "C6i": ("and takes at least twice as many steps to generalise as to fit", "Figure 4.4 with a stronger decay",
            lambda m: m.final("log_ratio", arm="grokking", setting=STRONG).named("delay").at_least(math.log10(2))),
    "C6j": ("the plateau of k = 2 at weight decay 1e-3 is symmetry: pairs whose mirror image was trained on are right",
            "Derived; the source's k = 2 panel", _plateau),
    "C6k": ("at fixed p = 11 and 665 training inputs, k = 4 generalises at least as well as k = 3",
            "Figure 4.4 read as an effect of k alone; there p and the number of inputs change with k",
            lambda m: _final_gap(m).at_least(0)),
    "C6l": ("to an accuracy of 0.9 the delay is longer at k = 2 than at k = 3",
            "Figure 4.4; at 0.99 some runs of k = 3 stop short for good",
            lambda m: (delay(m, 2, "_at_90") - known_delay(m, 3, "_at_90")).above(0)),
    "N6": ("with the tokens in a random order the heads of C5a fail its criterion", "Control: the cycle",
           lambda m: (_share(m, "shuffled") / _share(m, "untrained")).named("share of 2 modes, shuffled/untrained")
           .below(4)),
}  # fmt: skip
for _id, (_statement, _source, _judge) in _GROKKING.items():
    study.claim(_id, _statement, source=_source)(_judge)
