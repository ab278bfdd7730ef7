"""The claims on one step: the gradient (C1a), the masked update and what it adds to the growth (C5), a control."""

from __future__ import annotations

from typing import Any

import polars as pl

from assay.lab import Judgement, Measurements, Values, combine

from ..claims import AN_ORDER, EXACT, power
from .arms import Params, part

THREE = {"three neurons per feature": lambda p: p.per_feature == 3}
# Similarities are quadratic in the weights, so that terms of the next order are smaller by the square of their scale.
FIRST_ORDER: dict[str, Any] = {"within": 0.12, "because": "4 %, the next order at weights × 0.2"}


@part.claim(
    "C1a",
    "The gradient of InfoNCE is the closed form that the proofs use, to rounding, for both attentions and all token "
    "modes.",
    source="Section 4, against automatic differentiation; the text leaves out 1/τ",
    printed="the gradient without the factor 1/τ (its pseudo-loss is −τ log)",
)
def closed_form(m: Measurements[Params]) -> Judgement:
    return m.every("autograd_deviation", arm="gradient").named("|formula − autograd|").at_most(0, tolerance=EXACT)


@part.claim(
    "C5a",
    "The pruned update is the gradient of a surrogate, to rounding: the masked network's softmax, the full network's "
    "outputs.",
    source="Pruning algorithm, its equation for g, against automatic differentiation; both attentions, all token modes",
    printed="g at θ_t, where the masked parameter is meant; differentiating the masked network gives none",
)
def masked_closed_form(m: Measurements[Params]) -> Judgement:
    rows = m.every("masked_autograd_deviation", arm="gradient")
    return rows.named("|formula − autograd|").at_most(0, tolerance=EXACT)


@part.claim(
    "C5b",
    "Neurons that the forward pass leaves out still receive gradient: at least a thousandth of the largest one.",
    source="Pruning algorithm: updates of all parameters; tokens that show every active feature",
)
def pruned_learn(m: Measurements[Params]) -> Judgement:
    rows = m.every("pruned_gradient", arm="gradient", token_mode="all")
    return rows.named("mean gradient of pruned neurons/largest gradient of plain training").at_least(1e-3)


@part.claim("N3", "A mask that hides no neuron changes no bit of the update.", source="control")
def trivial_mask(m: Measurements[Params]) -> Judgement:
    return m.every("trivial_mask_difference", arm="gradient").named("|difference|").at_most(0)


@part.claim(
    "C5c",
    "With small weights (× 0.03) a mask changes the positives' softmax by the first-order formula of the proof, within "
    "1 %.",
    source="Proof of Lemma F.2: (1/τ)ℓ'_p[(1 − ℓ'_p)Δu_p − Σ ℓ'_s Δu_s]; the constructed state's weights times 0.03",
)
def response(m: Measurements[Params]) -> Judgement:
    rows = m.every("response_deviation", arm="one-step", scale=0.03)
    return rows.named("|Δℓ' − first order|/|Δℓ'|").at_most(0.01)


@part.claim(
    "C5d",
    "One step that leaves the rare feature's neurons out of the forward pass makes them grow faster, at every "
    "frequency (ε).",
    source="Theorem 3.2 (a), at the constructed state",
)
def boosted(m: Measurements[Params]) -> Judgement:
    pairs = zip(_all_masked(m, "rare_boost"), _all_masked(m, "plain_growth"), strict=True)
    return combine(min, [boost / plain for boost, plain in pairs], "boost/plain growth, smallest over ε").above(0)


@part.claim(
    "C5e",
    "With small weights (× 0.2) masking three of the rare feature's neurons speeds them up three times as much as "
    "masking one, within 4 %.",
    source="Theorem 3.2 (a); smallest ε, the constructed state's weights times 0.2; at full size: C5n",
    when=THREE,
)
def first_order(m: Measurements[Params]) -> Judgement:
    return _three_over_one(m, 0.2).named("boost of three/boost of one, weights × 0.2").equals(3, **FIRST_ORDER)


@part.claim(
    "C5n",
    "At full size of the weights masking three of the rare feature's neurons speeds them up three times as much as "
    "masking one, within 4 %.",
    source="Theorem 3.2 (a) at the constructed state itself; smallest ε, the criterion of C5e",
    when=THREE,
)
def first_order_at_full_size(m: Measurements[Params]) -> Judgement:
    return _three_over_one(m, 1.0).named("boost of three/boost of one, weights × 1").equals(3, **FIRST_ORDER)


def _three_over_one(m: Measurements[Params], scale: float) -> Values:
    where = dict(arm="one-step", epsilon=m.params.pruned_rare[0], scale=scale)
    return m.final("rare_boost", pruned=3, **where) / m.final("rare_boost", pruned=1, **where)


@part.claim(
    "C5f",
    "One step that masks the rare feature's neurons changes no other feature's growth by more than 1/d of what they "
    "gain.",
    source="Theorem 3.2 (b): rates α/d and α/d²",
    printed="the rates' ratio is ε/d, which rises with ε (rates ηε²αC/d and ηε³αC/d², up to constants)",
    when={"eight features": lambda p: p.pruned_majority == 7},
)
def others_gain_less(m: Measurements[Params]) -> Judgement:
    shares = _all_masked(m, "other_over_rare")
    return combine(max, shares, "largest |other boost|/rare boost, worst ε").at_most(1 / 8)


def _all_masked(m: Measurements[Params], metric: str) -> list[Values]:
    """The metric per ε at the constructed state itself, with all of the rare feature's neurons masked."""
    where = dict(arm="one-step", pruned=m.params.per_feature, scale=1.0)
    return [m.final(metric, epsilon=epsilon, **where) for epsilon in m.params.pruned_rare]


@part.claim(
    "C5o",
    "With small weights (× 0.2) what masking adds to the rare feature's growth rises with the square of its "
    "frequency (ε²).",
    source="Theorem 3.2 (a): rate ηε²αC/d; a power fitted over ε, all of the feature's neurons masked",
)
def boost_exponent(m: Measurements[Params]) -> Judgement:
    rows = m.rows("rare_boost", arm="one-step", pruned=m.params.per_feature, scale=0.2)

    def exponent(curve: pl.DataFrame) -> float:
        return power(curve["epsilon"].to_numpy(), curve["value"].to_numpy())

    what = "exponent of ε in the boost, weights × 0.2"
    return m.per_seed(rows, exponent, what, by="epsilon").equals(2, **AN_ORDER)
