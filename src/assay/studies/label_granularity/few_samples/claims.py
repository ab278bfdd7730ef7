"""Claims about few images: classes that pretraining never saw (C10), training twice (C11b), splits of classes (C12)."""

from __future__ import annotations

from itertools import pairwise

from assay.lab import Judgement, Measurements, Values, pick

from ..images.claims import on_set
from .arms import GRAINS, SPLIT_BY, SPLITS, Params, part


def _accuracy(m: Measurements[Params], grain: int, readout: str) -> Values:
    return m.final("accuracy", arm="cross", grain=grain, readout=readout)


@part.claims_over(
    {
        "C10a": {"readout": "finetune", "way": "finetuning", "table": "Figure 2, Table 7"},
        "C10b": {"readout": "probe", "way": "a linear probe", "table": "Table 8"},
    },
    statement="On classes of the configured image set that are new, {way} is more accurate after pretraining on six "
    "classes than on two.",
    source="{table}; six classes at five granularities, then four others",
)
def finer_transfers(m: Measurements[Params], *, readout: str) -> Judgement:
    return on_set(m, _accuracy(m, 6, readout) - _accuracy(m, 2, readout), "accuracy, 6 − 2 classes").above(0)


@part.claims_over(
    {
        "C10c": {"readout": "finetune", "way": "finetuning", "table": "Figure 2, Table 7"},
        "C10d": {"readout": "probe", "way": "a linear probe", "table": "Table 8"},
    },
    statement="On classes of the configured image set that are new, the accuracy of {way} rises with every step to "
    "finer pretraining labels.",
    source="{table}: Spearman's correlation 1, so every step must rise; shown is the step that decides",
)
def monotone(m: Measurements[Params], *, readout: str) -> Judgement:
    steps = []
    for coarser, finer in pairwise(GRAINS):
        gain = _accuracy(m, finer, readout) - _accuracy(m, coarser, readout)
        steps.append(on_set(m, gain, f"accuracy, {finer} − {coarser} classes").above(0))
    return weakest(steps)


def weakest(judged: list[Judgement]) -> Judgement:
    """Of several judgements that must all hold the one that decides: a failed one, else an undecided one (first of
    all one with a reason, such as values that are not finite), else the least sure."""
    order = {"fails": 0, "undecided": 1, "holds": 2}
    return min(judged, key=lambda each: (order[each.verdict], not each.reason, each.estimate))


@part.claim(
    "C10e",
    "On classes of the configured image set that are new, finer pretraining labels matter more to a linear probe than "
    "to finetuning.",
    source="Tables 7 and 8: 24 points against 10",
)
def probe_spread(m: Measurements[Params]) -> Judgement:
    return on_set(m, _spread(m, "probe") - _spread(m, "finetune"), "spread, probe − finetune").above(0)


def _spread(m: Measurements[Params], readout: str) -> Values:
    return _accuracy(m, max(GRAINS), readout) - _accuracy(m, min(GRAINS), readout)


def _retrained(m: Measurements[Params]) -> Values:
    return m.final("error", arm="few-samples", scheme="coarse")


@part.claim(
    "C11b",
    "With few images of each class of the configured image set, training on the classes twice beats training on them "
    "once.",
    source="Table 6",
)
def twice(m: Measurements[Params]) -> Judgement:
    difference = m.final("error", arm="few-samples", scheme="one pass") - _retrained(m)
    return on_set(m, difference, "error, one pass − retraining, few images").above(0)


def best_split(m: Measurements[Params]) -> Values:
    """What the best split gains over retraining, the best by its mean over seeds."""
    gains = [
        _retrained(m) - m.final("error", arm="few-samples", scheme=scheme, splits=n)
        for scheme in SPLIT_BY
        for n in SPLITS
    ]
    return on_set(m, pick(max, gains), "error, retraining − best split")


@part.claim(
    "C12",
    "With few images of each class of the configured image set, no split of the classes gains more than a point over "
    "retraining on them.",
    source="Table 6; ten classes with few images each, split by clusters or at random",
)
def starved(m: Measurements[Params]) -> Judgement:
    return best_split(m).at_most(0.01)
