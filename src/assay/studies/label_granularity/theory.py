"""What the mathematics predicts about coarse and fine labels, with the source's names.

m neurons per class, initial weights N(0, σ0²), threshold τ in units of σ0, k subclasses, s* patches per feature of P,
step size η, bias rate ρ. |S| are numbers of detector neurons. Corrections of the source are marked. Here is what all
experiments on hierarchical patches share: the detector sets, how many members they have and how these move, and k*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.probes.detectors import singleton_detectors

from .learners import Initialisation, PatchNetwork, Report
from .problem import HierarchicalPatches


def normal_tail(x: float) -> float:
    """Q(x) = P[N(0, 1) > x], exactly. The source's tail bounds carry a factor ½ too many; its upper one is false."""
    return 0.5 * math.erfc(x / math.sqrt(2))


def thresholds(tau: float, d: int) -> tuple[float, float]:
    """(τ−, τ+) of the detector sets: c_b√(L ∓ L^{−5}) with L = log d, written with τ = c_b√L."""
    L = math.log(d)
    return tau * math.sqrt(1 - L**-6), tau * math.sqrt(1 + L**-6)


def expected_detectors(m: int, tau: float, d: int) -> float:
    """E|S*(v)| = m p1 (1 − p2)^{d−1} with p1 = Q(τ+), p2 = Q(τ−) (Proposition 1): the neurons of one class that answer
    v and no other dictionary vector."""
    low, high = thresholds(tau, d)
    return m * normal_tail(high) * (1 - normal_tail(low)) ** (d - 1)


def waking_share(tau: float, slack: float) -> float:
    """Q(τ − slack)/Q(τ) − 1: by what share the neurons that answer a feature can become more, when noise may wake those
    that missed their threshold by less than the slack. Derived from Proposition 1's tails."""
    return normal_tail(tau - slack) / normal_tail(tau) - 1


def critical_subclasses(problem: HierarchicalPatches, rho: float = 0.0) -> float:
    """k* = s*(1 − ρ)/(s†(ᾱ† − ρ)): above it the coarse network follows the distractors of hard samples. A detector that
    has grown by A has a bias of −ρA, and answers a patch of strength α with (α − ρ)A; ρ = 0 is the source's k*."""
    low, high = problem.faint
    strength = problem.distractors * ((low + high) / 2 - rho)
    return problem.feature_patches * (1 - rho) / strength if strength > 0 else math.inf


