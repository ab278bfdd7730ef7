"""C8: the split on real networks, Reptile beside it, and the controls of both."""

from __future__ import annotations

from collections.abc import Sequence

from assay.lab import Judgement, Measurements, Values, pick

from ..learners import TT, TV
from .arms import Params, part


def _rainbow(m: Measurements[Params], split: str, variant: str = "huberized") -> Values:
    return m.final("accuracy", arm="rainbow", split=split, variant=variant)


def _gap(m: Measurements[Params], variant: str = "huberized") -> Values:
    return (_rainbow(m, TV, variant) - _rainbow(m, TT, variant)).named("accuracy with − without a split")


@part.claims_over(
    {
        "C8a": {"variant": "huberized", "table": "Table 1"},
        "C8b": {"variant": "relu", "table": "Table 1"},
        "C8c": {"variant": "one step", "table": "Table 2"},
    },
    statement="on RainbowMNIST the split gives the higher accuracy on new tasks ({variant})",
    source="{table}, RainbowMNIST, on the configured image set",
)
def split_wins(m: Measurements[Params], *, variant: str) -> Judgement:
    return _gap(m, variant).above(0)


@part.claim("C8d", "the gap is larger with five inner steps than with one", source="Table 2, RainbowMNIST")
def steps_widen(m: Measurements[Params]) -> Judgement:
    return (_gap(m) - _gap(m, "one step")).named("gap at 5 − gap at 1").above(0)


@part.claim("C8e", "more inner steps hurt without a split", source="Table 2, RainbowMNIST")
def steps_hurt(m: Measurements[Params]) -> Judgement:
    return (_rainbow(m, TT) - _rainbow(m, TT, "one step")).named("accuracy at J = 5 − J = 1").below(0)


@part.claim(
    "C8f",
    "the gap is smaller with outer above inner rate",
    source="Table 3, RainbowMNIST",
    printed="the split performs better when the inner rate is smaller than the outer one (the table has the opposite)",
)
def swapped_narrows(m: Measurements[Params]) -> Judgement:
    return (_gap(m) - _gap(m, "swapped rates")).named("gap − gap with rates swapped").above(0)


@part.claims_over(
    {"C8g": {"split": TT}, "C8h": {"split": TV}},
    statement="the activation moves the accuracy of {split} by less than a quarter of the gap",
    source="Table 1, RainbowMNIST",
)
def activation_matters_little(m: Measurements[Params], *, split: str) -> Judgement:
    change = (_rainbow(m, split, "relu") - _rainbow(m, split)).map(abs)
    return (change - _gap(m) * 0.25).named("|ReLU − Huberized| − gap/4").below(0)


@part.claim(
    "C8i",
    "FOMAML with a split at the source's rates is at least as good as Reptile, tuned (two points are a tie)",
    source="Table 4, RainbowMNIST",
)
def as_good_as_reptile(m: Measurements[Params]) -> Judgement:
    lead = _rainbow(m, TV) - m.final("accuracy", arm="reptile")
    return lead.named("FOMAML − Reptile").at_least(-0.02)


@part.claim("C8j", "so it is with its own rates tuned in the same way", source="Table 4, RainbowMNIST")
def as_good_as_reptile_when_tuned(m: Measurements[Params]) -> Judgement:
    lead = m.final("accuracy", arm="fomaml-tuned") - m.final("accuracy", arm="reptile")
    return lead.named("FOMAML, tuned − Reptile, tuned").at_least(-0.02)


@part.claim(
    "C8k",
    "with six blocks, too, the split gives the higher accuracy",
    source="CNN-6 beside CNN-4",
    when={"six blocks": lambda p: p.blocks == 6},
)
def deeper(m: Measurements[Params]) -> Judgement:
    return _gap(m).above(0)


@part.claim(
    "C8l",
    "and with three or five shots",
    source="1-, 3- and 5-shot tasks",
    when={"three or five shots": lambda p: p.shots in (3, 5)},
)
def more_shots(m: Measurements[Params]) -> Judgement:
    return _gap(m).above(0)


# Controls


def _tuning_lead(m: Measurements[Params], arm: str, candidates: Sequence[str], chosen: str) -> Values:
    found = {each: m.final("tuning_accuracy", arm=arm, candidate=each) for each in candidates}
    return (pick(max, found.values()) - found[chosen]).named("best candidate − chosen")


@part.claim(
    "N5",
    "nothing in Reptile's tuning grid beats the chosen pair by more than two points",
    source="Control of C8i",
)
def reptile_is_tuned(m: Measurements[Params]) -> Judgement:
    return _tuning_lead(m, "reptile-tuning", m.params.reptile_candidates, m.params.reptile).at_most(0.02)


@part.claim(
    "N6",
    "meta-training matters on RainbowMNIST: with a split it gains at least 10 points on the start",
    source="Control of C8",
)
def training_matters(m: Measurements[Params]) -> Judgement:
    start = m.at("accuracy", 0, arm="rainbow", split=TV, variant="huberized")
    return (_rainbow(m, TV) - start).named("accuracy at the end − at the start").above(0.1)


@part.claim(
    "N7",
    "nothing in FOMAML's tuning grid beats the chosen pair by more than two points",
    source="Control of C8j",
)
def fomaml_is_tuned(m: Measurements[Params]) -> Judgement:
    return _tuning_lead(m, "fomaml-tuning", m.params.fomaml_candidates, m.params.fomaml).at_most(0.02)
