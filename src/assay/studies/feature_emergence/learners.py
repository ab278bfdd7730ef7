"""What the network and those beside it share: two erase-and-step stages, training, and heads on frozen features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from assay.training.seeds import Seeds
from assay.training.two_layer import Activation, TwoLayer, descend, hinge_gradients, hinge_residual, take

from .theory import first_step_size, initial_scales, smoothed, smoothed_slope, truncated_relu

PLAIN = Activation(truncated_relu, lambda z: smoothed_slope(z, 0.0))
Predictor = Callable[[Tensor], Tensor]


def smooth(s: float) -> Activation:
    """The truncated ReLU averaged over Gaussian noise of size s inside the network."""
    return Activation(lambda z: smoothed(z, s), lambda z: smoothed_slope(z, s))


@dataclass(frozen=True)
class Stages:
    """The constants of the first two steps. ``gamma`` and ``scale`` are the structured problem's, also for runs
    without structure, where γ = 0 would leave the initial scales undefined."""

    relevant: int
    half_width: int  # m: the network has 2m neurons
    gamma: float
    scale: float
    forget: float = 1.0  # share of the old weights erased in step one; the theory's value is 1
    rarest: float = 1.0  # p_min: the rarer class's share where classes are imbalanced, else 1

    def __post_init__(self) -> None:
        if not 0 <= self.forget <= 1:
            raise ValueError(f"forget = {self.forget} is not a share")

    @property
    def smoothing(self) -> float:
        return float(self.relevant**-1.5)

    @property
    def first_rate(self) -> float:
        return first_step_size(self.relevant, self.half_width, self.gamma, self.scale, self.rarest)


def initialise(seeds: Seeds, stages: Stages, features: int) -> TwoLayer:
    """Mirrored initialisation: neurons m+1..2m repeat the first m with opposite output weights, so that g ≡ 0."""
    sigma_w, sigma_b, sigma_a = initial_scales(stages.relevant, stages.gamma, stages.scale)
    weights = seeds.normal("initial weights", stages.half_width, features) * sigma_w
    biases = seeds.normal("initial biases", stages.half_width) * sigma_b
    output = seeds.normal("initial outputs", stages.half_width) * sigma_a
    return TwoLayer(torch.cat([weights] * 2, 1), torch.cat([biases] * 2, 1), torch.cat([output, -output], 1))


def class_weights(labels: Tensor) -> Tensor:
    """α_y = 1/(2 Pr[y]) per sample, from each seed's own class shares: (seeds, n)."""
    positive = (labels > 0).to(labels.dtype).mean(1, keepdim=True)
    return torch.where(labels > 0, 0.5 / positive, 0.5 / (1 - positive))


def first_step(net: TwoLayer, gradient: TwoLayer, stages: Stages) -> TwoLayer:
    """Step one, by direct assignment: subtracting a weight from itself in floating point would leave a residue far
    larger than the gradient's signal of order η⁽¹⁾."""
    rate = stages.first_rate
    kept = (1 - stages.forget) * net.weights if stages.forget < 1 else 0.0
    return TwoLayer(
        kept - rate * gradient.weights, net.biases - rate * gradient.biases, net.output - rate * gradient.output
    )


def second_step(net: TwoLayer, gradient: TwoLayer) -> TwoLayer:
    """Step two at η = 1 and λ = 1/2: both layers become their negative gradients, the biases move."""
    return TwoLayer(-gradient.weights, net.biases - gradient.biases, -gradient.output)


def emerge(net: TwoLayer, inputs: Tensor, labels: Tensor, stages: Stages) -> tuple[TwoLayer, TwoLayer]:
    """The network after one and after two full-batch steps, classes weighted to balance."""
    activation, weights = smooth(stages.smoothing), class_weights(labels)
    one = first_step(net, hinge_gradients(net, inputs, labels, activation, weights), stages)
    two = second_step(one, hinge_gradients(one, inputs, labels, activation, weights))
    return one, two


