"""The claims on the theory and on trained networks (C1 to C4, C7), their corrections, and the controls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from assay.lab import Judgement, Measurements, Values, combine

from . import theory, transformer_claims  # noqa: F401 (the claims on transformers register themselves)
from .domains import about
from .study import study

EXACT = 1e-10
_THEOREM = "Theorem 4.9"
TRAINED_ARMS = ("full-data", "regularisation", "shuffled", "network", "weight-decay")


def _exact(arm: str, metric: str, what: str, at: float = 1.0, tolerance: float = EXACT, **where: object):
    return lambda m: m.every(metric, arm=arm, **where).named(what).between(at, at, tolerance=tolerance)


def _tiny(arm: str, metric: str, what: str, tolerance: float = EXACT, **where: object):
    return lambda m: m.every(metric, arm=arm, **where).named(what).at_most(0, tolerance=tolerance)


def _odd(m: Measurements, metric: str):
    """The single-neuron rows of odd p; those of p = 2 belong to a control."""
    return m.every(metric, arm="single-neuron", p=sorted({int(case.split("-")[0]) for case in m.params.ascents}))


_THEORY: dict[str, tuple[str, str, Callable[[Measurements], Judgement], str | None]] = {
    "C1a": ("the constructed network's smallest margin over all p^k inputs is γ* at every (p, k)",
            f"{_THEOREM}, Lemma 4.11; brute force",
            _exact("construction", "margin_ratio", "smallest margin/γ*", construction="polarisation"), None),
    "C1b": ("so is the mean margin, and all wrong labels tie: f = γ*(1[c = Σa] − 1/p)",
            f"{_THEOREM}, Condition 4.8",
            _tiny("construction", "logit_deviation", "|f/γ* − (1[c = Σa] − 1/p)|", construction="polarisation"),
            None),
    "C1c": ("an optimiser of a single neuron ends at γ* from every random start",
            "Lemma 4.10; block-coordinate ascent",
            lambda m: _odd(m, "ratio_low").named("J/γ* of the worst start").between(1, 1, tolerance=EXACT), None),
    "C1d": ("the expected margin is k!/((p−1)p^k) Σ ŵ(−j)Π û_l(j), for vectors of any mean",
            "Lemma C.14; against enumeration",
            _tiny("identities", "transform_deviation", "|formula − enumeration|/bound", 1e-12),
            "'by definition of w', as if ŵ(0) = 0 were needed"),
    "C1e": ("for any network J ≤ γ*‖θ‖^{k+1}", "Lemma C.5; random networks",
            lambda m: m.every("expected_share", arm="identities").named("J/(γ*‖θ‖^{k+1})").at_most(1), None),
    "C1f": ("and its smallest margin is at most J, the mean under q*, uniform on all inputs: θ* maximises that mean",
            "Definition 4.5; random networks",
            lambda m: m.every("margin_share", arm="identities").named("(h − J)/bound").at_most(0),
            "θ* ∈ argmin (twice); q* = unif(Z_p)"),
    "C1g": ("Σ_ζ cos_ζ(Σa − c) is −1/2 for every wrong c, so that the unscaled margin is p/2", "Lemmas C.17, C.18",
            lambda m: m.every("sum_elsewhere_high", arm="identities").named("sum at wrong labels")
            .between(-0.5, -0.5, tolerance=1e-12),
            "0 for every wrong c, margin (p−1)/2; and p/(p−1) = 1 − 1/(p−1)"),
    "C1h": ("2^k k! Πd is a signed sum of k-th powers, k = 2 to 7", "Lemma C.16",
            _tiny("identities", "polarisation_deviation", "relative deviation", 1e-9), None),
    "C1i": ("cos(Σa − c) has 2^k products of cos and sin, sin_ζ being phase −π/2", "Lemma 4.11",
            _tiny("identities", "expansion_deviation", "deviation", 1e-12),
            "cos(Σa) with 2^k terms, of which half vanish; sin_ζ as phase +π/2"),
    "C1j": ("and from no start above γ*: no single neuron does better",
            "Lemma 4.10; block-coordinate ascent",
            lambda m: _odd(m, "ratio_high").named("J/γ* of the best start").at_most(1, tolerance=EXACT), None),
    "C1k": ("nor does any trained network, at any step, where J comes close to its bound",
            "Lemma C.5; trained networks, all arms",
            lambda m: m.every("alignment_ratio", arm=TRAINED_ARMS).named("J/(γ*‖θ‖^{k+1})")
            .at_most(1, tolerance=EXACT), None),
    "C2a": ("the best neuron is a pure cosine in each of its k+1 vectors", f"{_THEOREM}, Lemma 4.10",
            lambda m: _odd(m, "power").named("share of one frequency").at_least(1, tolerance=EXACT), None),
    "C2b": ("all k+1 vectors have the same length", f"{_THEOREM}, Lemma 4.10",
            lambda m: _odd(m, "amplitude_spread").named("spread of lengths").at_most(0, tolerance=1e-7), None),
    "C2c": ("and the phases add up: Σθ_l = θ_w mod 2π", f"{_THEOREM}, Lemma 4.10",
            lambda m: _odd(m, "phase_residual").named("|Σθ_l − θ_w|").at_most(0, tolerance=1e-7), None),
    "C3a": ("the maximum-margin function uses every frequency equally: f̂(j, ..., j, −j) = γ*p^k for all j ≠ 0",
            "Lemma C.20",
            _tiny("construction", "diagonal_deviation", "|f̂/(γ*p^k) − 1|", construction="polarisation"), None),
    "C3b": ("2^{2k−1} neurons per frequency are enough (32 at k = 3)", f"{_THEOREM}, Lemma C.17",
            lambda m: _counts(m), "56 neurons per frequency at k = 3"),
    "C3c": ("they are not needed: 3^k per frequency, phases in thirds of a turn, attain γ* as well",
            "Beyond the source, which calls its bound possibly loose",
            _exact("construction", "margin_ratio", "smallest margin/γ*", construction="thirds"), None),
    "C3d": ("without one frequency the margin is smaller", f"{_THEOREM}, third part",
            lambda m: m.every("dropped_margin", arm="construction").named("margin ratio without ζ = 1")
            .at_most(0.999), None),
    "C3e": ("though every neuron is still optimal: the expected margin sees nothing missing", "Lemma 4.10",
            _exact("construction", "dropped_alignment", "J/bound without ζ = 1"), None),
}  # fmt: skip


def _counts(m: Measurements) -> Judgement:
    """Neurons of the networks that reached γ*, over the source's number."""

    def largest(rows: pl.DataFrame) -> float:
        claimed = [2 ** (2 * k - 2) * (p - 1) for p, k in rows.select("p", "k").iter_rows()]
        reached = rows["value"].to_numpy() >= 1 - EXACT
        return float(np.where(reached, rows["neurons"].to_numpy() / np.array(claimed), np.inf).max())

    rows = m.rows("margin_ratio", arm="construction", construction="polarisation")
    return m.per_seed(rows, largest, "neurons/(2^{2k−2}(p−1)) where γ* is reached, worst pair").at_most(1)


