"""Problems that several experiments share: samples with their components, linear data, and mixtures of Gaussians.

Means lie on coordinate axes. Noise and initial weights are isotropic, so any rotation of these problems is the same
problem, and a reader sees at once which coordinate is which feature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from assay.methods.gradient_bounds import Assumption
from assay.training.seeds import Seeds

LOW_RANK, TAIL = 10, 5  # directions, degrees of freedom


@dataclass(frozen=True)
class Sample:
    inputs: Tensor  # (seeds, n, dim)
    labels: Tensor  # (seeds, n): ±1, or real numbers in regression
    components: Tensor  # (seeds, n): which part of the distribution each input came from

    def part(self, start: int, stop: int) -> Sample:
        """The samples from ``start`` to ``stop`` of every seed."""
        rows = slice(start, stop)
        return Sample(self.inputs[:, rows], self.labels[:, rows], self.components[:, rows])


@dataclass(frozen=True)
class LinearData:
    """x = y·t·w* + noise in the complement of w*: balanced labels, margin t = margin + an exponential of that mean. The
    noise has the same mean square in each kind: normal, with the tails of Student's t with five degrees of freedom, or
    confined to ten directions."""

    dim: int
    margin: float
    noise: float = 1.0
    kind: Literal["normal", "heavy tails", "low rank"] = "normal"

    def __post_init__(self) -> None:
        if self.margin <= 0:
            raise ValueError(f"linear data need a margin above 0, not {self.margin:g}")
        if self.dim < 2 or (self.kind == "low rank" and self.dim <= LOW_RANK):
            least = LOW_RANK + 1 if self.kind == "low rank" else 2
            raise ValueError(f"linear data need {least} dimensions or more, not {self.dim}")

    @property
    def features(self) -> Tensor:
        """(1, dim): w*, the first axis."""
        return torch.eye(1, self.dim)

    @property
    def signal(self) -> float:
        """ρ = E[y⟨w*, x⟩]."""
        return 2 * self.margin

    def typical_norm(self) -> float:
        """√E‖x‖²."""
        return math.sqrt(5 * self.margin**2 + self.noise**2 * (self.dim - 1))

    def sample(self, seeds: Seeds, name: str, n: int) -> Sample:
        labels = torch.where(seeds.uniform(f"{name} labels", n) < 0.5, -1.0, 1.0).to(seeds.dtype)
        along = self.margin * (1 - (1 - seeds.uniform(f"{name} margins", n)).log())
        inputs = seeds.normal(f"{name} noise", n, self.dim) * self.noise
        if self.kind == "heavy tails":
            lengths = seeds.normal(f"{name} lengths", n, TAIL).square().mean(-1, keepdim=True)
            inputs = inputs * (lengths * TAIL / (TAIL - 2)).rsqrt()
        elif self.kind == "low rank":
            inputs[..., LOW_RANK + 1 :] = 0
            inputs = inputs * math.sqrt((self.dim - 1) / LOW_RANK)
        inputs[..., 0] = labels * along
        return Sample(inputs, labels, (labels > 0).long())

    def assumptions(self) -> tuple[Assumption, ...]:
        return (Assumption("margin β", self.margin, low=1e-12), Assumption("ρ − β", self.signal - self.margin, low=0.0))


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """Components N(μ_j, deviation²·I) with labels ±1 and global weights, half of them in each class."""

    means: Tensor  # (components, dim)
    component_labels: Tensor  # (components,)
    weights: Tensor  # (components,)
    deviation: float
    balanced: bool = True

    def __post_init__(self) -> None:
        if self.deviation <= 0:
            raise ValueError(f"a mixture needs a deviation above 0, not {self.deviation:g}")
        if not bool((self.component_labels.abs() == 1).all()):
            raise ValueError("the labels of a mixture's components are +1 and −1")
        positive = float(self.weights[self.component_labels > 0].sum())
        if abs(float(self.weights.sum()) - 1) > 1e-6 or bool((self.weights <= 0).any()):
            raise ValueError("the weights of a mixture are above 0 and sum to 1")
        if self.balanced and abs(positive - 0.5) > 1e-6:
            raise ValueError(f"the classes have weights {positive:.3g} and {1 - positive:.3g}, and each needs a half")

    @classmethod
    def orthogonal(cls, dim: int, components: int, norm: float, deviation: float = 1.0) -> GaussianMixture:
        """Orthogonal means with alternating labels: linearly separable, so a control only."""
        labels = torch.tensor([1.0, -1.0]).repeat((components + 1) // 2)[:components]
        return cls(norm * torch.eye(components, dim), labels, torch.full((components,), 1 / components), deviation)

    @classmethod
    def multi_xor(
        cls,
        dim: int,
        axis_weights: tuple[float, ...],
        axis_labels: tuple[float, ...],
        norm: float,
        deviation: float = 1.0,
        *,
        balanced: bool = True,
    ) -> GaussianMixture:
        """Antipodal pairs ±μ_j on orthogonal axes; both ends of an axis have its label."""
        if len(axis_weights) != len(axis_labels) or len(axis_weights) > dim:
            raise ValueError(f"{len(axis_weights)} axis weights for {len(axis_labels)} labels in {dim} dimensions")
        axes = norm * torch.eye(len(axis_weights), dim)
        means = torch.stack([axes, -axes], 1).reshape(-1, dim)
        total = sum(axis_weights)
        weights = torch.tensor([w / total / 2 for w in axis_weights]).repeat_interleave(2)
        return cls(means, torch.tensor(axis_labels).repeat_interleave(2), weights, deviation, balanced)

    @classmethod
    def xor(cls, dim: int, deviation: float) -> GaussianMixture:
        """Two axes, means of norm √dim: the label is + on the first axis and − on the second."""
        return cls.multi_xor(dim, (0.5, 0.5), (1.0, -1.0), math.sqrt(dim), deviation)

    @property
    def dim(self) -> int:
        return self.means.shape[1]

    @property
    def features(self) -> Tensor:
        """(features, dim): unit vectors along the means, antipodal pairs once."""
        unit: Tensor = self.means / self.means.norm(dim=1, keepdim=True)
        keep = [j for j in range(len(unit)) if not bool((unit[:j] @ unit[j] < -1 + 1e-6).any())]
        return unit[keep]

    @property
    def label_mean(self) -> Tensor:
        """E[yx]."""
        mean: Tensor = (self.weights * self.component_labels) @ self.means
        return mean

    def sample(self, seeds: Seeds, name: str, n: int) -> Sample:
        edges = self.weights.double().cumsum(0)[:-1].float().to(seeds.device)
        component = torch.bucketize(seeds.uniform(f"{name} components", n).float(), edges, right=True)
        inputs = seeds.normal(f"{name} noise", n, self.dim) * self.deviation
        inputs += self.means.to(inputs)[component]
        return Sample(inputs, self.component_labels.to(inputs)[component], component)

    def assumptions(self, tau: float = 8.0) -> tuple[Assumption, ...]:
        """What the theory asks of a mixture (with its unspecified constant set to the proof's 4)."""
        scaled = self.means.norm(dim=1) / math.sqrt(self.dim)
        spread = max(self.deviation, float(scaled.max()))
        unit = self.means / self.means.norm(dim=1, keepdim=True)
        overlap = (unit @ unit.T - 2 * torch.eye(len(unit))).max()
        log = math.sqrt(tau * math.log(self.dim) / self.dim)
        theta = min(1 / (2 * len(self.means)), spread / float(scaled.max()) * log)
        return (
            Assumption("components r", len(self.means), high=2 * self.dim),
            Assumption("least weight p_B", float(self.weights.min()), low=1 / (2 * self.dim)),
            Assumption("least scaled mean B_μ1", float(scaled.min()), low=4 * spread * log),
            Assumption("largest cosine of two means θ", float(overlap), high=theta),
        )


def xor_bayes_accuracy(dim: int, deviation: float) -> float:
    """1 − 2q(1 − q) with q = P[N > √d/(σ√2)]: the mixture is an exclusive or of two independent signs, those of the
    coordinates along (μ_1 ± μ_3)/√2."""
    q = 0.5 * math.erfc(math.sqrt(dim) / (2 * deviation))
    return 1 - 2 * q * (1 - q)


def mixture_of(kind: str, dim: int) -> GaussianMixture:
    """Eight components of norm √dim and noise 1: orthogonal with alternating labels, or four XOR axes."""
    if kind == "orthogonal":
        return GaussianMixture.orthogonal(dim, 8, math.sqrt(dim))
    return GaussianMixture.multi_xor(dim, (0.25,) * 4, (1.0, -1.0, 1.0, -1.0), math.sqrt(dim))
