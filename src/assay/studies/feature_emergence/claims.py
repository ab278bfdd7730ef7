"""Where claims apply, and what is claimed of the network and fixed features alike: without structure they are at chance
(C6), and interval labels, which a count tells, are easier (C7)."""

from __future__ import annotations

from collections.abc import Callable

from assay.lab import Judgement, Measurements

from .params import Patterns
from .study import Params, study

Domain = dict[str, Callable[[Patterns], bool]]

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


@study.claims_over(
    {
        "C6a": {"arm": "network", "words": "the network", "paper": "52.0 %"},
        "C6b": {"arm": "ntk", "words": "the NTK"},
        "C6c": {"arm": "random-features", "words": "a random-feature head"},
    },
    statement="without structure {words} stays at chance on parity (≤ 55 %)",
    source="Theorem on statistical queries, Table 1",
    when=PARITY,
    setting="parity",
)
def unstructured(m: Measurements[Params], *, arm: str) -> Judgement:
    return m.best("test_accuracy", arm=arm, setting="parity", inputs="uniform").at_most(0.55)


@study.claim(
    "C7a", "the network solves interval labels", source="Table 2", when=INTERVAL, setting="interval", paper="100.0 %"
)
def interval_network(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="network", setting="interval", **STRUCTURED).at_least(0.97)


@study.claim(
    "C7b", "the NTK solves interval labels too", source="Table 2", when=INTERVAL, setting="interval", paper="100.0 %"
)
def interval_ntk(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="ntk", setting="interval", **STRUCTURED).at_least(0.97)


@study.claim(
    "C7c",
    "a head on step-two features solves interval labels",
    source="Table 2",
    when=INTERVAL,
    setting="interval",
    paper="100.0 %",
)
def interval_two_step(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="two-step", setting="interval").at_least(0.97)


@study.claim(
    "C7d", "the network reaches 95 % in fewer steps than the NTK", source="Figure 7", when=INTERVAL, setting="interval"
)
def interval_faster(m: Measurements[Params]) -> Judgement:
    steps = [m.steps_to("test_accuracy", 0.95, arm=arm, setting="interval", **STRUCTURED) for arm in ("network", "ntk")]
    return (steps[0] - steps[1]).named("steps to 95 %, network − NTK").below(0)


@study.claim(
    "C7e",
    "random features stay at least 5 points below the network",
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
    "removing the structure hardly matters for interval labels (balanced accuracy, since a constant scores 95 %)",
    source="Table 2",
    when=INTERVAL,
    setting="interval",
    paper="100.0 % plain accuracy",
)
def interval_unstructured(m: Measurements[Params]) -> Judgement:
    return m.final("balanced_accuracy", arm="network", setting="interval", inputs="uniform").at_least(0.9)


@study.claim(
    "C7g",
    "its plain accuracy without structure is at least 97 % (a constant has 95 %)",
    source="Table 2",
    when=INTERVAL,
    setting="interval",
    paper="100.0 %",
)
def interval_unstructured_plain(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="network", setting="interval", inputs="uniform").at_least(0.97)
