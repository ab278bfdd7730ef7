"""The claims on forward pruning: its rate (C5), its end state (C6), and their controls."""

from __future__ import annotations

import math

import numpy as np

from assay.lab import Judgement, Measurements, Values, combine

from .common_claims import EXACT
from .study import study

DECAY = 0.01
TRIED = {
    "the constructed state with ε = 0.1, 0.3, 0.5 and λ = 0.01": lambda p: (
        tuple(p.pruned_rare) == (0.1, 0.3, 0.5) and DECAY in p.pruned_decays and p.pruned_steps == 1200
    )
}
THREE = {"three neurons per feature": lambda p: p.per_feature == 3}


def _coefficient(
    m: Measurements, gradient: str, epsilon: float, step: int | None = None, metric: str = "rare_coefficient"
):
    where = dict(arm="pruning", decay=DECAY, gradient=gradient, epsilon=epsilon)
    return m.final(metric, **where) if step is None else m.at(metric, step, **where)


@study.claim(
    "C5a",
    "the update has the masked softmax and unmasked gradients: it matches finite differences of that surrogate",
    source="Pruning algorithm, its equation for g",
    printed="g at θ_t, where the masked parameter is meant; differentiating the masked network gives none",
)
def surrogate(m: Measurements) -> Judgement:
    rows = m.every("masked_difference_deviation", arm="gradient")
    return rows.named("|⟨g, v⟩ − finite difference|/|g|").at_most(0, tolerance=1e-6)


@study.claim("C5b", "pruned neurons receive gradient", source="Pruning algorithm: updates of all parameters")
def pruned_learn(m: Measurements) -> Judgement:
    rows = m.every("pruned_gradient", arm="gradient", token_mode="all")
    return rows.named("mean gradient of pruned neurons/largest gradient of plain training").at_least(1e-3)


@study.claim(
    "C5c",
    "with small weights (× 0.03) a mask changes the positives' softmax by (1/τ)ℓ'_p[(1 − ℓ'_p)Δu_p − Σ ℓ'_s Δu_s]",
    source="Proof of Lemma F.2; the constructed state's weights times 0.03, so that the change is small",
)
def response(m: Measurements) -> Judgement:
    rows = m.every("response_deviation", arm="one-step", scale=0.03)
    return rows.named("|Δℓ' − first order|/|Δℓ'|").at_most(0.01)


@study.claim("C5d", "masking the rare feature's neurons raises their growth, at every ε", source="Theorem 3.2 (a)")
def boosted(m: Measurements) -> Judgement:
    gains = [
        m.final("rare_boost", arm="one-step", epsilon=e, pruned=m.params.per_feature, scale=1.0)
        / m.final("plain_growth", arm="one-step", epsilon=e, pruned=m.params.per_feature, scale=1.0)
        for e in m.params.pruned_rare
    ]
    return combine(min, gains, "boost/plain growth, smallest over ε").above(0)


@study.claim(
    "C5e",
    "with small weights (× 0.2) the boost is of first order in α: three masked neurons give three times that of one",
    source="Theorem 3.2 (a); smallest ε, the constructed state's weights times 0.2; at full size: C5n",
    when=THREE,
)
def first_order(m: Measurements) -> Judgement:
    return _three_over_one(m, 0.2).named("boost of three/boost of one, weights × 0.2").between(2.85, 3.15)


def _three_over_one(m: Measurements, scale: float) -> Values:
    where = dict(arm="one-step", epsilon=m.params.pruned_rare[0], scale=scale)
    return m.final("rare_boost", pruned=3, **where) / m.final("rare_boost", pruned=1, **where)


@study.claim(
    "C5f",
    "when the rare feature's neurons are masked, no other feature gains or loses more than 1/d as much",
    source="Theorem 3.2 (b): rates α/d and α/d²",
    printed="the rates' ratio is ε/d, which rises with ε (rates ηε²αC/d and ηε³αC/d², up to constants)",
    when={"eight features": lambda p: p.pruned_majority == 7},
)
def others_gain_less(m: Measurements) -> Judgement:
    shares = [
        m.final("other_over_rare", arm="one-step", epsilon=e, pruned=m.params.per_feature, scale=1.0)
        for e in m.params.pruned_rare
    ]
    return combine(max, shares, "largest |other boost|/rare boost, worst ε").at_most(1 / 8)


for _letter, (_epsilon, _step) in zip("ghi", {0.1: 400, 0.3: 200, 0.5: 100}.items(), strict=True):

    @study.claim(
        f"C5{_letter}",
        f"half-way to equality (ε = {_epsilon}, step {_step}) the rare coefficient is 5 % larger with pruning",
        source="Theorem 3.2 (a) over many steps",
        when=TRIED,
    )
    def ahead(m: Measurements, epsilon: float = _epsilon, step: int = _step) -> Judgement:
        gain = _coefficient(m, "logit-masked", epsilon, step) / _coefficient(m, "plain", epsilon, step)
        return gain.named("pruned/plain rare coefficient").at_least(1.05)


@study.claim(
    "C5j", "at first all pruned neurons are the rare feature's", source="Assumption of Theorem 3.2; constructed state"
)
def pruned_are_rare(m: Measurements) -> Judgement:
    rows = m.every("pruned_rare_share", arm="pruning", gradient="logit-masked", step=0)
    return rows.named("share of rare among the pruned at step 0").at_least(1)


