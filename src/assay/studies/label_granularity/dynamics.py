"""What coarse and fine training do to the detectors of common and subclass features, measured step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.methods.granularity import max_readout
from assay.probes.detectors import singleton_detectors

from . import theory
from .learners import Initialisation, PatchNetwork, Residual, TheorySGD, Training, cross_entropy_residual, errors
from .problem import HierarchicalPatches, Samples

LABELS = ("coarse", "fine")


def problem_of(params: Any, **changes: Any) -> HierarchicalPatches:
    values = dict(
        dim=params.dim, patches=params.patches, subclasses=params.subclasses, feature_patches=params.feature_patches,
        jitter=params.jitter, noise=params.noise, distractors=params.distractors,
        faint=(params.faint_low, params.faint_high), strong_noise=params.strong_noise, counts=params.counts,
    )  # fmt: skip
    return HierarchicalPatches(**{**values, **changes})


def initialisation_of(params: Any, **changes: Any) -> Initialisation:
    values = dict(neurons=params.neurons, threshold=params.threshold, scale=params.scale)
    return Initialisation(**{**values, **changes})


def training_of(params: Any, problem: HierarchicalPatches, **changes: Any) -> Training:
    sgd = TheorySGD(params.rate, changes.pop("bias_rate", params.bias_rate))
    return Training(problem, changes.pop("per_subclass", params.per_subclass), sgd, **changes)


def class_count(labels: str, problem: HierarchicalPatches) -> int:
    return 2 if labels == "coarse" else 2 * problem.subclasses


def labels_of(labels: str, samples: Samples) -> Tensor:
    return samples.superclass if labels == "coarse" else samples.fine


def residual_for(labels: str, problem: HierarchicalPatches):
    """The residual of training on these labels, for ``Training.run``."""

    def make(samples: Samples) -> Residual:
        return cross_entropy_residual(labels_of(labels, samples), class_count(labels, problem))

    return make


def working_set(params: Any, labels: str) -> float:
    """Bytes that one seed touches in a step: activations and gates of all awake neurons on all patches."""
    k = params.subclasses
    patches = params.patches if params.counts == "bernoulli" else 2 * params.feature_patches
    awake = (2 * k + 2) * theory.normal_tail(params.threshold - 0.1) * params.neurons
    classes = 2 if labels == "coarse" else 2 * k
    return 8.0 * 2 * k * params.per_subclass * patches * classes * awake


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
        low, high = theory.thresholds(initialisation.threshold, problem.dim)
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

    def responses(self, network: PatchNetwork) -> tuple[Tensor, Tensor]:
        """relu(⟨w, v⟩ + b) per detector, common and subclass: (seeds,) each."""
        answers = torch.relu(network.projections(self.problem.features) + network.biases.unsqueeze(-1))
        common, subclass = own_features(answers, self.problem, self.labels)
        return _mean(common, self.common), _mean(subclass, self.subclass)

    def least_change(self, before: PatchNetwork, after: PatchNetwork) -> Tensor:
        """The change of the one detector whose response to its feature rose least, or fell most: (seeds,). NaN
        without detectors."""
        answers = [torch.relu(net.projections(self.problem.features) + net.biases.unsqueeze(-1))
                   for net in (before, after)]  # fmt: skip
        changes = own_features(answers[1] - answers[0], self.problem, self.labels)
        least = [change.masked_fill(~mask, torch.inf).flatten(1).amin(1)
                 for change, mask in zip(changes, (self.common, self.subclass), strict=True)]  # fmt: skip
        smaller = torch.minimum(*least)
        return smaller.masked_fill(smaller.isinf(), torch.nan)

    def counts(self) -> tuple[Tensor, Tensor]:
        """Detectors per class of the common feature (seeds, classes), and of each own subclass feature
        (seeds, classes, features)."""
        return self.common.sum(-1), self.subclass.sum(-2)

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


def firing_counts(network: PatchNetwork, problem: HierarchicalPatches, labels: str) -> tuple[Tensor, Tensor]:
    """Neurons that fire on each class' common feature (seeds, classes) and, in the mean over its own subclass
    features, on those (seeds, classes)."""
    fires = network.projections(problem.features) + network.biases.unsqueeze(-1) > 0
    common, subclass = own_features(fires, problem, labels)
    return common.sum(-1).double(), subclass.sum(2).double().mean(-1)


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """The mean over everything but seeds where the mask is true; NaN where nothing is."""
    kept = torch.where(mask, values, 0.0).flatten(1).double().sum(1)
    return kept / mask.flatten(1).sum(1)


def coarse_scores(network: PatchNetwork, samples: Samples, labels: str) -> Tensor:
    """Scores of the two superclasses (seeds, n, 2): the outputs, or their maximum over subclasses."""
    return superclass_scores(network.outputs(samples.patches), samples, labels)


def superclass_scores(outputs: Tensor, samples: Samples, labels: str) -> Tensor:
    if labels == "coarse":
        return outputs
    k = samples.subclasses
    return max_readout(outputs, torch.arange(2 * k, device=outputs.device) // k)


def error_report(network: PatchNetwork, easy: Samples, hard: Samples, labels: str) -> dict[str, Tensor]:
    """Errors on easy and hard samples, and with fine labels those of the fine classes as well: (seeds,) each."""
    found = {}
    for name, samples in (("easy", easy), ("hard", hard)):
        outputs = network.outputs(samples.patches)
        found[f"{name}_error"] = errors(superclass_scores(outputs, samples, labels), samples.superclass)
        if labels == "fine":
            found[f"{name}_fine_error"] = errors(outputs, samples.fine)
    return found


def rule_report(network: PatchNetwork, hard: Samples, problem: HierarchicalPatches) -> dict[str, Tensor]:
    """How often the rule for single hard samples foretells whether the coarse network errs, and how often the better
    of "always" and "never" does: (seeds,) each."""
    wrong = network.outputs(hard.patches).diff(dim=-1).squeeze(-1) * (1 - 2 * hard.superclass) >= 0
    rule = theory.hard_rule(hard, network.projections(problem.features), network.biases)
    share = wrong.double().mean(1)
    return {"rule_agreement": (rule == wrong).double().mean(1), "constant_agreement": torch.maximum(share, 1 - share)}


def own_outputs(network: PatchNetwork, easy: Samples, labels: str) -> Tensor:
    """The mean output of the right class over the easy samples of each superclass: (seeds, 2)."""
    outputs = network.outputs(easy.patches)
    own = outputs.gather(-1, labels_of(labels, easy).view(1, -1, 1).expand(len(outputs), -1, 1)).squeeze(-1)
    return torch.stack([own[:, easy.superclass == y].double().mean(1) for y in (0, 1)], 1)