for _id, (_statement, _source, _judge, _printed) in _THEORY.items():
    study.claim(_id, _statement, source=_source, printed=_printed)(_judge)


def _final(m: Measurements, metric: str, setting: str, arm: str = "network") -> Values:
    return m.at(metric, m.params_of(setting).steps, arm=arm, setting=setting)


def _start(m: Measurements, metric: str, setting: str) -> Values:
    return m.at(metric, 0, arm="network", setting=setting)


_TRAINED: list[tuple[str, Callable[[Measurements, str], Judgement]]] = [
    ("the network trained on half of the inputs generalises: test accuracy at least 0.99",
     lambda m, s: _final(m, "test_accuracy", s).named("test accuracy").at_least(0.99)),
    ("neurons are one-sparse: the median share of one frequency is at least 0.95 (norms above 10 % of the largest)",
     lambda m, s: _final(m, "power_median", s).named("median share").at_least(0.95)),
    ("the mean share, weighted by what a neuron contributes (norm^{k+1}), is at least 0.98",
     lambda m, s: _final(m, "power_weighted", s).named("weighted mean share").at_least(0.98)),
    ("the mean share at the start is below half of the median after training",
     lambda m, s: (_start(m, "power_mean", s) / _final(m, "power_median", s)).named("share before/after").below(0.5)),
    ("all neurons, dead ones included: the 5 % quantile of the share after training exceeds the 95 % quantile before",
     lambda m, s: (_final(m, "power_low", s) - _start(m, "power_high", s)).named("quantile after − before").above(0)),
    ("all (p−1)/2 frequencies occur",
     lambda m, s: _final(m, "frequencies", s).named("share of frequencies present").at_least(1)),
    ("they occur almost evenly: largest over smallest weight at most 3",
     lambda m, s: _final(m, "frequency_ratio", s).named("largest/smallest weight").at_most(3)),
]  # fmt: skip
_LIVE = (
    "live neurons alone (norms above 10 % of the largest): the 5 % quantile of the share after training exceeds the "
    "95 % quantile before",
    lambda m, s: (
        (_final(m, "power_low_live", s) - _start(m, "power_high", s)).named("quantile after − before").above(0)
    ),
)


