"""The claims on transformers: the shape of attention heads (C5), grokking (C6), and a control."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, NotMeasured, Values, combine

from .domains import about, training_inputs
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
_GROKKED = about(STRONG, layers=1, terms=2, decay=1)
_ONE_LAYER = {
    id: about(f"sum-of-{k}", layers=1, terms=k, decay=1e-3) for id, k in {"C5b": 2, "C5c": 3, "C5d": 4}.items()
}
for _id, (_statement, _source, _judge) in _HEADS.items():
    study.claim(_id, _statement, source=_source, **_ONE_LAYER.get(_id, _GROKKED))(_judge)

for _letter, _setting, _k, _p, _decay, _source in (
    ("g", "heads-3", 3, 61, 1e-3, "Figure C.5"),
    ("h", "heads-4", 4, 31, 1e-3, "Figure 4.3"),
    ("i", "heads-5", 5, 17, 1e-3, "Figure C.6"),
    ("j", "heads-3-strong", 3, 61, 1.0, "Figure C.5"),
):

    @study.claim(
        f"C5{_letter}",
        f"at the source's size, k = {_k}, p = {_p}, 160 heads, weight decay {_decay:g}: at least 4 times the untrained "
        "head",
        source=_source,
        **about(_setting, terms=_k, modulus=_p, layers=1, heads=160, decay=_decay),
    )
    def at_size(m: Measurements, setting: str = _setting) -> Judgement:
        return _gain(m, setting, "attention").at_least(4)


def delay(m: Measurements, k: int, suffix: str = "") -> Values:
    """log10 of validation over training step to 0.99 (``_at_90``: 0.9); where validation never got there, a lower
    bound, the larger the more steps were run."""
    setting = f"sum-of-{k}"
    if m.params_of(setting).terms != k:
        raise NotMeasured(f"the claim is about k = {k} in the setting {setting}")
    return m.final(f"log_ratio{suffix}", arm="grokking", setting=setting).named(f"delay at k = {k}")


def known_delay(m: Measurements, k: int, suffix: str = "") -> Values:
    """The same, without a value where it is a lower bound: such a seed cannot show that another delay is longer."""
    return _where_generalised(m, delay(m, k, suffix), f"sum-of-{k}", suffix)


def _where_generalised(m: Measurements, delays: Values, setting: str, suffix: str = "") -> Values:
    """The delays of the seeds that generalised; the others have none, so that a claim on the mean is undecided."""
    known = m.final(f"generalised{suffix}", arm="grokking", setting=setting)
    return combine(lambda v: v[0] if v[1] else math.nan, [delays, known], delays.what)


for _letter, (_few, _many), _threshold in (
    ("a", (2, 3), 0.99),
    ("b", (3, 4), 0.99),
    ("c", (3, 5), 0.99),
    ("l", (2, 3), 0.9),
    ("m", (3, 4), 0.9),
    ("n", (3, 5), 0.9),
):

    @study.claim(
        f"C6{_letter}",
        f"to an accuracy of {_threshold} the delay is longer at k = {_few} than at k = {_many}",
        source=f"Figure 4.4; log10 of the ratio of steps to {_threshold}, runs of k = {_few} that never generalise "
        "counted as at least, up to the last step",
    )
    def shorter(
        m: Measurements, few: int = _few, many: int = _many, suffix: str = "" if _threshold == 0.99 else "_at_90"
    ) -> Judgement:
        return (delay(m, few, suffix) - known_delay(m, many, suffix)).above(0)


for _letter, _k in zip("defg", (2, 3, 4, 5), strict=True):

    @study.claim(
        f"C6{_letter}",
        f"there is grokking at k = {_k}: training and validation both reach 0.99, validation later",
        source="Figure 4.4; a run that never generalises has no delay and leaves this undecided"
        + (" (with more weight decay: C6h, C6i)" if _k == 2 else ""),
        **about(f"sum-of-{_k}", terms=_k),
    )
    def some(m: Measurements, k: int = _k) -> Judgement:
        return known_delay(m, k).above(0)


def _final_gap(m: Measurements) -> Values:
    if len({(p.modulus, training_inputs(p)) for p in map(m.params_of, ("equal-3", "equal-4"))}) > 1:
        raise NotMeasured("the claim is about equal p and equal numbers of training inputs")
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
            lambda m: _where_generalised(m, m.final("log_ratio", arm="grokking", setting=STRONG), STRONG)
            .named("delay").at_least(math.log10(2))),
    "C6j": ("the plateau of k = 2 at weight decay 1e-3 is symmetry: pairs whose mirror image was trained on are right",
            "Derived; the source's k = 2 panel", _plateau),
    "C6k": ("with the same p and the same number of training inputs, k = 4 generalises at least as well as k = 3",
            "Figure 4.4 read as an effect of k alone; there p and the number of inputs change with k",
            lambda m: _final_gap(m).at_least(0)),
    "N6": ("with the tokens in a random order the heads of C5a fail its criterion", "Control: the cycle",
           lambda m: (_share(m, "shuffled") / _share(m, "untrained")).named("share of 2 modes, shuffled/untrained")
           .below(4)),
}  # fmt: skip
_TWO_TERMS = {
    **dict.fromkeys(("C6h", "C6i"), about(STRONG, terms=2, decay=1)),
    "C6j": about("sum-of-2", terms=2, decay=1e-3),
    "N6": _GROKKED,
}
for _id, (_statement, _source, _judge) in _GROKKING.items():
    study.claim(_id, _statement, source=_source, **_TWO_TERMS.get(_id, {}))(_judge)
