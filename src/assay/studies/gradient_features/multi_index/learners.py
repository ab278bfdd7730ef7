"""Algorithm D: subtract mean and linear part, one gradient step on the rest, redraw thresholds, fit a head."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from assay.training.seeds import Seeds
from assay.training.two_layer import TwoLayer

from ..fixed_features.learners import Features, ridge_head
from ..learners import hidden_layer
from ..problem import Sample
from ..theory import simplified_gradient


@dataclass(frozen=True)
class LinearPart:
    """ρ + ⟨β, x⟩ with ρ = mean y and β = mean yx."""

    mean: Tensor  # (seeds, 1)
    slope: Tensor  # (seeds, dim)

    @classmethod
    def of(cls, sample: Sample) -> LinearPart:
        mean = sample.labels.mean(1, keepdim=True)
        return cls(mean, (sample.labels.unsqueeze(-1) * sample.inputs).mean(1))

    def __call__(self, inputs: Tensor) -> Tensor:
        return self.mean + (inputs @ self.slope.unsqueeze(-1)).squeeze(-1)


def stepped_directions(seeds: Seeds, residual: Sample, neurons: int) -> Tensor:
    """Weights after one step on the squared error with weight decay 1/rate, outputs ±1 and thresholds 0 before it, at
    the rate that gives the median weight norm 1: (seeds, neurons, dim)."""
    dim = residual.inputs.shape[-1]
    start = seeds.normal("initial weights", neurons, dim)
    signs = torch.where(seeds.uniform("initial outputs", neurons) < 0.5, -1.0, 1.0).to(start)
    found = simplified_gradient(residual.inputs, residual.labels, start, torch.zeros_like(signs))
    found = found * signs.unsqueeze(-1)
    scaled: Tensor = found / found.norm(dim=-1).median(1).values[:, None, None]
    return scaled


def redrawn(seeds: Seeds, directions: Tensor) -> TwoLayer:
    """A network of the directions and their opposites with fresh standard normal thresholds."""
    weights = torch.cat([directions, -directions], 1)
    thresholds = seeds.normal("redrawn thresholds", weights.shape[1])
    return TwoLayer(weights, thresholds, torch.zeros_like(thresholds))


def squared_error(features: Features, train: Sample, test: Sample) -> Tensor:
    """Test error (seeds,) of a ridge head on the residual, the linear part added back."""
    linear = LinearPart.of(train)
    residual = replace(train, labels=train.labels - linear(train.inputs))
    fitted = ridge_head(features, residual, test.inputs, regression=True)
    return (fitted.outputs + linear(test.inputs) - test.labels).square().mean(1)


def learned_features(seeds: Seeds, train: Sample, neurons: int) -> tuple[Features, Tensor]:
    """The features after the step, and the directions that it took."""
    linear = LinearPart.of(train)
    residual = replace(train, labels=train.labels - linear(train.inputs))
    directions = stepped_directions(seeds, residual, neurons)
    return hidden_layer(redrawn(seeds, directions)), directions