@study.claim(
    "C5k",
    "once magnitudes are equal the mask turns to others (ε = 0.5, last quarter)",
    source="Remark 1: self-balancing",
    when=TRIED,
)
def mask_moves_on(m: Measurements) -> Judgement:
    return _late_share(m).at_most(0.5)


@study.claim(
    "C5l",
    "once magnitudes are equal the mask is at about chance: the rare feature's share of it is within 0.1 of 1/d "
    "(ε = 0.5, last quarter)",
    source="Remark 1: self-balancing",
    when=TRIED,
)
def mask_at_chance(m: Measurements) -> Judgement:
    chance = 1 / (m.params.pruned_majority + 1)
    return _late_share(m).between(chance - 0.1, chance + 0.1)


def _late_share(m: Measurements) -> Values:
    rows = m.rows("pruned_rare_share", arm="pruning", gradient="logit-masked", decay=DECAY, epsilon=0.5)
    late = rows.filter(rows["step"] >= 0.75 * m.params.pruned_steps)
    return m.per_seed(late, lambda part: part["value"].mean(), "mean share of rare among the pruned")


@study.claim(
    "C5m",
    "the update with a mask is the surrogate's gradient by automatic differentiation, to rounding",
    source="Pruning algorithm, its equation for g; both attentions, all token modes",
)
def masked_closed_form(m: Measurements) -> Judgement:
    rows = m.every("masked_autograd_deviation", arm="gradient")
    return rows.named("|formula − autograd|").at_most(0, tolerance=EXACT)


@study.claim(
    "C5n",
    "at full size of the weights, too, three masked neurons give three times the boost of one",
    source="Theorem 3.2 (a) at the constructed state itself; smallest ε, the criterion of C5e",
    when=THREE,
)
def first_order_at_full_size(m: Measurements) -> Judgement:
    return _three_over_one(m, 1.0).named("boost of three/boost of one, weights × 1").between(2.85, 3.15)


@study.claim(
    "C5o",
    "with small weights (× 0.2) the boost of the rare feature grows like ε²",
    source="Theorem 3.2 (a): rate ηε²αC/d; a power fitted over ε, all of the feature's neurons masked",
)
def boost_exponent(m: Measurements) -> Judgement:
    rows = m.rows("rare_boost", arm="one-step", pruned=m.params.per_feature, scale=0.2)
    powers = m.per_seed(
        rows,
        lambda part: power(part["epsilon"].to_numpy(), part["value"].to_numpy()),
        "exponent of ε in the boost, weights × 0.2",
        by="epsilon",
    )
    return powers.between(1.7, 2.3)


def power(x: np.ndarray, y: np.ndarray) -> float:
    """The exponent of a power law by least squares in logarithms; NaN where a value is not positive."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0]) if bool((y > 0).all()) else math.nan


for _letter, _epsilon in zip("abc", (0.1, 0.3, 0.5), strict=True):

    @study.claim(
        f"C6{_letter}",
        f"with pruning the rare coefficient ends within 10 % of the frequent ones (ε = {_epsilon})",
        source="Theorem 3.2 (c)",
        when=TRIED,
    )
    def equal(m: Measurements, epsilon: float = _epsilon) -> Judgement:
        return _coefficient(m, "logit-masked", epsilon, metric="ratio").named("rare/frequent").between(0.9, 1.1)


@study.claim(
    "C6d",
    "with pruning the final ratio of rare to frequent coefficients differs by less than 0.05 between ε",
    source="Theorem 3.2 (c)",
    when=TRIED,
)
def independent(m: Measurements) -> Judgement:
    parts = [_coefficient(m, "logit-masked", e, metric="ratio") for e in m.params.pruned_rare]
    return combine(lambda v: max(v) - min(v), parts, "largest − smallest rare/frequent over ε").below(0.05)


@study.claim(
    "C6e",
    "without pruning the rarest feature (ε = 0.1) is still more than 10 % behind after the same steps",
    source="Theorem 3.2, comparison",
    when=TRIED,
)
def plain_behind(m: Measurements) -> Judgement:
    return _coefficient(m, "plain", 0.1, metric="ratio").named("rare/frequent").below(0.9)


@study.claim("N3", "a mask that hides nothing changes no bit of the update", source="control")
def trivial_mask(m: Measurements) -> Judgement:
    return m.every("trivial_mask_difference", arm="gradient").named("|difference|").at_most(0)


@study.claim(
    "N4", "pruning from random weights does not help the rare feature", source="control: small neurons are not its own"
)
def random_start(m: Measurements) -> Judgement:
    where = dict(arm="pruning-random", epsilon=m.params.pruned_rare[0])
    gain = m.final("rare_energy", pruned=True, **where) / m.final("rare_energy", pruned=False, **where) - 1.0
    return gain.named("rare coefficient, pruned/plain − 1").below(0.02)


@study.claim(
    "N5",
    "differentiating the masked network instead leaves the rare coefficient below plain training",
    source="control: pruned neurons then only decay (self-competitor with whole neurons is the same)",
)
def straight_through(m: Measurements) -> Judgement:
    epsilon = m.params.pruned_rare[0]
    ratio = _coefficient(m, "straight-through", epsilon) / _coefficient(m, "plain", epsilon)
    return ratio.named("straight-through/plain rare coefficient").below(1)
