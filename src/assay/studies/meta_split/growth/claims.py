"""C4: what the inner steps multiply, and the rates at which feature and noise grow, with explicit constants."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values

from ..learners import TT, TV
from .arms import Params, part

LEMMAS = "Lemmas 6.1 and 6.2 with explicit constants"
ORDERS = "orders only: noise ≈ (1 + γs/n)^J, feature ≈ (1 + γ)^J"


def _early(m: Measurements[Params], metric: str, split: str) -> Values:
    return m.final(metric, arm="early-growth", energy=8.0, inner=5, split=split)


def _gain(m: Measurements[Params], kind: str, split: str) -> Values:
    ratio = _early(m, f"{kind}_gain", split) / _early(m, f"predicted_{kind}_gain", split)
    return ratio.named("measured/predicted")


@part.claim(
    "C4a",
    "without a split five inner steps multiply a sample's own noise by (1 + γ‖ξ‖²/(2hn))^J, within 10 %",
    source=LEMMAS,
    printed=ORDERS,
)
def own_noise_multiplied(m: Measurements[Params]) -> Judgement:
    return _gain(m, "noise", TT).between(0.9, 1.1)


@part.claim("C4b", "and the feature by (1 + γπ‖ν_k‖²/(2h))^J only, within 10 %", source=LEMMAS, printed=ORDERS)
def feature_multiplied(m: Measurements[Params]) -> Judgement:
    return _gain(m, "feature", TT).between(0.9, 1.1)


@part.claim("C4c", "with a split the feature is multiplied by the same, within 10 %", source=LEMMAS)
def feature_multiplied_with_a_split(m: Measurements[Params]) -> Judgement:
    return _gain(m, "feature", TV).between(0.9, 1.1)


@part.claim("C4d", "and validation noise is not amplified (median factor 0.8 to 1.25)", source=LEMMAS)
def validation_noise_not_multiplied(m: Measurements[Params]) -> Judgement:
    return _early(m, "noise_gain", TV).named("median factor").between(0.8, 1.25)


@part.claim(
    "C4e",
    "without a split noise grows at R_ξ = s/(2hKn)·(1 + γs/(2hn))^J per step and unit rate, within 10 %",
    source=LEMMAS,
)
def noise_grows(m: Measurements[Params]) -> Judgement:
    return _early(m, "outer_noise", TT).named("measured/predicted").between(0.9, 1.1)


@part.claim(
    "C4f",
    "the feature grows at R_ν = π‖ν‖²/(2h)·(1 + γπ‖ν_k‖²/(2h))^J without a split, within 10 %",
    source=LEMMAS,
)
def feature_grows(m: Measurements[Params]) -> Judgement:
    return _early(m, "feature", TT).named("measured/predicted").between(0.9, 1.1)


@part.claim("C4g", "and at the same rate with one, within 10 %", source=LEMMAS)
def feature_grows_with_a_split(m: Measurements[Params]) -> Judgement:
    return _early(m, "feature", TV).named("measured/predicted").between(0.9, 1.1)


@part.claim(
    "C4h", "validation noise grows at s/(2hKn₂) with a split, within a factor of 2 (median sample)", source=LEMMAS
)
def validation_noise_grows(m: Measurements[Params]) -> Judgement:
    return _early(m, "outer_noise_median", TV).named("measured/predicted").between(0.5, 2)


@part.claim("C4i", "training noise hardly moves with a split: its median rate is below a fifth of that", source=LEMMAS)
def training_noise_stays(m: Measurements[Params]) -> Judgement:
    return _early(m, "inner_only_noise", TV).named("|rate|/rate of validation noise").below(0.2)
