"""The claims on networks trained on half of the inputs (C4; phases and live neurons: C2), and a control."""

from __future__ import annotations

from typing import Any

from assay.lab import Judgement, Measurements, Values

from ..params import about
from .arms import Params, part


def _final(m: Measurements[Params], metric: str, setting: str, arm: str = "network") -> Values:
    return m.at(metric, m.params_of(setting).steps, arm=arm, setting=setting)


def _start(m: Measurements[Params], metric: str, setting: str) -> Values:
    return m.at(metric, 0, arm="network", setting=setting)


def _network(k: int, figures: str) -> dict[str, Any]:
    """The words and the domain of a claim about the network of one k."""

    def chosen(params: Params) -> bool:
        return f"k{k}" in params.networks

    domain = about(f"k{k}", half=True, terms=k)
    domain["when"] = {f"k = {k} among the networks": chosen} | domain["when"]
    return {"k": k, "figures": figures} | domain


K3, K4, K5 = _network(3, "C.1, C.2"), _network(4, "4.1, 4.2"), _network(5, "C.3, C.4")
ON_HALF = about("k3", half=True, terms=3)


def _headline(network: dict[str, Any]) -> dict[str, Any]:
    return network | {"headline": True}


@part.claims_over(
    {"C4a": K3, "C4h": K4, "C4o": K5},
    statement="Networks trained on half of all sums of {k} numbers mod p generalise: their test accuracy is at least "
    "0.99.",
    source="Figures {figures}",
)
def generalises(m: Measurements[Params], *, setting: str) -> Judgement:
    return _final(m, "test_accuracy", setting).named("test accuracy").at_least(0.99)


@part.claims_over(
    {"C4b": _headline(K3), "C4i": K4, "C4p": K5},
    statement="In networks trained on half of all sums of {k} numbers mod p, one frequency has at least 95 % of the "
    "median live neuron's power.",
    source="Figures {figures}; live: norms above 10 % of the largest",
)
def one_sparse(m: Measurements[Params], *, setting: str) -> Judgement:
    return _final(m, "power_median", setting).named("median share").at_least(0.95)


@part.claims_over(
    {"C4c": K3, "C4j": K4, "C4q": K5},
    statement="In networks trained on half of all sums of {k} numbers mod p, one frequency has at least 98 % of a "
    "neuron's power, in the mean weighted by norm^{{k+1}}.",
    source="Figures {figures}; norm^{{k+1}} is a neuron's part in function and penalty",
)
def one_sparse_by_weight(m: Measurements[Params], *, setting: str) -> Judgement:
    return _final(m, "power_weighted", setting).named("weighted mean share").at_least(0.98)


@part.claims_over(
    {"C4d": K3, "C4k": K4, "C4r": K5},
    statement="Before training on sums of {k} numbers mod p, a mean neuron's strongest frequency has less than half "
    "the share of the median live one's after it.",
    source="Figures {figures}; half of the inputs",
)
def less_before(m: Measurements[Params], *, setting: str) -> Judgement:
    ratio = _start(m, "power_mean", setting) / _final(m, "power_median", setting)
    return ratio.named("share before/after").below(0.5)


@part.claims_over(
    {"C4e": K3, "C4l": K4, "C4s": K5},
    statement="After training on half of all sums of {k} numbers mod p, 95 % of all neurons are closer to one "
    "frequency than 95 % were before.",
    source="Figures {figures}; 5 % quantile after against 95 % quantile before, dead neurons included",
)
def no_overlap(m: Measurements[Params], *, setting: str) -> Judgement:
    gap = _final(m, "power_low", setting) - _start(m, "power_high", setting)
    return gap.named("quantile after − before").above(0)


@part.claims_over(
    {"C2f": K3, "C2g": K4, "C2h": K5},
    statement="After training on half of all sums of {k} numbers mod p, 95 % of the live neurons are closer to one "
    "frequency than 95 % of all were before.",
    source="Figures {figures}; 5 % quantile after against 95 % quantile before; live: norms above 10 % of the largest",
)
def no_overlap_of_live(m: Measurements[Params], *, setting: str) -> Judgement:
    gap = _final(m, "power_low_live", setting) - _start(m, "power_high", setting)
    return gap.named("quantile after − before").above(0)


@part.claims_over(
    {"C4f": K3, "C4m": K4, "C4t": K5},
    statement="Every network trained on half of all sums of {k} numbers mod p uses all (p−1)/2 frequencies.",
    source="Figures {figures}",
)
def all_frequencies(m: Measurements[Params], *, setting: str) -> Judgement:
    found = m.every("frequencies", step=m.params_of(setting).steps, arm="network", setting=setting)
    return found.named("share of frequencies present").at_least(1)


@part.claims_over(
    {"C4g": _headline(K3), "C4n": K4, "C4u": K5},
    statement="Networks trained on half of all sums of {k} numbers mod p use all frequencies evenly: none has more "
    "than 3 times the weight of another.",
    source="Figures {figures}; weight: sum of norm^{{k+1}} over the neurons of a frequency",
)
def evenly(m: Measurements[Params], *, setting: str) -> Judgement:
    return _final(m, "frequency_ratio", setting).named("largest/smallest weight").at_most(3)


@part.claim(
    "C4z",
    "In networks trained on half of all sums of 3 numbers mod p, the mean margin on training inputs is at least 80 % "
    "of γ*, the largest possible on all inputs.",
    source="Lemma 4.7, Figure C.1",
    **ON_HALF,
)
def mean_margin(m: Measurements[Params]) -> Judgement:
    return _final(m, "mean_margin_ratio", "k3").named("mean margin/γ*").at_least(0.8)


@part.claim(
    "C2d",
    "In networks trained on half of all sums of 3 numbers mod p, the median neuron's input phases (weighted by "
    "norm^{k+1}) add up to its output phase within 0.2 radians.",
    source="Figure C.1",
    **ON_HALF,
)
def phases_add_up(m: Measurements[Params]) -> Judgement:
    return _final(m, "phase_residual", "k3").named("weighted median of |Σθ_l − θ_w|").below(0.2)


@part.claim(
    "C2e",
    "In networks trained on half of all sums of 3 numbers mod p, neurons with at least 98 % of the weight have one "
    "frequency in all k+1 vectors.",
    source="Figure C.1; weight: norm^{k+1}",
    **ON_HALF,
)
def one_frequency(m: Measurements[Params]) -> Judgement:
    return _final(m, "shared_frequency", "k3").named("weighted share of such neurons").at_least(0.98)


@part.claim(
    "N1",
    "Networks trained on half of all sums of 3 numbers mod p with weight decay, not the penalty, keep mixed neurons: "
    "less than 70 % in one frequency.",
    source="Control: the regulariser; median of live neurons",
    **about("k3-decay", half=True, terms=3, regulariser="decay"),
)
def not_by_decay(m: Measurements[Params]) -> Judgement:
    return _final(m, "power_median", "k3-decay", "weight-decay").named("median share").below(0.7)