def _network_domain(k: int) -> dict[str, Any]:
    domain = about(f"k{k}", half=True, terms=k)
    domain["when"] = {f"k = {k} among the networks": lambda p: f"k{k}" in p.networks} | domain["when"]
    return domain


_LETTERS = iter("abcdefghijklmnopqrstuvwxyz")
for _k in (3, 4, 5):
    _ids = [f"C4{next(_LETTERS)}" for _ in _TRAINED] + [f"C2{'fgh'[_k - 3]}"]
    for _id, (_statement, _judge_network) in zip(_ids, [*_TRAINED, _LIVE], strict=True):

        @study.claim(
            _id,
            f"k = {_k}: {_statement}",
            source={3: "Figures C.1, C.2", 4: "Figures 4.1, 4.2", 5: "Figures C.3, C.4"}[_k],
            **_network_domain(_k),
        )
        def trained(
            m: Measurements, s: str = f"k{_k}", judge: Callable[[Measurements, str], Judgement] = _judge_network
        ) -> Judgement:
            return judge(m, s)


def _full(m: Measurements, metric: str, setting: str = "full-k3") -> Values:
    return m.final(metric, arm="full-data", setting=setting)


_FULL = {
    "C2d": ("trained networks (k = 3, half of the data) have phases that add up, |Σθ_l − θ_w| below 0.2", "Figure C.1",
            lambda m: _final(m, "phase_residual", "k3").named("weighted median of |Σθ_l − θ_w|").below(0.2)),
    "C2e": ("and one frequency for all k+1 vectors of a neuron", "Figure C.1",
            lambda m: _final(m, "shared_frequency", "k3").named("weighted share of such neurons").at_least(0.98)),
    "C3f": ("logits of a network trained on all data (k = 3, p = 7) depend on Σa − c alone, in 0.99 of their power",
            "Lemma C.20",
            lambda m: _full(m, "logit_share").named("share of power on the diagonal").at_least(0.99)),
    "C4v": ("all data, k = 3, p = 7: one-sparse neurons (weighted share at least 0.98)", f"{_THEOREM}",
            lambda m: _final(m, "power_weighted", "full-k3", "full-data").named("weighted share").at_least(0.98)),
    "C4w": ("all data, k = 2, p = 11: one-sparse neurons", f"{_THEOREM}",
            lambda m: _final(m, "power_weighted", "full-k2", "full-data").named("weighted share").at_least(0.98)),
    "C4x": ("all data, k = 2, p = 23, penalty λ‖θ‖: one-sparse neurons", f"{_THEOREM}",
            lambda m: _final(m, "power_weighted", "full-norm", "full-data").named("weighted share").at_least(0.98)),
    "C4y": ("all data, every setting: all frequencies", f"{_THEOREM}, third part",
            lambda m: m.every("frequencies", arm="full-data", step=[m.params_of(s).steps for s in FULL])
            .named("share of frequencies present").at_least(1)),
    "C4z": ("half of the data, k = 3: the mean training margin is at least 0.8γ*", "Lemma 4.7, Figure C.1",
            lambda m: _final(m, "mean_margin_ratio", "k3").named("mean margin/γ*").at_least(0.8)),
    "C7a": ("trained on all data, k = 3, p = 7, λ = 1e-4: smallest margin at least 0.95γ*", "Lemma 4.7",
            lambda m: _full(m, "full_margin_ratio").named("smallest margin/γ*").at_least(0.95)),
    "C7b": ("k = 2, p = 11: smallest margin at least 0.8γ*", "Lemma 4.7; frequencies get unequal weights at this width",
            lambda m: _full(m, "full_margin_ratio", "full-k2").named("smallest margin/γ*").at_least(0.8)),
    "C7c": ("k = 2, p = 23, penalty λ‖θ‖: smallest margin at least 0.8γ*", "Lemma 4.7",
            lambda m: _full(m, "full_margin_ratio", "full-norm").named("smallest margin/γ*").at_least(0.8)),
}  # fmt: skip
FULL = ("full-k3", "full-k2", "full-norm")
_DOMAINS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("C2d", "C2e", "C4z"), about("k3", half=True, terms=3)),
    **dict.fromkeys(("C3f", "C4v"), about("full-k3", terms=3, modulus=7)),
    "C4w": about("full-k2", terms=2, modulus=11),
    "C4x": about("full-norm", terms=2, modulus=23, regulariser="norm"),
    "C7a": about("full-k3", terms=3, modulus=7, penalty=1e-4, regulariser="sum"),
    "C7b": about("full-k2", terms=2, modulus=11),
    "C7c": about("full-norm", terms=2, modulus=23, regulariser="norm"),
}
for _id, (_statement, _source, _judge) in _FULL.items():
    study.claim(_id, _statement, source=_source, **_DOMAINS.get(_id, {}))(_judge)


