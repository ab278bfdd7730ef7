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


@part.claims_over(
    {"C4a": K3, "C4h": K4, "C4o": K5},
    statement="k = {k}: the network trained on half of the inputs generalises: test accuracy at least 0.99",
    source="Figures {figures}",
)
def generalises(m: Measurements[Params], *, setting: str) -> Judgement:
    return _final(m, "test_accuracy", setting).named("test accuracy").at_least(0.99)


@part.claims_over(
    {"C4b": K3, "C4i": K4, "C4p": K5},
    statement="k = {k}: neurons are one-sparse: the median share of one frequency is at least 0.95 "
    "(norms above 10 % of the largest)",
    source="Figures {figures}",
)
def one_sparse(m: Measurements[Params], *, setting: str) -> Judgement:
    return _final(m, "power_median", setting).named("median share").at_least(0.95)


@part.claims_over(
    {"C4c": K3, "C4j": K4, "C4q": K5},
    statement="k = {k}: the mean share, weighted by what a neuron contributes (norm^{{k+1}}), is at least 0.98",
    source="Figures {figures}",
)
def one_sparse_by_weight(m: Measurements[Params], *, setting: str) -> Judgement:
    return _final(m, "power_weighted", setting).named("weighted mean share").at_least(0.98)


@part.claims_over(
    {"C4d": K3, "C4k": K4, "C4r": K5},
    statement="k = {k}: the mean share at the start is below half of the median after training",
    source="Figures {figures}",
)
def less_before(m: Measurements[Params], *, setting: str) -> Judgement:
    ratio = _start(m, "power_mean", setting) / _final(m, "power_median", setting)
    return ratio.named("share before/after").below(0.5)


@part.claims_over(
    {"C4e": K3, "C4l": K4, "C4s": K5},
    statement="k = {k}: all neurons, dead ones included: the 5 % quantile of the share after training exceeds the 95 % "
    "quantile before",
    source="Figures {figures}",
)
def no_overlap(m: Measurements[Params], *, setting: str) -> Judgement:
    gap = _final(m, "power_low", setting) - _start(m, "power_high", setting)
    return gap.named("quantile after − before").above(0)


@part.claims_over(
    {"C2f": K3, "C2g": K4, "C2h": K5},
    statement="k = {k}: live neurons alone (norms above 10 % of the largest): the 5 % quantile of the share after "
    "training exceeds the 95 % quantile before",
    source="Figures {figures}",
)
def no_overlap_of_live(m: Measurements[Params], *, setting: str) -> Judgement:
    gap = _final(m, "power_low_live", setting) - _start(m, "power_high", setting)
    return gap.named("quantile after − before").above(0)


@part.claims_over(
    {"C4f": K3, "C4m": K4, "C4t": K5},
    statement="k = {k}: all (p−1)/2 frequencies occur",
    source="Figures {figures}",
)
def all_frequencies(m: Measurements[Params], *, setting: str) -> Judgement:
    return _final(m, "frequencies", setting).named("share of frequencies present").at_least(1)


@part.claims_over(
    {"C4g": K3, "C4n": K4, "C4u": K5},
    statement="k = {k}: they occur almost evenly: largest over smallest weight at most 3",
    source="Figures {figures}",
)
def evenly(m: Measurements[Params], *, setting: str) -> Judgement:
    return _final(m, "frequency_ratio", setting).named("largest/smallest weight").at_most(3)


@part.claim(
    "C4z",
    "half of the data, k = 3: the mean training margin is at least 0.8γ*",
    source="Lemma 4.7, Figure C.1",
    **ON_HALF,
)
def mean_margin(m: Measurements[Params]) -> Judgement:
    return _final(m, "mean_margin_ratio", "k3").named("mean margin/γ*").at_least(0.8)


@part.claim(
    "C2d",
    "trained networks (k = 3, half of the data) have phases that add up, |Σθ_l − θ_w| below 0.2",
    source="Figure C.1",
    **ON_HALF,
)
def phases_add_up(m: Measurements[Params]) -> Judgement:
    return _final(m, "phase_residual", "k3").named("weighted median of |Σθ_l − θ_w|").below(0.2)


@part.claim("C2e", "and one frequency for all k+1 vectors of a neuron", source="Figure C.1", **ON_HALF)
def one_frequency(m: Measurements[Params]) -> Judgement:
    return _final(m, "shared_frequency", "k3").named("weighted share of such neurons").at_least(0.98)


@part.claim(
    "N1",
    "weight decay in place of the penalty leaves neurons that are not one-sparse",
    source="Control: the regulariser",
    **about("k3-decay", regulariser="decay"),
)
def not_by_decay(m: Measurements[Params]) -> Judgement:
    return _final(m, "power_median", "k3-decay", "weight-decay").named("median share").below(0.7)
