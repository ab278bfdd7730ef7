"""The claims on networks trained on all inputs: neurons and logits (C3, C4), the margin and λ (C7), and a control."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, NotMeasured, Values, combine, pool
from assay.methods.modular_margin import required_width

from ..params import about
from .arms import SETTINGS, Params, part

_THREE = about("full-k3", terms=3, modulus=7, whole=True)
_TWO = about("full-k2", terms=2, modulus=11, whole=True)
_NORM = about("full-norm", terms=2, modulus=23, regulariser="norm", whole=True)


def _last(m: Measurements[Params], metric: str, setting: str) -> Values:
    """A metric that is followed, at the last step."""
    return m.at(metric, m.params_of(setting).steps, arm="full-data", setting=setting)


def _on_all(m: Measurements[Params], metric: str, setting: str) -> Values:
    """A metric of the last network on all inputs."""
    return m.final(metric, arm="full-data", setting=setting)


@part.claim(
    "C3f",
    "In networks trained on all sums of 3 numbers mod 7, at least 99 % of the logits' power depends on the sum minus "
    "the label alone.",
    source="Lemma C.20",
    **_THREE,
)
def diagonal_logits(m: Measurements[Params]) -> Judgement:
    return _on_all(m, "logit_share", "full-k3").named("share of power on the diagonal").at_least(0.99)


@part.claims_over(
    {
        "C4v": {"words": "3 numbers mod 7", **_THREE},
        "C4w": {"words": "2 numbers mod 11", **_TWO},
        "C4x": {"words": "2 numbers mod 23 (penalty λ‖θ‖)", **_NORM},
    },
    statement="In networks trained on all sums of {words}, one frequency has at least 98 % of a neuron's power, in the "
    "mean weighted by norm^{{k+1}}.",
    source="Theorem 4.9",
)
def one_sparse(m: Measurements[Params], *, setting: str) -> Judgement:
    return _last(m, "power_weighted", setting).named("weighted share").at_least(0.98)


@part.claim(
    "C4y",
    "Networks trained on all sums of 3 numbers mod 7, or of 2 numbers mod 11 or mod 23, use all (p−1)/2 frequencies.",
    source="Theorem 4.9, third part",
)
def all_frequencies(m: Measurements[Params]) -> Judgement:
    for setting, values in SETTINGS.items():
        if any(getattr(m.params_of(setting), name) != values[name] for name in ("terms", "modulus", "whole")):
            raise NotMeasured(f"the claim is about all inputs of the pairs (p, k) that it names, {setting} among them")
    found = pool([_last(m, "frequencies", setting) for setting in SETTINGS], "share of frequencies present")
    return found.at_least(1)


@part.claim(
    "C7a",
    "Networks trained on all sums of 3 numbers mod 7 (λ = 0.0001) reach a smallest margin of at least 95 % of the "
    "largest possible (γ*).",
    source="Lemma 4.7",
    **about("full-k3", terms=3, modulus=7, penalty=1e-4, regulariser="sum", whole=True),
)
def margin_of_three(m: Measurements[Params]) -> Judgement:
    return _on_all(m, "full_margin_ratio", "full-k3").named("smallest margin/γ*").at_least(0.95)


@part.claim(
    "C7b",
    "Networks trained on all sums of 2 numbers mod 11 reach a smallest margin of at least 80 % of the largest possible "
    "(γ*).",
    source="Lemma 4.7; frequencies get unequal weights at this width",
    **_TWO,
)
def margin_of_two(m: Measurements[Params]) -> Judgement:
    return _on_all(m, "full_margin_ratio", "full-k2").named("smallest margin/γ*").at_least(0.8)


@part.claim(
    "C7c",
    "Networks trained on all sums of 2 numbers mod 23 with the penalty λ‖θ‖ reach at least 80 % of the largest "
    "possible margin (γ*).",
    source="Lemma 4.7",
    **_NORM,
)
def margin_with_norm(m: Measurements[Params]) -> Judgement:
    return _on_all(m, "full_margin_ratio", "full-norm").named("smallest margin/γ*").at_least(0.8)


def _enough_neurons(params: Params) -> bool:
    return params.neurons >= required_width(params.modulus, params.terms)


_SUM = about("full-k3", terms=3, regulariser="sum", whole=True)
_ENOUGH = {"setting": "full-k3", "when": _SUM["when"] | {"at least 2^{2k−2}(p−1) neurons": _enough_neurons}}


def _strength(m: Measurements[Params], metric: str, strength: float) -> Values:
    return m.final(metric, arm="regularisation", strength=strength)


def _strengths(m: Measurements[Params], metric: str, *, below: bool) -> list[float]:
    """The λ at which a metric was measured, below the threshold γ*(p−1)/p or from it on."""
    limit = m.params_of("full-k3").threshold
    run = sorted(set(m.rows(metric, arm="regularisation")["strength"]))
    chosen = [strength for strength in run if (strength < limit) == below]
    if not chosen:
        raise NotMeasured(f"the claim is about a λ {'below' if below else 'from'} γ*(p−1)/p = {limit:.3g}")
    return chosen


@part.claim(
    "C7d",
    "At every λ tried below γ*(p−1)/p, not only as λ → 0, networks trained on all sums of 3 numbers mod p reach at "
    "least 95 % of the largest margin (γ*).",
    source="Lemma 4.7, sharpened: a closed form of the minimiser on D_p",
    printed="γ_λ → γ* as λ → 0",
    headline=True,
    **_ENOUGH,
)
def every_strength(m: Measurements[Params]) -> Judgement:
    metric = "full_margin_ratio"
    margins = [_strength(m, metric, strength) for strength in _strengths(m, metric, below=True)]
    return combine(min, margins, "smallest margin/γ*, worst λ").at_least(0.95)


@part.claim(
    "C7e",
    "At every λ tried below γ*(p−1)/p, training on all sums of 3 numbers mod p ends within 1 % of the objective's "
    "global minimum, a closed form.",
    source="Derived from Lemma 4.7 and Theorem 4.9",
    **_ENOUGH,
)
def global_minimum(m: Measurements[Params]) -> Judgement:
    ratios = [_strength(m, "objective", s) / _strength(m, "optimum", s) for s in _strengths(m, "objective", below=True)]
    return combine(max, ratios, "objective/global minimum, worst λ").between(1, 1.01)


@part.claim(
    "C7f",
    "At a λ from γ*(p−1)/p on, where the zero network is best, training on all sums of 3 numbers mod p ends at a norm "
    "of at most 0.05.",
    source="Derived, the other side of C7d",
    **_SUM,
)
def vanishes(m: Measurements[Params]) -> Judgement:
    largest = max(_strengths(m, "norm", below=False))
    return _strength(m, "norm", largest).named("‖θ‖ at the largest λ").at_most(0.05)


@part.claim(
    "N5",
    "Networks trained on shuffled sums of 2 numbers mod 11 have no mean margin on the true ones: it is within 10 % of "
    "its bound from zero.",
    source="Control: labels",
    **_TWO,
)
def no_alignment(m: Measurements[Params]) -> Judgement:
    found = m.final("full_alignment_ratio", arm="shuffled", setting="full-k2").named("J/bound")
    return found.equals(0, within=0.1, because="a tenth of a network's with the maximum margin")
