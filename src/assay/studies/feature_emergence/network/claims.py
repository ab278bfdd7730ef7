"""Claims about the network and about heads on its early features: they solve structured parity (C3, C4)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from ..claims import PARITY, STRUCTURED, THEORY
from .arms import Params, part


@part.claim(
    "C3e", "a head on step-two features is accurate", source="Table 1", when=PARITY, setting="parity", paper="100.0 %"
)
def two_step_head(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="two-step", setting="parity").at_least(0.99)


@part.claim(
    "C3f",
    "a head on the raw step-one features is at chance",
    source="Table 1",
    when=PARITY,
    setting="parity",
    paper="52.2 %",
)
def one_step_head(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="one-step", setting="parity", head="raw").at_most(0.55)


@part.claim(
    "C3g",
    "step one already has the directions: with the norms of step two its features are as good",
    source="Table 1 read through its scales: ‖w⁽¹⁾‖ is of order η⁽¹⁾, the biases are not",
    printed="one step does not give good features (52.2 % against 100 %)",
    when=THEORY,
    setting="parity",
)
def one_step_rescaled(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="one-step", setting="parity", head="rescaled").at_least(0.99)


@part.claims_over(
    {"C3j": {"share": 80, "setting": "imbalance-80"}, "C3k": {"share": 90, "setting": "imbalance-90"}},
    statement="with {share} % of one class a head on step-two features is accurate (balanced)",
    source="Table 4",
    when=PARITY,
    paper="100.0 %",
)
def two_step_imbalanced(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("balanced_accuracy", arm="two-step", setting=setting).at_least(0.99)


@part.claims_over(
    {"C3l": {"share": 80, "setting": "imbalance-80"}, "C3m": {"share": 90, "setting": "imbalance-90"}},
    statement="with {share} % of one class raw step-one features are at chance (balanced)",
    source="Table 4: its accuracies are those of a constant answer",
    when=PARITY,
)
def one_step_imbalanced(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("balanced_accuracy", arm="one-step", setting=setting, head="raw").at_most(0.55)


@part.claim(
    "C4a",
    "the network solves structured parity",
    source="Theorem 2.1, Table 1",
    when=PARITY,
    setting="parity",
    paper="100.0 %",
)
def network_succeeds(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="network", setting="parity", **STRUCTURED).at_least(0.99)


@part.claims_over(
    {
        "C4b": {
            "setting": "low-dimension",
            "words": "in the low-dimensional setting (d = 100 in the source)",
            "table": "Table 3",
        },
        "C4c": {
            "setting": "high-dimension",
            "words": "in the high-dimensional setting (d = 2,000)",
            "table": "Table 3",
        },
        "C4d": {
            "setting": "fewer-samples",
            "words": "with fewer samples (half in the source)",
            "table": "Table 5",
        },
        "C4e": {
            "setting": "few-samples",
            "words": "with few samples (a fifth)",
            "table": "Table 5",
        },
    },
    statement="the network solves structured parity {words}",
    source="{table}",
    when=PARITY,
    paper="100.0 %",
)
def network_succeeds_varied(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("test_accuracy", arm="network", setting=setting, **STRUCTURED).at_least(0.99)


@part.claims_over(
    {"C4f": {"share": 80, "setting": "imbalance-80"}, "C4g": {"share": 90, "setting": "imbalance-90"}},
    statement="the network solves structured parity with {share} % of one class (balanced accuracy)",
    source="Table 4",
    when=PARITY,
    paper="100.0 %",
)
def network_imbalanced(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("balanced_accuracy", arm="network", setting=setting, **STRUCTURED).at_least(0.99)


@part.claim("N2", "with shuffled labels the trained network does not reach the network's accuracy", source="control")
def shuffled_accuracy(m: Measurements[Params]) -> Judgement:
    return m.best("test_accuracy", arm="network", setting="parity", inputs="shuffled").at_most(0.7)
