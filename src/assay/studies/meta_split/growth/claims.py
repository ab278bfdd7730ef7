"""C4: what the inner steps multiply, and the rates at which feature and noise grow, with explicit constants."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values, farthest

from ..learners import SPLITS, TT, TV
from .arms import Params, part

LEMMAS = "Lemmas 6.1 and 6.2 with explicit constants"
ORDERS = "orders only: noise ≈ (1 + γs/n)^J, feature ≈ (1 + γ)^J"
DROPPED = "the formula drops products between noise vectors"


def _early(m: Measurements[Params], metric: str, split: str) -> Values:
    return m.final(metric, arm="early-growth", energy=8.0, inner=5, split=split)


def _gain(m: Measurements[Params], kind: str, split: str) -> Values:
    return _early(m, f"{kind}_gain", split) / _early(m, f"predicted_{kind}_gain", split)


def _as_predicted(ratio: Values) -> Judgement:
    return ratio.named("measured/predicted").equals(1, within=0.1, because=DROPPED)


@part.claim(
    "C4a",
    "Without a split five inner steps multiply the alignment with a sample's own noise by (1 + γ‖ξ‖²/(2hn))^J, within "
    "10 %.",
    source=LEMMAS,
    printed=ORDERS,
    headline=True,
)
def own_noise_multiplied(m: Measurements[Params]) -> Judgement:
    return _as_predicted(_gain(m, "noise", TT))


@part.claim(
    "C4b",
    "Five inner steps multiply the alignment with the feature by only (1 + γπ‖ν_k‖²/(2h))^J, with or without a split, "
    "within 10 %.",
    source=LEMMAS,
    printed=ORDERS,
)
def feature_multiplied(m: Measurements[Params]) -> Judgement:
    return _as_predicted(farthest(1, [_gain(m, "feature", split) for split in SPLITS], "feature"))


@part.claim(
    "C4d",
    "With a split five inner steps move the alignment with validation noise no more than one moves the feature's: by "
    "a factor of at most 1 + γ/(4h), up or down (median sample).",
    source=LEMMAS,
)
def validation_noise_not_multiplied(m: Measurements[Params]) -> Judgement:
    one_step = 1 + m.params.inner_rate / (4 * m.params.knee)  # C4b at J = 1, with π = ½ and ‖ν‖ = 1
    return _early(m, "noise_gain", TV).named("median factor").between(1 / one_step, one_step)


@part.claim(
    "C4e",
    "Without a split alignment with noise grows at R_ξ = s/(2hKn)·(1 + γs/(2hn))^J per outer step and unit rate, "
    "within 10 %.",
    source=LEMMAS,
)
def noise_grows(m: Measurements[Params]) -> Judgement:
    return _as_predicted(_early(m, "outer_noise", TT))


@part.claim(
    "C4f",
    "Alignment with the feature grows at R_ν = π‖ν‖²/(2h)·(1 + γπ‖ν_k‖²/(2h))^J per outer step and unit rate, split or "
    "not, within 10 %.",
    source=LEMMAS,
)
def feature_grows(m: Measurements[Params]) -> Judgement:
    return _as_predicted(farthest(1, [_early(m, "feature", split) for split in SPLITS], "feature"))


@part.claim(
    "C4h",
    "With a split alignment with validation noise grows at only s/(2hKn₂) per outer step and unit rate (median "
    "sample), within the factor of 2 left for products between noise vectors.",
    source=LEMMAS,
)
def validation_noise_grows(m: Measurements[Params]) -> Judgement:
    return _early(m, "outer_noise_median", TV).named("measured/predicted").between(0.5, 2)


@part.claim(
    "C4i",
    "With a split training noise hardly moves: its median rate of growth is below a fifth of that of validation noise.",
    source=LEMMAS,
)
def training_noise_stays(m: Measurements[Params]) -> Judgement:
    return _early(m, "inner_only_noise", TV).named("|rate|/rate of validation noise").below(0.2)
