"""Where claims apply, and what is claimed of the network and fixed features alike: without structure they are at chance
(C6), and interval labels, which a count tells, are easier (C7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from assay.lab import Judgement, Measurements, NotMeasured, Values, combine

from .network.arms import MEMORISED
from .study import Params, study

Domain = dict[str, Callable[[Any], bool]]

PARITY: Domain = {
    "parity of an odd number of relevant patterns": lambda p: p.labels == "parity" and p.relevant % 2 == 1,
    "the structured mixture": lambda p: p.structured == "mixture",
}
THEORY: Domain = {
    **PARITY,
    "a background rate of 1/2, where the background is independent": lambda p: p.background == 0.5,
    "exact erasure of the old weights (forget = 1)": lambda p: p.forget == 1,
}
INTERVAL: Domain = {"interval labels": lambda p: p.labels == "interval"}
STRUCTURED = {"inputs": "structured"}
CHANCE = 0.55  # what counts as chance on balanced classes in all of the study
FITTED = 0.99  # of a training set, from which on it counts as fitted
FIRST_STEPS = 2  # updates of the network before stage three, from which on its steps are counted


def also_in(m: Measurements[Any], setting: str, domain: Domain) -> None:
    """Hold a claim that compares two settings to its domain in the second one as well."""
    for words, within in domain.items():
        if not within(m.params_of(setting)):
            raise NotMeasured(f"the claim is about {words}")


def balanced(m: Measurements[Any], **where: Any) -> Values:
    """Balanced accuracy at the last step, as unsure as the two classes' counted recalls."""
    positive, negative = (m.final(f"{sign}_recall", **where) for sign in ("positive", "negative"))
    # The mean of two shares is one, and its interval stays within [0, 1].
    return (0.5 * (positive + negative)).as_share().named("balanced accuracy")


def _without(setting: str) -> Domain:
    return {**PARITY, f"runs without structure in the setting {setting}": lambda p: setting in p.unstructured}


@study.claim(
    "C6a",
    "On parity of inputs without structure, a network that fits 99 % of its training set stays at chance on new "
    "inputs: at most 55 % test accuracy at every step.",
    source="Theorem on statistical queries, Table 1; a network that does not fit its training set counts against it",
    when=_without(MEMORISED),
    setting=MEMORISED,
    paper="52.0 %",
    headline=True,
)
def unstructured_network(m: Measurements[Params]) -> Judgement:
    where = {"arm": "unstructured", "setting": MEMORISED}
    found = [m.best("test_accuracy", **where), m.final("train_accuracy", **where)]
    best = combine(lambda v: v[0] if v[1] >= FITTED else math.nan, found, "best test accuracy of a fitted network")
    return best.at_most(CHANCE)


@study.claims_over(
    {
        "C6b": {"arm": "ntk", "words": "the linearised network (NTK)"},
        "C6c": {"arm": "random-features", "words": "a head on random features"},
    },
    statement="Without structure in the inputs, {words} stays at chance on new parity data at every step.",
    source="Theorem on statistical queries, Figure 1",
    when=PARITY,
    setting="parity",
)
def unstructured_fixed(m: Measurements[Params], *, arm: str) -> Judgement:
    return m.best("test_accuracy", arm=arm, setting="parity", inputs="uniform").at_most(CHANCE)


@study.claim(
    "C6d",
    "Without structure in the inputs, the network still fits at least 99 % of its training set on parity labels.",
    source="Table 1",
    when=_without(MEMORISED),
    setting=MEMORISED,
    paper="100.0 %",
)
def unstructured_fit(m: Measurements[Params]) -> Judgement:
    return m.final("train_accuracy", arm="unstructured", setting=MEMORISED).at_least(FITTED)


