"""The theory's network and its SGD: every class owns its neurons, and a bias falls with its neuron's movement.

F_c(X) = Σ_r Σ_p relu(⟨w_{c,r}, x_p⟩ + b_{c,r}); only the weights follow the gradient. Neurons that no training patch
can wake never move, so that a pruned network is trained in their stead, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from assay.methods.granularity import max_readout
from assay.training import Seeds

from .problem import HierarchicalPatches, Samples

LABELS = ("coarse", "fine")
Report = dict[str, Any]  # what was measured, (seeds,) each, by the names under which it is recorded
SILENT = -1.0  # the bias of neurons that only fill up a class: they never fire


@dataclass(frozen=True)
class PatchNetwork:
    """Weights (seeds, classes, neurons, dim), biases (seeds, classes, neurons)."""

    weights: Tensor
    biases: Tensor

    def preactivations(self, patches: Tensor) -> Tensor:
        """(seeds, n, patches, dim) -> (seeds, n·patches, classes·neurons)."""
        bias = self.biases.flatten(1).unsqueeze(1)
        return torch.baddbmm(bias, patches.flatten(1, 2), self.weights.flatten(1, 2).mT)

    def pooled(self, preactivations: Tensor, patches: int) -> Tensor:
        """Outputs (seeds, n, classes) from preactivations: the sum over a class' neurons and a sample's patches."""
        seeds, classes, neurons = self.biases.shape
        active = torch.relu(preactivations).view(seeds, -1, patches, classes, neurons)
        return active.sum((2, 4))

    def outputs(self, patches: Tensor, rows: int = 256) -> Tensor:
        """(seeds, n, classes), some samples at a time."""
        parts = [self.pooled(self.preactivations(part), part.shape[2]) for part in torch.split(patches, rows, dim=1)]
        return torch.cat(parts, 1)

    def projections(self, features: int) -> Tensor:
        """⟨w, v⟩ on the first dictionary vectors of the standard basis: (seeds, classes, neurons, features)."""
        return self.weights[..., :features]


@dataclass(frozen=True)
class Start:
    """An initial network: ``network`` holds the neurons that can move, ``rest`` the others (None when kept in)."""

    network: PatchNetwork
    rest: PatchNetwork | None = None


@dataclass(frozen=True)
class Initialisation:
    """w ~ N(0, σ0² I), b = −σ0 τ. ``prune`` keeps the neurons with max_v ⟨w, v⟩ ≥ σ0(τ − slack) over the ``features``
    that occur in data; ``keep_rest`` hands out the others as well. The default slack is what strengths up to √(1 + ι)
    and four deviations of the noise can add."""

    neurons: int
    threshold: float = 3.0
    scale: float = 1e-4
    prune: bool = True
    slack: float | None = None
    keep_rest: bool = False

    def __post_init__(self) -> None:
        if self.neurons < 1 or self.scale <= 0 or (self.slack is not None and self.slack < 0):
            raise ValueError("neurons and scale must be positive, and slack not negative")

    def slack_for(self, problem: HierarchicalPatches) -> float:
        if self.slack is not None:
            return self.slack
        stronger = self.threshold * (math.sqrt(1 + problem.jitter) - 1)
        return stronger + 4 * problem.noise * math.sqrt(problem.dim)

    def draw(self, seeds: Seeds, classes: int, problem: HierarchicalPatches) -> Start:
        bias = -self.scale * self.threshold
        least = self.scale * (self.threshold - self.slack_for(problem))
        kept: list[list[Tensor]] = [[] for _ in seeds]
        rest: list[list[Tensor]] = [[] for _ in seeds]
        for c in range(classes):
            weights = self.scale * seeds.normal(f"initial weights of class {c}", self.neurons, problem.dim)
            awake = weights[..., : problem.features].amax(-1) >= least
            if not self.prune:
                awake = torch.ones_like(awake)
            for i in range(len(seeds)):
                kept[i].append(weights[i, awake[i]])
                if self.keep_rest:
                    rest[i].append(weights[i, ~awake[i]])
        return Start(_packed(kept, bias), _packed(rest, bias) if self.keep_rest else None)


def _packed(parts: list[list[Tensor]], bias: float) -> PatchNetwork:
    """Classes of unequal size, filled up with silent neurons."""
    width = max(1, *(len(part) for seed in parts for part in seed))
    like = parts[0][0]
    weights = like.new_zeros(len(parts), len(parts[0]), width, like.shape[-1])
    biases = like.new_full(weights.shape[:-1], SILENT)
    for i, seed in enumerate(parts):
        for c, part in enumerate(seed):
            weights[i, c, : len(part)] = part
            biases[i, c, : len(part)] = bias
    return PatchNetwork(weights, biases)


@dataclass(frozen=True)
class Update:
    """One step: the network after it, its movement, and the outputs (seeds, n, classes) before it."""

    network: PatchNetwork
    movement: Tensor
    outputs: Tensor


Residual = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class TheorySGD:
    """W += η/(NP) Σ_n G[n, c] Σ_p 1{fires} x_p and b −= ρ‖ΔW‖, with G = 1{label} − softmax(F).

    The loss is printed as a sum over samples; the update, which is followed here, is the mean's with rate η/P.
    Hard samples are for testing, unless ``allow_hard`` admits them.
    """

    rate: float = 0.05
    bias_rate: float = 0.05
    allow_hard: bool = False

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.bias_rate < 0:
            raise ValueError(f"the rate must be positive and the bias rate ρ ≥ 0, not {self.rate}, {self.bias_rate}")

    def step(self, network: PatchNetwork, samples: Samples, residual: Residual, patches: int) -> Update:
        """``residual`` turns outputs into G (seeds, n, classes); ``patches`` is P, silent patches included."""
        if samples.hard and not self.allow_hard:
            raise ValueError("hard samples are for testing: training on them must be allowed explicitly")
        inputs = samples.patches
        seeds, classes, neurons = network.biases.shape
        z = network.preactivations(inputs)
        outputs = network.pooled(z, inputs.shape[2])
        gates = (z > 0).to(z.dtype).view(seeds, len(samples), -1, classes, neurons)
        gates.mul_(residual(outputs)[:, :, None, :, None])
        moved = gates.flatten(3).flatten(1, 2).mT @ inputs.flatten(1, 2)
        moved = moved.view_as(network.weights) * (self.rate / (len(samples) * patches))
        length = torch.linalg.vector_norm(moved, dim=-1)
        after = PatchNetwork(network.weights + moved, network.biases - self.bias_rate * length)
        return Update(after, moved, outputs)


def cross_entropy_residual(labels: Tensor, classes: int) -> Residual:
    """1{label = c} − softmax(F)_c for labels (n,) or (seeds, n)."""

    def residual(outputs: Tensor) -> Tensor:
        targets = one_hot(labels, classes).to(outputs)
        return targets - outputs.softmax(-1)

    return residual


def class_count(labels: str, problem: HierarchicalPatches) -> int:
    return 2 if labels == "coarse" else 2 * problem.subclasses


def labels_of(labels: str, samples: Samples) -> Tensor:
    return samples.superclass if labels == "coarse" else samples.fine


def residual_for(labels: str, problem: HierarchicalPatches) -> Callable[[Samples], Residual]:
    """The residual of training on these labels, for ``Training.run``."""

    def make(samples: Samples) -> Residual:
        return cross_entropy_residual(labels_of(labels, samples), class_count(labels, problem))

    return make


@dataclass(frozen=True)
class Training:
    """Online training: a fresh balanced batch of easy samples per step, or always the same one (``finite``)."""

    problem: HierarchicalPatches
    per_subclass: int = 4
    sgd: TheorySGD = field(default_factory=TheorySGD)
    finite: bool = False

    def batch(self, seeds: Seeds, step: int) -> Samples:
        name = "training set" if self.finite else f"training batch {step}"
        compact = self.problem.counts == "exact"
        return self.problem.sample(seeds, name, self.per_subclass, compact=compact)

    def run(
        self,
        network: PatchNetwork,
        seeds: Seeds,
        steps: int,
        residual_of: Callable[[Samples], Residual],
        first: int = 0,
    ) -> Iterator[tuple[int, Samples, Update]]:
        """Yields (updates done, batch, update) after every step; ``first`` numbers the first batch."""
        samples = self.batch(seeds, first)
        for step in range(first, first + steps):
            if step > first and not self.finite:
                samples = self.batch(seeds, step)
            update = self.sgd.step(network, samples, residual_of(samples), self.problem.patches)
            network = update.network
            yield step + 1, samples, update


def superclass_of(subclasses: int, device: str | torch.device = "cpu") -> Tensor:
    """The superclass of each fine class: (2k,)."""
    return torch.arange(2 * subclasses, device=device) // subclasses


def errors(scores: Tensor, labels: Tensor) -> Tensor:
    """The share of samples whose own class is not strictly above all others: ties count as errors. (seeds,)"""
    own = scores.gather(-1, labels.expand(scores.shape[:-1]).unsqueeze(-1)).squeeze(-1)
    others = scores.scatter(-1, labels.expand(scores.shape[:-1]).unsqueeze(-1), float("-inf")).amax(-1)
    return (own <= others).to(scores).mean(-1)


def superclass_scores(outputs: Tensor, samples: Samples, labels: str) -> Tensor:
    """Scores of the two superclasses (seeds, n, 2): the outputs, or their maximum over subclasses."""
    if labels == "coarse":
        return outputs
    return max_readout(outputs, superclass_of(samples.subclasses, outputs.device))


def error_report(network: PatchNetwork, easy: Samples, hard: Samples, labels: str) -> Report:
    """Errors on easy and hard samples, and with fine labels those of the fine classes as well: (seeds,) each."""
    found = {}
    for name, samples in (("easy", easy), ("hard", hard)):
        outputs = network.outputs(samples.patches)
        found[f"{name}_error"] = errors(superclass_scores(outputs, samples, labels), samples.superclass)
        if labels == "fine":
            found[f"{name}_fine_error"] = errors(outputs, samples.fine)
    return found


def looks(steps: int) -> set[int]:
    """The steps at which a run is looked at: dense at first, then every tenth."""
    return {*range(1, 11), *range(10, steps + 1, 10), steps} & set(range(steps + 1))
