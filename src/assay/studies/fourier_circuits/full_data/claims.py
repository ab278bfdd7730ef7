"""The claims on networks trained on all inputs: neurons and logits (C3, C4), the margin and λ (C7), and a control."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values, combine
from assay.methods.modular_margin import required_width

from ..params import about
from .arms import SETTINGS, Params, part

_THREE = about("full-k3", terms=3, modulus=7)
_TWO = about("full-k2", terms=2, modulus=11)
_NORM = about("full-norm", terms=2, modulus=23, regulariser="norm")
_SUM = about("full-k3", regulariser="sum")


def _last(m: Measurements[Params], metric: str, setting: str) -> Values:
    """A metric that is followed, at the last step."""
    return m.at(metric, m.params_of(setting).steps, arm="full-data", setting=setting)


def _on_all(m: Measurements[Params], metric: str, setting: str) -> Values:
    """A metric of the last network on all inputs."""
    return m.final(metric, arm="full-data", setting=setting)


@part.claim(
    "C3f",
    "logits of a network trained on all data (k = 3, p = 7) depend on Σa − c alone, in 0.99 of their power",
    source="Lemma C.20",
    **_THREE,
)
def diagonal_logits(m: Measurements[Params]) -> Judgement:
    return _on_all(m, "logit_share", "full-k3").named("share of power on the diagonal").at_least(0.99)


@part.claims_over(
    {
        "C4v": {"words": "k = 3, p = 7", "limit": " (weighted share at least 0.98)", **_THREE},
        "C4w": {"words": "k = 2, p = 11", "limit": "", **_TWO},
        "C4x": {"words": "k = 2, p = 23, penalty λ‖θ‖", "limit": "", **_NORM},
    },
    statement="all data, {words}: one-sparse neurons{limit}",
    source="Theorem 4.9",
)
def one_sparse(m: Measurements[Params], *, setting: str) -> Judgement:
    return _last(m, "power_weighted", setting).named("weighted share").at_least(0.98)


@part.claim("C4y", "all data, every setting: all frequencies", source="Theorem 4.9, third part")
def all_frequencies(m: Measurements[Params]) -> Judgement:
    found = m.every("frequencies", arm="full-data", step=[m.params_of(setting).steps for setting in SETTINGS])
    return found.named("share of frequencies present").at_least(1)


@part.claim(
    "C7a",
    "trained on all data, k = 3, p = 7, λ = 1e-4: smallest margin at least 0.95γ*",
    source="Lemma 4.7",
    **about("full-k3", terms=3, modulus=7, penalty=1e-4, regulariser="sum"),
)
def margin_of_three(m: Measurements[Params]) -> Judgement:
    return _on_all(m, "full_margin_ratio", "full-k3").named("smallest margin/γ*").at_least(0.95)


@part.claim(
    "C7b",
    "k = 2, p = 11: smallest margin at least 0.8γ*",
    source="Lemma 4.7; frequencies get unequal weights at this width",
    **_TWO,
)
def margin_of_two(m: Measurements[Params]) -> Judgement:
    return _on_all(m, "full_margin_ratio", "full-k2").named("smallest margin/γ*").at_least(0.8)


@part.claim(
    "C7c",
    "k = 2, p = 23, penalty λ‖θ‖: smallest margin at least 0.8γ*",
    source="Lemma 4.7",
    **_NORM,
)
def margin_with_norm(m: Measurements[Params]) -> Judgement:
    return _on_all(m, "full_margin_ratio", "full-norm").named("smallest margin/γ*").at_least(0.8)


def _some_below(params: Params) -> bool:
    return min(params.strengths) < params.threshold


def _some_above(params: Params) -> bool:
    return max(params.strengths) >= params.threshold


def _enough_neurons(params: Params) -> bool:
    return params.width is None or params.width >= required_width(params.modulus, params.terms)


_BELOW = {"a λ below γ*(p−1)/p": _some_below, "at least 2^{2k−2}(p−1) neurons": _enough_neurons}


def _strength(m: Measurements[Params], metric: str, strength: float) -> Values:
    return m.final(metric, arm="regularisation", strength=strength)


def _below_threshold(m: Measurements[Params]) -> list[float]:
    return [strength for strength in m.params.strengths if strength < m.params_of("full-k3").threshold]


@part.claim(
    "C7d",
    "no limit is needed: the normalised margin is near γ* at every λ below γ*(p−1)/p, at least 0.95 of it",
    source="Lemma 4.7, sharpened: a closed form of the minimiser on D_p",
    printed="γ_λ → γ* as λ → 0",
    setting="full-k3",
    when=_SUM["when"] | _BELOW,
)
def every_strength(m: Measurements[Params]) -> Judgement:
    margins = [_strength(m, "full_margin_ratio", strength) for strength in _below_threshold(m)]
    return combine(min, margins, "smallest margin/γ*, worst λ").at_least(0.95)


@part.claim(
    "C7e",
    "training reaches the global minimum of the regularised objective, known in closed form, within 1 %",
    source="Derived from Lemma 4.7 and Theorem 4.9",
    setting="full-k3",
    when=_SUM["when"] | _BELOW,
)
def global_minimum(m: Measurements[Params]) -> Judgement:
    ratios = [_strength(m, "objective", s) / _strength(m, "optimum", s) for s in _below_threshold(m)]
    return combine(max, ratios, "objective/global minimum, worst λ").between(1, 1.01)


@part.claim(
    "C7f",
    "from λ = γ*(p−1)/p on the zero network is best: at the largest λ the norm vanishes",
    source="Derived, the other side of C7d",
    setting="full-k3",
    when=_SUM["when"] | {"a λ above the threshold": _some_above},
)
def vanishes(m: Measurements[Params]) -> Judgement:
    return _strength(m, "norm", max(m.params.strengths)).named("‖θ‖ at the largest λ").at_most(0.05)


@part.claim("N5", "with shuffled labels there is no alignment with modular addition", source="Control: labels")
def no_alignment(m: Measurements[Params]) -> Judgement:
    return m.final("full_alignment_ratio", arm="shuffled").named("J/bound").between(-0.1, 0.1)