@dataclass(frozen=True)
class Detectors:
    """The singleton detectors S* of each class' own common and subclass features, as found at initialisation."""

    problem: HierarchicalPatches
    labels: str
    start: PatchNetwork
    common: Tensor  # (seeds, classes, neurons)
    subclass: Tensor  # (seeds, classes, neurons, own subclass features)

    @classmethod
    def at(
        cls, start: PatchNetwork, problem: HierarchicalPatches, labels: str, initialisation: Initialisation
    ) -> Detectors:
        low, high = thresholds(initialisation.threshold, problem.dim)
        scale = initialisation.scale
        directions = torch.eye(problem.dim, dtype=start.weights.dtype, device=start.weights.device)
        single = singleton_detectors(start.weights, directions, scale * high, scale * low)
        both = own_features(single[..., : problem.features], problem, labels)
        return cls(problem, labels, start, *both)

    def growth(self, network: PatchNetwork) -> tuple[Tensor, Tensor]:
        """How far ⟨w, v⟩ of the detectors has grown, common and subclass: (seeds,) each."""
        moved = network.projections(self.problem.features) - self.start.projections(self.problem.features)
        common, subclass = own_features(moved, self.problem, self.labels)
        return _mean(common, self.common), _mean(subclass, self.subclass)

    def balance(self, network: PatchNetwork) -> Tensor:
        """The common detectors' growth in the class where it is least, over that where it is largest: (seeds,)."""
        moved = network.projections(self.problem.features) - self.start.projections(self.problem.features)
        common, _ = own_features(moved, self.problem, self.labels)
        by_class = torch.where(self.common, common, 0.0).double().sum(-1) / self.common.sum(-1)
        return by_class.amin(1) / by_class.amax(1)

    def bias_falls(self, network: PatchNetwork) -> tuple[Tensor, Tensor]:
        """By how much the detectors' biases have fallen for each unit of growth, common and subclass: (seeds,) each."""
        fallen = self.start.biases - network.biases
        common, subclass = self.growth(network)
        return (
            _mean(fallen, self.common) / common,
            _mean(fallen.unsqueeze(-1).expand_as(self.subclass), self.subclass) / subclass,
        )

    def responses(self, network: PatchNetwork) -> tuple[Tensor, Tensor]:
        """relu(⟨w, v⟩ + b) per detector, common and subclass: (seeds,) each."""
        common, subclass = own_features(self._answers(network), self.problem, self.labels)
        return _mean(common, self.common), _mean(subclass, self.subclass)

    def report(self, network: PatchNetwork) -> Report:
        """Growth with its ratio, and responses: (seeds,) each."""
        growth, answers = self.growth(network), self.responses(network)
        return {
            "growth_common": growth[0],
            "growth_subclass": growth[1],
            "growth_ratio": growth[0] / growth[1],
            "response_common": answers[0],
            "response_subclass": answers[1],
        }

    def _answers(self, network: PatchNetwork) -> Tensor:
        return torch.relu(network.projections(self.problem.features) + network.biases.unsqueeze(-1))

    def least_change(self, before: PatchNetwork, after: PatchNetwork) -> Tensor:
        """The change of the one detector whose response to its feature rose least, or fell most: (seeds,). NaN
        without detectors."""
        changes = own_features(self._answers(after) - self._answers(before), self.problem, self.labels)
        kept = zip(changes, (self.common, self.subclass), strict=True)
        least = [change.masked_fill(~mask, torch.inf).flatten(1).amin(1) for change, mask in kept]
        smaller = torch.minimum(*least)
        return smaller.masked_fill(smaller.isinf(), torch.nan)

    def counts(self) -> tuple[Tensor, Tensor]:
        """Detectors per class of the common feature (seeds, classes), and of each own subclass feature
        (seeds, classes, features)."""
        return self.common.sum(-1), self.subclass.sum(-2)

    def deviations(self, movement: Tensor) -> tuple[Tensor, Tensor]:
        """The root mean square of an update along dictionary vectors that no data show, over the sets of common and of
        subclass detectors, whose members all get the same one: (seeds,) each."""
        sides = movement[..., self.problem.features :]
        found = []
        for masks in (self.common.unsqueeze(-1), self.subclass):
            members = masks.sum(2).unsqueeze(-1)  # (seeds, classes, own, 1)
            one = torch.einsum("scno,scnd->scod", masks.to(sides), sides) / members.clamp(min=1)
            squares = (one**2 * (members > 0)).sum((1, 2, 3))
            found.append((squares / ((members > 0).sum((1, 2, 3)) * sides.shape[-1])).sqrt())
        return found[0], found[1]

    def spread(self, movement: Tensor) -> Tensor:
        """The largest difference between the updates of two members of one detector set, relative to the largest
        update: (seeds,). Zero by the theory."""
        widest = movement.new_zeros(len(movement))
        for masks in (self.common.unsqueeze(-1), self.subclass):
            for feature in range(masks.shape[-1]):
                mask = masks[..., feature].unsqueeze(-1)
                highest = movement.masked_fill(~mask, -torch.inf).amax(2)
                lowest = movement.masked_fill(~mask, torch.inf).amin(2)
                gap = (highest - lowest).clamp(min=0).amax((1, 2))  # negative where a set is empty
                widest = torch.maximum(widest, gap)
        return widest / movement.abs().amax((1, 2, 3))


def firing(network: PatchNetwork, problem: HierarchicalPatches, labels: str) -> tuple[Tensor, Tensor]:
    """How many of each class' neurons fire on its common feature (seeds, classes), and on each of its own subclass
    features (seeds, classes, own)."""
    fires = network.projections(problem.features) + network.biases.unsqueeze(-1) > 0
    common, subclass = own_features(fires, problem, labels)
    return common.sum(-1).double(), subclass.sum(2).double()


def own_features(values: Tensor, problem: HierarchicalPatches, labels: str) -> tuple[Tensor, Tensor]:
    """Of values (seeds, classes, neurons, 2k+2) those of each class' own features: (seeds, classes, neurons) and
    (seeds, classes, neurons, own)."""
    k = problem.subclasses
    device = values.device
    if labels == "coarse":
        common = torch.arange(2, device=device)
        own = 2 + torch.arange(2 * k, device=device).view(2, k)
    else:
        common = torch.arange(2 * k, device=device) // k
        own = 2 + torch.arange(2 * k, device=device).view(2 * k, 1)
    shape = values.shape[:3]
    firsts = values.gather(-1, common.view(1, -1, 1, 1).expand(*shape, 1)).squeeze(-1)
    return firsts, values.gather(-1, own.view(1, len(own), 1, -1).expand(*shape, own.shape[1]))


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean over everything but seeds where the mask is true; NaN where nothing is."""
    kept = torch.where(mask, values, 0.0).flatten(1).double().sum(1)
    return kept / mask.flatten(1).sum(1)
