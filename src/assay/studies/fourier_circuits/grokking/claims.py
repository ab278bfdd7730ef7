"""The claims on grokking: the delay from fitting to generalising, and what makes it long (C6)."""

from __future__ import annotations

import math
from dataclasses import replace

from assay.lab import Judgement, Measurements, NotMeasured, Values

from ..params import about
from .arms import STRONG, Params, part

LISTED_DECAY = 1e-3  # the source's


def delay(m: Measurements[Params], k: int, suffix: str = "") -> Values:
    """log10 of validation over training step to 0.99 (``_at_90``: 0.9); where validation never got there, a lower
    bound, the larger the more steps were run."""
    setting = f"sum-of-{k}"
    params = m.params_of(setting)
    if params.terms != k:
        raise NotMeasured(f"the claim is about k = {k} in the setting {setting}")
    if params.decay != LISTED_DECAY:
        raise NotMeasured(f"the claim is about weight decay {LISTED_DECAY:g} in the setting {setting}")
    return m.final(f"log_ratio{suffix}", arm="grokking", setting=setting).named(f"delay at k = {k}")


def known_delay(m: Measurements[Params], k: int, suffix: str = "") -> Values:
    """The same, without a value where it is a lower bound: such a seed cannot show that another delay is longer."""
    return where_generalised(m, delay(m, k, suffix), f"sum-of-{k}", suffix)


def where_generalised(m: Measurements[Params], values: Values, setting: str, suffix: str = "") -> Values:
    """The values of the seeds that generalised; the others have none, which counts as the worst."""
    known = m.final(f"generalised{suffix}", arm="grokking", setting=setting).by_seed
    kept = {seed: value if known.get(seed) == 1 else math.nan for seed, value in values.by_seed.items()}
    return replace(values, by_seed=kept)


@part.claims_over(
    {
        "C6a": {"few": 2, "many": 3, "threshold": 0.99},
        "C6b": {"few": 3, "many": 4, "threshold": 0.99},
        "C6c": {"few": 3, "many": 5, "threshold": 0.99},
        "C6l": {"few": 2, "many": 3, "threshold": 0.9, "headline": True},
        "C6m": {"few": 3, "many": 4, "threshold": 0.9},
        "C6n": {"few": 3, "many": 5, "threshold": 0.9},
    },
    statement="At weight decay 0.001 transformers adding {many} numbers mod a smaller p all reach validation accuracy "
    "{threshold}, with less delay after training accuracy than those adding {few} mod a larger p.",
    source="Figure 4.4; log10 of the ratio of steps to {threshold}, runs of k = {few} that never generalise "
    "counted as at least, up to the last step",
)
def shorter(m: Measurements[Params], *, few: int, many: int, threshold: float) -> Judgement:
    if m.params_of(f"sum-of-{many}").modulus >= m.params_of(f"sum-of-{few}").modulus:
        raise NotMeasured(f"the claim is about a smaller p at k = {many} than at k = {few}")
    suffix = "" if threshold == 0.99 else "_at_90"
    return (delay(m, few, suffix) - known_delay(m, many, suffix)).above(0)


@part.claims_over(
    {
        "C6d": {
            "k": 2,
            "more": " (with more weight decay: C6h, C6i)",
            **about("sum-of-2", terms=2, decay=LISTED_DECAY),
        },
        "C6e": {"k": 3, "more": "", **about("sum-of-3", terms=3, decay=LISTED_DECAY)},
        "C6f": {"k": 4, "more": "", **about("sum-of-4", terms=4, decay=LISTED_DECAY)},
        "C6g": {"k": 5, "more": "", **about("sum-of-5", terms=5, decay=LISTED_DECAY)},
    },
    statement="At weight decay 0.001 transformers adding {k} numbers mod p grok: training and validation accuracy "
    "reach 0.99 in every run, validation later on average.",
    source="Figure 4.4; a run that never generalises has no delay, and counts against it{more}",
)
def some_delay(m: Measurements[Params], *, k: int) -> Judgement:
    return known_delay(m, k).above(0)


@part.claim(
    "C6h",
    "With weight decay 1, every transformer adding 2 numbers mod p generalises within the run, to validation accuracy "
    "0.99.",
    source="Figure 4.4 with a stronger decay",
    **about(STRONG, terms=2, decay=1),
)
def groks_with_decay(m: Measurements[Params]) -> Judgement:
    return m.every("generalised", arm="grokking", setting=STRONG).named("run generalises").at_least(1)


@part.claim(
    "C6i",
    "With weight decay 1, transformers adding 2 numbers mod p take at least twice as many steps to generalise as to "
    "fit (accuracy 0.99).",
    source="Figure 4.4 with a stronger decay",
    **about(STRONG, terms=2, decay=1),
)
def twice_as_late(m: Measurements[Params]) -> Judgement:
    delays = where_generalised(m, m.final("log_ratio", arm="grokking", setting=STRONG), STRONG)
    return delays.named("log10 of the ratio of steps").at_least(math.log10(2))


@part.claim(
    "C6j",
    "Adding 2 numbers mod p at weight decay 0.001, transformers know validation pairs whose mirror image was trained "
    "on 70 points better than others.",
    source="Derived; the plateau of the source's k = 2 panel at one half is symmetry",
    **about("sum-of-2", terms=2, decay=LISTED_DECAY),
)
def plateau(m: Measurements[Params]) -> Judgement:
    known, other = (
        m.final(f"{name}_accuracy", arm="grokking", setting="sum-of-2") for name in ("mirrored", "unmirrored")
    )
    return (known - other).named("accuracy on mirrored − on other validation pairs").at_least(0.7)


@part.claim(
    "C6k",
    "With equal p and equally many training inputs, transformers adding 4 numbers mod p generalise at least as well as "
    "those adding 3.",
    source="Figure 4.4 read as an effect of k alone; there p and the number of inputs change with k",
    headline=True,
)
def effect_of_terms(m: Measurements[Params]) -> Judgement:
    three, four = (m.params_of(f"equal-{k}") for k in (3, 4))
    if (three.terms, four.terms) != (3, 4):
        raise NotMeasured("the claim is about k = 3 and k = 4")
    if (three.modulus, three.training_inputs) != (four.modulus, four.training_inputs):
        raise NotMeasured("the claim is about equal p and equal numbers of training inputs")
    few, many = (m.final("validation_accuracy", arm="equal-counts", setting=f"equal-{k}") for k in (3, 4))
    return (many - few).named("validation accuracy, k = 4 − k = 3").at_least(0)
