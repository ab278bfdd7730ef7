"""What becomes of the neurons that one feature dominates at the start: the quantities that stages 2 and 3 bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..learners import Encoders, nan_if_diverged
from ..theory import MARGIN, lucky_sets, ordinary_sets


@dataclass(frozen=True)
class InitialSets:
    """The sets 𝓜*_j, ``lucky``, and 𝓜_j, ``ordinary``, of one cell's initial weights when all features are equally
    frequent: (seeds, neurons, features), boolean. Results have an entry per seed, NaN where training diverged."""

    lucky: Tensor
    ordinary: Tensor

    @classmethod
    def of(cls, start: Encoders, features: int) -> InitialSets:
        alpha = start.weights[:, 0, :, :features]
        return cls(lucky_sets(alpha, 1.0, MARGIN), ordinary_sets(alpha, 1.0, MARGIN))

    @property
    def member(self) -> Tensor:
        return self.lucky.any(-1)

    @property
    def feature(self) -> Tensor:
        return self.lucky.double().argmax(-1)

    @property
    def count(self) -> Tensor:
        return self.member.sum(-1).double()

    def _projections(self, encoders: Encoders) -> tuple[Tensor, Tensor, Tensor]:
        """|α_ij|, that on the neuron's own feature, and ‖w_i‖."""
        weights = encoders.weights[:, 0]
        alpha = weights[..., : self.lucky.shape[-1]].abs()
        own = alpha.gather(-1, self.feature.unsqueeze(-1)).squeeze(-1)
        return alpha, own, torch.linalg.vector_norm(weights, dim=-1)

    def specialisation(self, encoders: Encoders) -> dict[str, Any]:
        """How many lucky neurons keep their feature, and its share of their energy in features and of their norm."""
        alpha, own, size = self._projections(encoders)
        lost = nan_if_diverged(encoders.weights[:, 0])
        return {
            "lucky_kept": ((alpha.argmax(-1) == self.feature) & self.member).sum(-1) / self.count + lost,
            "lucky_share": (own.square() / alpha.square().sum(-1) * self.member).sum(-1) / self.count + lost,
            "lucky_norm_share": ((own / size).square() * self.member).sum(-1) / self.count + lost,
        }

    def growth(self, encoders: Encoders, begun: Tensor) -> Tensor:
        """The smallest |α|²/‖w(T₁)‖² of lucky neurons on their feature."""
        _, own, _ = self._projections(encoders)
        return torch.where(self.member, (own / begun).square(), torch.inf).amin(-1)

    def over_bias(self, encoders: Encoders) -> dict[str, Tensor]:
        """Projections over biases, which stage 2 bounds: of lucky neurons the smallest, of non-members the largest."""
        alpha, own, _ = self._projections(encoders)
        bias = encoders.biases[:, 0]
        return {
            "lucky_over_bias": torch.where(self.member, own / bias, torch.inf).amin(-1),
            "outsider_over_bias": torch.where(self.ordinary, 0, alpha / bias.unsqueeze(-1)).amax((-1, -2)),
        }

    def others_over_lucky(self, encoders: Encoders) -> Tensor:
        """The largest projection of other neurons on a feature over that of its lucky ones, largest over the features
        that have a lucky neuron; NaN without any, where there is nothing to compare."""
        alpha, _, _ = self._projections(encoders)
        largest, others = (torch.where(chosen, alpha, 0).amax(1) for chosen in (self.lucky, ~self.lucky))
        owned = self.lucky.any(1)
        ratio = torch.where(owned, others / largest, -torch.inf).amax(-1) + nan_if_diverged(encoders.weights[:, 0])
        return torch.where(owned.any(-1), ratio, torch.nan)

    def weak_rms(self, encoders: Encoders) -> Tensor:
        """Root mean square of a neuron's weak coefficients, times √d/‖w‖: the median over neurons with strong ones.
        Where 𝓝_i is empty the weak ones are all there are."""
        alpha, _, size = self._projections(encoders)
        weak = (torch.where(self.ordinary, 0, alpha).square().sum(-1) / (~self.ordinary).sum(-1)).sqrt()
        scaled = torch.where(self.ordinary.any(-1), weak / size * math.sqrt(alpha.shape[-1]), torch.nan)
        return scaled.nanmedian(-1).values + nan_if_diverged(encoders.weights[:, 0])
