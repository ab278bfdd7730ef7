"""The claims on grokking: the delay from fitting to generalising, and what makes it long (C6)."""

from __future__ import annotations

import math

from assay.lab import Judgement, Measurements, NotMeasured, Values, combine

from ..params import about
from .arms import STRONG, Params, part


def delay(m: Measurements[Params], k: int, suffix: str = "") -> Values:
    """log10 of validation over training step to 0.99 (``_at_90``: 0.9); where validation never got there, a lower
    bound, the larger the more steps were run."""
    setting = f"sum-of-{k}"
    if m.params_of(setting).terms != k:
        raise NotMeasured(f"the claim is about k = {k} in the setting {setting}")
    return m.final(f"log_ratio{suffix}", arm="grokking", setting=setting).named(f"delay at k = {k}")


def known_delay(m: Measurements[Params], k: int, suffix: str = "") -> Values:
    """The same, without a value where it is a lower bound: such a seed cannot show that another delay is longer."""
    return _where_generalised(m, delay(m, k, suffix), f"sum-of-{k}", suffix)


def _where_generalised(m: Measurements[Params], delays: Values, setting: str, suffix: str = "") -> Values:
    """The delays of the seeds that generalised; the others have none, so that a claim on the mean is undecided."""
    known = m.final(f"generalised{suffix}", arm="grokking", setting=setting)
    return combine(lambda v: v[0] if v[1] else math.nan, [delays, known], delays.what)


@part.claims_over(
    {
        "C6a": {"few": 2, "many": 3, "threshold": 0.99},
        "C6b": {"few": 3, "many": 4, "threshold": 0.99},
        "C6c": {"few": 3, "many": 5, "threshold": 0.99},
        "C6l": {"few": 2, "many": 3, "threshold": 0.9},
        "C6m": {"few": 3, "many": 4, "threshold": 0.9},
        "C6n": {"few": 3, "many": 5, "threshold": 0.9},
    },
    statement="to an accuracy of {threshold} the delay is longer at k = {few} than at k = {many}",
    source="Figure 4.4; log10 of the ratio of steps to {threshold}, runs of k = {few} that never generalise "
    "counted as at least, up to the last step",
)
def shorter(m: Measurements[Params], *, few: int, many: int, threshold: float) -> Judgement:
    suffix = "" if threshold == 0.99 else "_at_90"
    return (delay(m, few, suffix) - known_delay(m, many, suffix)).above(0)


@part.claims_over(
    {
        "C6d": {"k": 2, "more": " (with more weight decay: C6h, C6i)", **about("sum-of-2", terms=2)},
        "C6e": {"k": 3, "more": "", **about("sum-of-3", terms=3)},
        "C6f": {"k": 4, "more": "", **about("sum-of-4", terms=4)},
        "C6g": {"k": 5, "more": "", **about("sum-of-5", terms=5)},
    },
    statement="there is grokking at k = {k}: training and validation both reach 0.99, validation later",
    source="Figure 4.4; a run that never generalises has no delay and leaves this undecided{more}",
)
def some_delay(m: Measurements[Params], *, k: int) -> Judgement:
    return known_delay(m, k).above(0)


@part.claim(
    "C6h",
    "k = 2 groks within the run when weight decay is 1",
    source="Figure 4.4 with a stronger decay",
    **about(STRONG, terms=2, decay=1),
)
def groks_with_decay(m: Measurements[Params]) -> Judgement:
    generalised = m.final("generalised", arm="grokking", setting=STRONG)
    return generalised.named("share of runs that generalise").at_least(1)


@part.claim(
    "C6i",
    "and takes at least twice as many steps to generalise as to fit",
    source="Figure 4.4 with a stronger decay",
    **about(STRONG, terms=2, decay=1),
)
def twice_as_late(m: Measurements[Params]) -> Judgement:
    delays = _where_generalised(m, m.final("log_ratio", arm="grokking", setting=STRONG), STRONG)
    return delays.named("delay").at_least(math.log10(2))


@part.claim(
    "C6j",
    "the plateau of k = 2 at weight decay 1e-3 is symmetry: pairs whose mirror image was trained on are right",
    source="Derived; the source's k = 2 panel",
    **about("sum-of-2", terms=2, decay=1e-3),
)
def plateau(m: Measurements[Params]) -> Judgement:
    known, other = (
        m.final(f"{name}_accuracy", arm="grokking", setting="sum-of-2") for name in ("mirrored", "unmirrored")
    )
    return (known - other).named("accuracy on mirrored − on other validation pairs").at_least(0.7)


@part.claim(
    "C6k",
    "with the same p and the same number of training inputs, k = 4 generalises at least as well as k = 3",
    source="Figure 4.4 read as an effect of k alone; there p and the number of inputs change with k",
)
def effect_of_terms(m: Measurements[Params]) -> Judgement:
    if len({(p.modulus, p.training_inputs) for p in map(m.params_of, ("equal-3", "equal-4"))}) > 1:
        raise NotMeasured("the claim is about equal p and equal numbers of training inputs")
    three, four = (m.final("validation_accuracy", arm="equal-counts", setting=f"equal-{k}") for k in (3, 4))
    return (four - three).named("validation accuracy, k = 4 − k = 3").at_least(0)
