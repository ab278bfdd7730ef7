"""Before contrastive training on imbalanced features: which features can be learned, how fast, and with what width?

The formulas are those of a one-layer encoder with small initial weights under InfoNCE (unnormalised inner products).
There a feature j grows geometrically at a rate set by its positive-pair correlation κ_j: how strongly the two views of
a sample agree along it. Weight decay pulls everything back at the same rate, so a rare feature may never grow at all.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, chart

from ._arrays import of_tensors
from ._checks import all_finite, check_fields, limits, number, whole
from .neuron_sets import NeuronSets, neuron_sets, required_width, set_thresholds


@dataclass(frozen=True)
class Descent:
    """What the growth formulas need to know of the training: η, λ, τ and the number |𝔅| of candidates per anchor."""

    rate: float = field(metadata=limits(above=0))
    decay: float = field(metadata=limits(least=0))
    temperature: float = field(metadata=limits(above=0))
    candidates: int = field(metadata=limits(least=2))  # the positive and at least one negative

    def __post_init__(self) -> None:
        check_fields(self)
        number("rate × decay", self.rate * self.decay, least=0, below=1)

    @property
    def pull(self) -> float:
        """(1 − 1/|𝔅|)/τ, what one unit of correlation adds to the growth rate."""
        return (1 - 1 / self.candidates) / self.temperature


@of_tensors
def growth_factors(correlation: Tensor, descent: Descent) -> Tensor:
    """G_j = 1 − ηλ + (η/τ)(1 − 1/|𝔅|)κ_j: the factor by which ⟨w, M_j⟩ grows per step near initialisation.

    A direction in which the two views are independent has κ = 0 and shrinks by 1 − ηλ.
    """
    return 1 - descent.rate * descent.decay + descent.rate * descent.pull * correlation


@of_tensors
def learnable(correlation: Tensor, descent: Descent) -> Tensor:
    """Whether a feature escapes: (1/τ)(1 − 1/|𝔅|)κ_j > λ."""
    return correlation * descent.pull > descent.decay


def learnability_threshold(descent: Descent) -> float:
    """The smallest positive-pair correlation κ that can be learned under this weight decay: λτ/(1 − 1/|𝔅|)."""
    return descent.decay / descent.pull


@of_tensors
def stage_one_steps(feature_energy: Tensor, noise_energy: Tensor, growth: Tensor, shrink: float) -> Tensor:
    """Predicted T1: the first step at which features hold half of a neuron's squared norm, per neuron.

    ``feature_energy`` (..., features) holds ⟨w, M_j⟩² at the start, ``noise_energy`` (...) the squared norm outside the
    features, ``growth`` (features) the factors of ``growth_factors`` and ``shrink`` = 1 − ηλ. Infinite where no feature
    gains on the noise, NaN where an energy is not finite.
    """
    relative = (growth / shrink).double().square()
    energy, noise = feature_energy.double(), noise_energy.double()
    best = torch.where(energy > 0, relative, 0).amax(-1)
    low, high = torch.zeros_like(noise), torch.ones_like(noise)
    known = noise.isfinite() & energy.isfinite().all(-1)
    possible = known & ((best > 1) | (energy.sum(-1) >= noise))

    def reached(steps: Tensor) -> Tensor:
        # In logarithms, so that no power overflows; a feature without energy stays without.
        logs = torch.where(energy > 0, energy.log() + steps.unsqueeze(-1) * relative.log(), -math.inf)
        return logs.logsumexp(-1) >= noise.log()

    while bool((possible & ~reached(high)).any()):
        high = torch.where(possible & ~reached(high), high * 2, high)
    for _ in range(64):
        middle = (low + high) / 2
        low, high = torch.where(reached(middle), low, middle), torch.where(reached(middle), middle, high)
    whole = torch.where(energy.sum(-1) >= noise, 0, high.round(decimals=6).ceil())
    return torch.where(known, torch.where(possible, whole, math.inf), math.nan)


def pruning_horizon(ratio: float, boost: float) -> float:
    """Steps until a rare coefficient, ``ratio`` times as large as the frequent ones, has caught up when pruning lets it
    grow faster by the factor 1 + ``boost`` per step: log(1/r)/log(1 + boost)."""
    number("ratio", ratio, above=0, most=1)
    number("boost", boost, above=0)
    return math.log(1 / ratio) / math.log1p(boost)


@dataclass(frozen=True, repr=False)
class Plan(Report):
    """What the formulas say before training: per feature the growth factor and whether it can be learned at all, the
    steps until features hold half of a typical neuron, and the neurons that start out specialised.

    Neuron sets and ``required_width`` (infinite when no feature is learnable) take the ratio of the smallest to the
    largest correlation among learnable features; ``width_per_feature`` is that width, infinite for the others."""

    growth: Tensor
    learnable: Tensor
    stage_one: float
    sets: NeuronSets
    lucky_per_feature: float
    required_width: float
    width_per_feature: Tensor

    def headline(self) -> str:
        can, every = int(self.learnable.sum()), len(self.learnable)
        return (
            f"{can} of {every} features can be learned; features hold half of a neuron after {self.stage_one:g} steps; "
            f"one lucky neuron per feature takes a width of {self.required_width:.4g}"
        )

    def table(self) -> list[dict[str, Any]]:
        """A row per feature."""
        rows = zip(self.growth.tolist(), self.learnable.tolist(), self.width_per_feature.tolist(), strict=True)
        return [
            {"feature": j, "growth": growth, "learnable": can, "width": width if math.isfinite(width) else None}
            for j, (growth, can, width) in enumerate(rows)
        ]

    def figure(self) -> Any:
        """Growth per step of every feature; at 1 and below none is learned."""
        drawn = (
            chart(self.table())
            .mark_point(filled=True)
            .encode(
                x="feature:O",
                y={"field": "growth", "type": "quantitative", "scale": {"zero": False}},
                color="learnable:N",
            )
        )
        return drawn + chart([{"growth": 1.0}]).mark_rule(strokeDash=[4, 4]).encode(y="growth:Q")


@of_tensors
def plan(correlation: Tensor, descent: Descent, *, dim: int, width: int, margin: float = 0.1) -> Plan:
    """Plan a training with features of positive-pair correlation κ (features,) in ``dim`` dimensions.

    κ_j is E[(Σ_r z_j)(Σ_s z_j⁺)] for the model problem; for your own data, estimate the covariance of the two views'
    summed inputs along a direction; an estimate may be zero or slightly negative, which cannot be learned. Warns when
    a feature cannot be learned under this weight decay, and when no neuron can start out specialised.
    """
    if correlation.ndim != 1:
        raise ValueError(f"the correlations κ must be (features,), not {tuple(correlation.shape)}")
    features = len(correlation)
    whole("width", width, 1)
    if whole("dim", dim, 1) < features:
        raise ValueError(f"{features} features do not fit into {dim} dimensions")
    correlation = correlation.detach()
    all_finite("the correlations κ", correlation)
    growth, can = growth_factors(correlation, descent), learnable(correlation, descent)
    learned = correlation[can]
    ratio = float(learned.min() / learned.max()) if len(learned) else 1.0
    sets = neuron_sets(features, ratio, margin=margin)
    if not bool(can.all()):
        lost = int((~can).sum())
        warnings.warn(
            f"{lost} of {features} features grow no faster than weight decay shrinks them: no width teaches "
            "them, and neuron sets are planned for the others",
            stacklevel=3,
        )
    if set_thresholds(features, ratio, margin)[0] > 1:
        warnings.warn(f"c₁ log d > d at d = {features}, r = {ratio:.3g}: no neuron starts out lucky", stacklevel=3)
    typical = torch.ones(features), torch.tensor(float(dim - features))
    steps = stage_one_steps(*typical, growth, 1 - descent.rate * descent.decay)
    needed = required_width(features, ratio, margin=margin) if len(learned) else math.inf
    each = torch.where(can, needed, math.inf)
    return Plan(growth, can, float(steps), sets, width * sets.lucky, needed, each)
