"""Claims about the network and about heads on its early features: they solve structured parity (C3, C4)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from ..claims import CHANCE, PARITY, STRUCTURED, THEORY, balanced
from .arms import Params, part


@part.claim(
    "C3e",
    "A head on the network's features after two steps reaches 99 % test accuracy on structured parity data.",
    source="Table 1",
    when=PARITY,
    setting="parity",
    paper="100.0 %",
)
def two_step_head(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="two-step", setting="parity").at_least(0.99)


@part.claim(
    "C3f",
    "A head on the network's raw features after one step is at chance on structured parity data.",
    source="Table 1",
    when=PARITY,
    setting="parity",
    paper="52.2 %",
)
def one_step_head(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="one-step", setting="parity", head="raw").at_most(CHANCE)


@part.claim(
    "C3g",
    "One gradient step already finds the features for parity of structured inputs: with the norms of the second step, "
    "they give 99 % test accuracy.",
    source="Table 1 read through its scales: ‖w⁽¹⁾‖ is of order η⁽¹⁾, the biases are not",
    printed="one step does not give good features (52.2 % against 100 %)",
    when=THEORY,
    setting="parity",
    headline=True,
)
def one_step_rescaled(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="one-step", setting="parity", head="rescaled").at_least(0.99)


@part.claims_over(
    {"C3j": {"share": 80, "setting": "imbalance-80"}, "C3k": {"share": 90, "setting": "imbalance-90"}},
    statement="With {share} % of one class, a head on the features after two steps reaches 99 % balanced accuracy on "
    "parity.",
    source="Table 4",
    when=PARITY,
    paper="100.0 %",
)
def two_step_imbalanced(m: Measurements[Params], *, setting: str) -> Judgement:
    return balanced(m, arm="two-step", setting=setting, head="raw").at_least(0.99)


@part.claims_over(
    {"C3l": {"share": 80, "setting": "imbalance-80"}, "C3m": {"share": 90, "setting": "imbalance-90"}},
    statement="With {share} % of one class, a head on the raw features after one step is at chance on parity (balanced "
    "accuracy).",
    source="Table 4: its accuracies are those of a constant answer",
    when=PARITY,
)
def one_step_imbalanced(m: Measurements[Params], *, setting: str) -> Judgement:
    return balanced(m, arm="one-step", setting=setting, head="raw").at_most(CHANCE)


@part.claim(
    "C4a",
    "A two-layer network learns parity of structured inputs to 99 % accuracy.",
    source="Theorem 2.1, Table 1",
    when=PARITY,
    setting="parity",
    paper="100.0 %",
    headline=True,
)
def network_succeeds(m: Measurements[Params]) -> Judgement:
    return m.final("test_accuracy", arm="network", setting="parity", **STRUCTURED).at_least(0.99)


@part.claims_over(
    {
        "C4b": {
            "setting": "low-dimension",
            "words": "few input dimensions",
            "table": "Table 3",
        },
        "C4c": {
            "setting": "high-dimension",
            "words": "many input dimensions",
            "table": "Table 3",
        },
        "C4d": {
            "setting": "fewer-samples",
            "words": "half as many samples as in the main setting",
            "table": "Table 5",
        },
        "C4e": {
            "setting": "few-samples",
            "words": "few samples and fewer neurons",
            "table": "Table 5",
        },
    },
    statement="With {words}, the network reaches 99 % test accuracy on parity of structured inputs.",
    source="{table}",
    when=PARITY,
    paper="100.0 %",
)
def network_succeeds_varied(m: Measurements[Params], *, setting: str) -> Judgement:
    return m.final("test_accuracy", arm="network", setting=setting, **STRUCTURED).at_least(0.99)


@part.claims_over(
    {"C4f": {"share": 80, "setting": "imbalance-80"}, "C4g": {"share": 90, "setting": "imbalance-90"}},
    statement="With {share} % of one class, the network reaches 99 % balanced accuracy on parity of structured inputs.",
    source="Table 4",
    when=PARITY,
    paper="100.0 %",
)
def network_imbalanced(m: Measurements[Params], *, setting: str) -> Judgement:
    return balanced(m, arm="network", setting=setting, **STRUCTURED).at_least(0.99)


@part.claim(
    "N2",
    "Trained on shuffled labels of structured parity data, the network stays at chance on true labels.",
    source="control",
    when=PARITY,
    setting="parity",
)
def shuffled_accuracy(m: Measurements[Params]) -> Judgement:
    return m.best("test_accuracy", arm="network", setting="parity", inputs="shuffled").at_most(CHANCE)