@study.claims_over(
    {
        "C6e": {
            "setting": "low-dimension",
            "when": _without("low-dimension"),
            "words": "with few input dimensions",
            "table": 3,
            "paper": "51.0 %",
        },
        "C6f": {
            "setting": "high-dimension",
            "when": _without("high-dimension"),
            "words": "with many input dimensions",
            "table": 3,
            "paper": "52.5 %",
        },
        "C6g": {
            "setting": "fewer-samples",
            "when": _without("fewer-samples"),
            "words": "with half as many samples as in the main setting",
            "table": 5,
            "paper": "50.2 %",
        },
        "C6h": {
            "setting": "few-samples",
            "when": _without("few-samples"),
            "words": "with few samples and fewer neurons",
            "table": 5,
            "paper": "52.2 %",
        },
    },
    statement="Without structure in the inputs, the network stays at chance on new parity data {words}.",
    source="Table {table}",
)
def unstructured_varied(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.best("test_accuracy", arm="unstructured", setting=setting).at_most(CHANCE)


@study.claims_over(
    {
        "C6i": {
            "share": 80,
            "setting": "imbalance-80",
            "when": _without("imbalance-80"),
            "paper": "61.7 % plain accuracy",
        },
        "C6j": {
            "share": 90,
            "setting": "imbalance-90",
            "when": _without("imbalance-90"),
            "paper": "71.8 % plain accuracy",
        },
    },
    statement="Without structure in the inputs, the network stays at chance on parity data with {share} % of one class "
    "(balanced accuracy).",
    source="Table 4",
)
def unstructured_imbalanced(m: Measurements[Params], *, setting: str) -> Judgement:
    return balanced(m, arm="unstructured", setting=setting).at_most(CHANCE)


@study.claim(
    "C6l",
    "Parity without structure needs more statistical queries (½C(D,k)^⅓ of them) than the gradients of the network's "
    "training ask.",
    source="Theorem on statistical queries, at the sizes of this study; every parameter's gradient is a query",
    when=_without(MEMORISED),
    setting=MEMORISED,
)
def queries(m: Measurements[Params]) -> Judgement:
    asked = m.exact("needed_over_asked_queries", arm="unstructured", setting=MEMORISED)
    return asked.named("queries needed / asked").above(1)


@study.claim(
    "C7a",
    "On interval labels, which a count of patterns tells, the network reaches 97 % test accuracy.",
    source="Table 2",
    when=INTERVAL,
    setting="interval",
    paper="100.0 %",
)
def interval_network(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="network", setting="interval", **STRUCTURED).at_least(0.97)


@study.claim(
    "C7b",
    "On labels that say whether a count of patterns lies in an interval, the linearised network (NTK) reaches 97 % "
    "test accuracy.",
    source="Table 2",
    when=INTERVAL,
    setting="interval",
    paper="100.0 %",
    headline=True,
)
def interval_ntk(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="ntk", setting="interval", **STRUCTURED).at_least(0.97)


@study.claim(
    "C7c",
    "On interval labels a head on the network's features after two steps reaches 97 % test accuracy.",
    source="Table 2",
    when=INTERVAL,
    setting="interval",
    paper="100.0 %",
)
def interval_two_step(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="two-step", setting="interval").at_least(0.97)


@study.claim(
    "C7d",
    "On interval labels the network reaches 95 % test accuracy in fewer steps, its first two counted, than the "
    "linearised network (NTK).",
    source="Figure 7",
    when=INTERVAL,
    setting="interval",
)
def interval_faster(m: Measurements[Params]) -> Judgement:
    steps = [m.steps_to("test_accuracy", 0.95, arm=arm, setting="interval", **STRUCTURED) for arm in ("network", "ntk")]
    return (steps[0] + FIRST_STEPS - steps[1]).named("steps to 95 %, network − NTK").below(0)


@study.claim(
    "C7e",
    "On interval labels a tuned head on random features stays at least 5 points of test accuracy below the network.",
    source="Table 2",
    when=INTERVAL,
    setting="interval",
    paper="73.2 %",
)
def interval_random_features(m: Measurements[Params]) -> Judgement:
    best = m.best("test_accuracy", arm="random-features", setting="interval", **STRUCTURED)
    network = m.final("test_accuracy", arm="network", setting="interval", **STRUCTURED)
    return (network - best).named("network − best random features").at_least(0.05)


@study.claim(
    "C7f",
    "On interval labels, removing the inputs' structure costs the network at most 3 points of balanced accuracy.",
    source="Table 2; balanced, since without structure most inputs have one label",
    when=INTERVAL,
    setting="interval",
    paper="no loss of plain accuracy",
)
def interval_unstructured(m: Measurements[Params]) -> Judgement:
    where = {"arm": "network", "setting": "interval"}
    with_structure, without = (balanced(m, inputs=inputs, **where) for inputs in ("structured", "uniform"))
    return (with_structure - without).named("balanced accuracy lost").at_most(0.03)


@study.claim(
    "C7g",
    "On interval labels without structure in the inputs the network reaches 97 % test accuracy.",
    source="Table 2",
    when=INTERVAL,
    setting="interval",
    paper="100.0 %",
)
def interval_unstructured_plain(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="network", setting="interval", inputs="uniform").at_least(0.97)