@dataclass(frozen=True)
class Fit:
    """How a method is trained after its features are set: Adam (or SGD) for ``steps`` batches."""

    steps: int
    batch: int
    output_rate: float
    weight_rate: float = 0.0
    optimizer: str = "adam"
    every: int = 25
    early: tuple[int, ...] = ()  # further steps to look at
    cool: bool = False  # let the rate fall linearly to a hundredth over the run
    decay: float = 0.0  # λ of the regulariser λ(a² + ‖w‖²); biases are never decayed

    def make(self, parameters: TwoLayer) -> torch.optim.Optimizer:
        groups = [{"params": [parameters.output], "lr": self.output_rate, "weight_decay": 2 * self.decay}]
        if self.weight_rate:
            groups.append({"params": [parameters.weights], "lr": self.weight_rate, "weight_decay": 2 * self.decay})
            groups.append({"params": [parameters.biases], "lr": self.weight_rate})
        if self.optimizer == "adam":
            return torch.optim.Adam(groups)
        if self.optimizer == "sgd":
            return torch.optim.SGD(groups)
        raise ValueError(f"unknown optimizer '{self.optimizer}' (allowed: adam, sgd)")

    def anneal(self, step: int) -> float:
        return 1 - 0.99 * (step - 1) / max(1, self.steps - 1) if self.cool else 1.0

    def descend(
        self, parameters: TwoLayer, gradients: Callable[[Tensor], TwoLayer], n: int, seeds: Seeds
    ) -> Iterator[int]:
        """Train the parameters that are trainable on batches of n samples; yields at the steps to look at."""
        batches = seeds.batches("batches", n, self.batch, self.steps)
        optimizer = self.make(parameters)
        yield from descend(
            parameters, gradients, batches, optimizer, every=self.every, early=self.early, anneal=self.anneal
        )


@dataclass(frozen=True)
class Head:
    """A trained linear head (seeds, neurons) on frozen features."""

    features: Callable[[Tensor], Tensor]
    weights: Tensor

    def __call__(self, inputs: Tensor) -> Tensor:
        return (self.features(inputs) @ self.weights.unsqueeze(-1)).squeeze(-1)


def train_head(
    features: Callable[[Tensor], Tensor], inputs: Tensor, labels: Tensor, fit: Fit, seeds: Seeds
) -> Iterator[tuple[int, Head]]:
    """A linear head without bias on frozen features (seeds, n, neurons), by hinge loss from zero."""
    fixed = torch.cat([features(inputs[:, start : start + 4000]) for start in range(0, inputs.shape[1], 4000)], 1)
    head = torch.zeros(len(inputs), fixed.shape[2], device=inputs.device, dtype=inputs.dtype)
    empty = head.new_zeros(0)
    model = TwoLayer(empty, empty, head.requires_grad_(True))
    fit = replace(fit, weight_rate=0.0)

    def gradients(index: Tensor) -> TwoLayer:
        x, y = take(fixed, labels, index)
        outputs = (x @ head.detach().unsqueeze(-1)).squeeze(-1)
        return TwoLayer(empty, empty, -(x.mT @ hinge_residual(y, outputs).unsqueeze(-1)).squeeze(-1))

    for step in fit.descend(model, gradients, inputs.shape[1], seeds):
        yield step, Head(features, head.detach())


def features_of(
    net: TwoLayer, head: str = "raw", *, like: TwoLayer | None = None, inputs: Tensor | None = None
) -> Predictor:
    """Frozen features σ(⟨w, x⟩ + b): ``raw``; ``rescaled`` gives each neuron the norm it has in ``like``;
    ``standardised`` centres and scales each feature by its statistics on ``inputs``."""
    if head == "rescaled":
        if like is None:
            raise ValueError("rescaled features need the network whose norms they take")
        norms = like.weights.norm(dim=-1, keepdim=True) / net.weights.norm(dim=-1, keepdim=True)
        net = replace(net, weights=net.weights * norms)
    elif head not in ("raw", "standardised"):
        raise ValueError(f"unknown head '{head}' (allowed: raw, rescaled, standardised)")

    def raw(x: Tensor) -> Tensor:
        return truncated_relu(net.preactivation(x))

    if head != "standardised":
        return raw
    if inputs is None:
        raise ValueError("standardised features need the inputs that they are standardised on")
    sample = raw(inputs).double()
    mean, deviation = sample.mean(1, keepdim=True), sample.std(1, keepdim=True)
    # A feature that is constant up to rounding carries nothing; leaving it unscaled keeps it from exploding.
    scale = torch.where(deviation > 1e-30, deviation, torch.ones_like(deviation))
    return lambda x: ((raw(x).double() - mean) / scale).to(x.dtype)


@torch.no_grad()
def recalls(predict: Predictor, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The shares of the positive and of the negative inputs that are labelled right, per seed; an output of 0 counts
    as −1, and a seed with an output that is not finite has none (NaN)."""
    starts = range(0, inputs.shape[1], 4000)  # the intermediate arrays stay within the cache
    outputs = torch.cat([predict(inputs[:, start : start + 4000]) for start in starts], 1)
    known = torch.where(outputs.isfinite().all(1), 1.0, torch.nan).double()
    positive = labels > 0
    shares = [
        (hit & part).sum(1).double() / part.sum(1) for hit, part in ((outputs > 0, positive), (outputs <= 0, ~positive))
    ]
    return shares[0] * known, shares[1] * known


def detached(net: TwoLayer) -> TwoLayer:
    return TwoLayer(net.weights.detach(), net.biases.detach(), net.output.detach())
