"""C8: the split on real networks, Reptile beside it, and the controls of both."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from assay.lab import Judgement, Measurements, Values, pick

from ..learners import TT, TV
from ..theorems.claims import EITHER
from .arms import Params, part

# Tasks as in RainbowMNIST, of whichever set of images is configured: the criterion names it.
TASKS = "coloured, turned and scaled images of the configured set (as in RainbowMNIST)"
IMAGES = "the images are those of the set in the criterion"


def _rainbow(m: Measurements[Params], split: str, variant: str = "huberized") -> Values:
    return m.final("accuracy", arm="rainbow", split=split, variant=variant)


def _named(m: Measurements[Params], values: Values, what: str) -> Values:
    return values.named(f"{what}, {m.params.images}")


def _gap(m: Measurements[Params], variant: str = "huberized") -> Values:
    return _named(m, _rainbow(m, TV, variant) - _rainbow(m, TT, variant), "accuracy with − without a split")


@part.claims_over(
    {
        "C8a": {"variant": "huberized", "table": "Table 1", "words": "five inner steps"},
        "C8b": {"variant": "relu", "table": "Table 1", "words": "ReLU"},
        "C8c": {"variant": "one step", "table": "Table 2", "words": "one inner step"},
    },
    statement=f"A convolutional network meta-trained on {TASKS} is more accurate on new tasks with a split than "
    "without one ({words}).",
    source=f"{{table}}, RainbowMNIST; {IMAGES}",
)
def split_wins(m: Measurements[Params], *, variant: str) -> Judgement:
    return _gap(m, variant).above(0)


@part.claim(
    "C8d",
    f"On {TASKS} a split gains more accuracy on new tasks with five inner steps than with one.",
    source=f"Table 2, RainbowMNIST; {IMAGES}",
)
def steps_widen(m: Measurements[Params]) -> Judgement:
    return _named(m, _gap(m) - _gap(m, "one step"), "gap at 5 − gap at 1").above(0)


@part.claim(
    "C8e",
    f"On {TASKS} accuracy on new tasks without a split is lower with five inner steps than with one.",
    source=f"Table 2, RainbowMNIST; {IMAGES}",
)
def steps_hurt(m: Measurements[Params]) -> Judgement:
    return _named(m, _rainbow(m, TT) - _rainbow(m, TT, "one step"), "accuracy at J = 5 − J = 1").below(0)


@part.claim(
    "C8f",
    f"On {TASKS} a split gains less accuracy on new tasks when inner and outer rate are swapped (outer above inner).",
    source=f"Table 3, RainbowMNIST; {IMAGES}",
    printed="the split performs better when the inner rate is smaller than the outer one (the table has the opposite)",
)
def swapped_narrows(m: Measurements[Params]) -> Judgement:
    return _named(m, _gap(m) - _gap(m, "swapped rates"), "gap − gap with rates swapped").above(0)


@part.claims_over(
    {"C8g": {"split": TT, "how": EITHER[TT]}, "C8h": {"split": TV, "how": EITHER[TV]}},
    statement=f"On {TASKS} ReLU instead of its Huberized form moves accuracy {{how}} by less than a quarter of what a "
    "split gains.",
    source=f"Table 1, RainbowMNIST; {IMAGES}",
)
def activation_matters_little(m: Measurements[Params], *, split: str) -> Judgement:
    change = (_rainbow(m, split, "relu") - _rainbow(m, split)).map(abs)
    return _named(m, change - _gap(m) * 0.25, "|ReLU − Huberized| − gap/4").below(0)


@part.claim(
    "C8i",
    f"On {TASKS} FOMAML with a split at the source's rates is at least as accurate as tuned Reptile (two points are a "
    "tie).",
    source=f"Table 4, RainbowMNIST; {IMAGES}",
)
def as_good_as_reptile(m: Measurements[Params]) -> Judgement:
    lead = _rainbow(m, TV) - m.final("accuracy", arm="reptile")
    return _named(m, lead, "FOMAML − Reptile").at_least(-0.02)


@part.claim(
    "C8j",
    f"On {TASKS} FOMAML with a split is at least as accurate as Reptile when both are tuned alike (two points are a "
    "tie).",
    source=f"Table 4, RainbowMNIST; {IMAGES}",
)
def as_good_as_reptile_when_tuned(m: Measurements[Params]) -> Judgement:
    lead = m.final("accuracy", arm="fomaml-tuned") - m.final("accuracy", arm="reptile")
    return _named(m, lead, "FOMAML, tuned − Reptile, tuned").at_least(-0.02)


@part.claims_over(
    {
        "C8k": {
            "larger": "six-blocks",
            "table": "Table 5",
            "words": "A convolutional network of six blocks",
            "setting": "six-blocks",
            "when": {"six blocks": lambda p: p.blocks == 6},
        },
        "C8l": {
            "larger": "five-shots",
            "table": "Table 6",
            "words": "A convolutional network given five samples per class",
            "setting": "five-shots",
            "when": {"five shots": lambda p: p.shots == 5},
        },
    },
    statement=f"{{words}}, meta-trained on {TASKS}, is more accurate on new tasks with a split than without one.",
    source=f"{{table}}, there on miniImagenet; {IMAGES}; runs at the preset paper, or with --arms +rainbow-larger",
)
def split_wins_larger(m: Measurements[Params], *, larger: str) -> Judgement:
    found = [m.final("accuracy", arm="rainbow-larger", setting=larger, split=split) for split in (TV, TT)]
    return _named(m, found[0] - found[1], "accuracy with − without a split").above(0)


# Controls


@part.claims_over(
    {
        "N5": {
            "arm": "reptile-tuning",
            "chosen": lambda p: p.reptile,
            "candidates": lambda p: p.reptile_candidates,
            "words": "Reptile",
            "of": "C8i and C8j",
            "when": {"at least two candidates": lambda p: len(p.reptile_candidates) > 1},
        },
        "N7": {
            "arm": "fomaml-tuning",
            "chosen": lambda p: p.fomaml,
            "candidates": lambda p: p.fomaml_candidates,
            "words": "FOMAML",
            "of": "C8j",
            "when": {"at least two candidates": lambda p: len(p.fomaml_candidates) > 1},
        },
    },
    statement=f"On {TASKS} no other pair of rates in the tuning grid of {{words}} is more accurate than the chosen one "
    "by over two points.",
    source=f"Control of {{of}}, on seeds and images kept for tuning; {IMAGES}",
)
def is_tuned(
    m: Measurements[Params],
    *,
    arm: str,
    chosen: Callable[[Params], str],
    candidates: Callable[[Params], Iterable[str]],
) -> Judgement:
    """The best of the others: among all candidates a chosen one that is the best would be compared with itself."""
    found = {each: m.final("tuning_accuracy", arm=arm, candidate=each) for each in candidates(m.params)}
    ours = found.pop(chosen(m.params))
    return _named(m, pick(max, found.values()) - ours, "best other candidate − chosen").at_most(0.02)


@part.claim(
    "N6",
    f"On {TASKS} accuracy on new tasks after meta-training with a split is over 10 points above that of the untrained "
    "network.",
    source=f"Control of C8; {IMAGES}",
)
def training_matters(m: Measurements[Params]) -> Judgement:
    start = m.at("accuracy", 0, arm="rainbow", split=TV, variant="huberized")
    return _named(m, _rainbow(m, TV) - start, "accuracy at the end − at the start").above(0.1)