def _enough_neurons(p: Any) -> bool:
    return p.width is None or p.width >= theory.required_width(p.modulus, p.terms)


_SUM = about("full-k3", regulariser="sum")["when"]
_BELOW = _SUM | {
    "a λ below γ*(p−1)/p": lambda p: min(p.strengths) < theory.vanishing_penalty(p.modulus, p.terms),
    "at least 2^{2k−2}(p−1) neurons": _enough_neurons,
}


def _below_threshold(m: Measurements) -> list[float]:
    params = m.params_of("full-k3")
    return [s for s in m.params.strengths if s < theory.vanishing_penalty(params.modulus, params.terms)]


def _strength(m: Measurements, metric: str, strength: float) -> Values:
    return m.final(metric, arm="regularisation", strength=strength)


@study.claim(
    "C7d",
    "no limit is needed: the normalised margin is near γ* at every λ below γ*(p−1)/p, at least 0.95 of it",
    source="Lemma 4.7, sharpened: a closed form of the minimiser on D_p",
    printed="γ_λ → γ* as λ → 0",
    when=_BELOW,
    setting="full-k3",
)
def every_strength(m: Measurements) -> Judgement:
    margins = [_strength(m, "full_margin_ratio", s) for s in _below_threshold(m)]
    return combine(min, margins, "smallest margin/γ*, worst λ").at_least(0.95)


@study.claim(
    "C7e",
    "training reaches the global minimum of the regularised objective, known in closed form, within 1 %",
    source="Derived from Lemma 4.7 and Theorem 4.9",
    when=_BELOW,
    setting="full-k3",
)
def global_minimum(m: Measurements) -> Judgement:
    ratios = [_strength(m, "objective", s) / _strength(m, "optimum", s) for s in _below_threshold(m)]
    return combine(max, ratios, "objective/global minimum, worst λ").between(1, 1.01)


@study.claim(
    "C7f",
    "from λ = γ*(p−1)/p on the zero network is best: at the largest λ the norm vanishes",
    source="Derived, the other side of C7d",
    when=_SUM | {"a λ above the threshold": lambda p: max(p.strengths) >= theory.vanishing_penalty(p.modulus, p.terms)},
    setting="full-k3",
)
def vanishes(m: Measurements) -> Judgement:
    return _strength(m, "norm", max(m.params.strengths)).named("‖θ‖ at the largest λ").at_most(0.05)


_CONTROLS = {
    "N1": ("weight decay in place of the penalty leaves neurons that are not one-sparse", "Control: the regulariser",
           lambda m: _final(m, "power_median", "k3-decay", "weight-decay").named("median share").below(0.7)),
    "N2": ("reading the outputs backwards (c to −c) turns the margin into at most −γ* somewhere",
           "Control: the sign of the phases",
           lambda m: m.every("reversed_ratio", arm="construction").named("margin ratio, outputs reversed")
           .at_most(-1, tolerance=EXACT)),
    "N3": ("the certificate rejects a network perturbed by 1 %", "Control: the certificate",
           lambda m: m.every("perturbed_ratio", arm="construction").named("margin ratio, perturbed").at_most(0.9999)),
    "N4": ("at p = 2 the optimum is not the formula's: 2^{(k−1)/2} times it", "Control: even p",
           lambda m: _at_two(m)),
    "N5": ("with shuffled labels there is no alignment with modular addition", "Control: labels",
           lambda m: m.final("full_alignment_ratio", arm="shuffled").named("J/bound").between(-0.1, 0.1)),
}  # fmt: skip


def _at_two(m: Measurements) -> Judgement:
    def largest(rows: pl.DataFrame) -> float:
        return float((rows["value"].to_numpy() / 2.0 ** ((rows["k"].to_numpy() - 1) / 2)).max())

    rows = m.rows("ratio_high", arm="single-neuron", p=2)
    return m.per_seed(rows, largest, "largest J/(formula·2^{(k−1)/2})").between(1 - 1e-9, 1 + 1e-9)


for _id, (_statement, _source, _judge) in _CONTROLS.items():
    _domain = about("k3-decay", regulariser="decay") if _id == "N1" else {}
    study.claim(_id, _statement, source=_source, **_domain)(_judge)
