"""The network of the theory, its first step, and the ways to go on from there (algorithms A and B).

Networks are ``TwoLayer``s over all seeds at once. A neuron's threshold is b = −bias.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from assay.training.seeds import Seeds
from assay.training.two_layer import Activation, TwoLayer, hinge_gradients

from .problem import Sample
from .theory import simplified_gradient

RELU = Activation(lambda z: z.clamp(min=0), lambda z: (z > 0).to(z.dtype))


def mirrored(weights: Tensor, thresholds: Tensor, outputs: Tensor) -> TwoLayer:
    """A network with output 0 on every input out of m neurons (w, b, a): these, (−w, −b, −a), and both once more with
    the opposite sign of a. It has 4m neurons."""
    twice = torch.cat([outputs, -outputs], 1)
    w, b = torch.cat([weights, -weights], 1), torch.cat([thresholds, -thresholds], 1)
    return TwoLayer(torch.cat([w, w], 1), -torch.cat([b, b], 1), torch.cat([twice, -twice], 1))


def symmetric_start(seeds: Seeds, neurons: int, dim: int, threshold: float) -> TwoLayer:
    """Weights N(0, 1/dim), standard normal outputs and one threshold ±b̃, given for standard normal weights and scaled
    along: first gradients depend on their quotient alone, and inputs of norm √dim give activations of order 1."""
    if threshold <= 0:
        raise ValueError(f"the initial threshold must be above 0, not {threshold:g}")
    weights = seeds.normal("initial weights", neurons, dim) / math.sqrt(dim)
    outputs = seeds.normal("initial outputs", neurons)
    return mirrored(weights, torch.full_like(outputs, threshold / math.sqrt(dim)), outputs)


def sampled_gradients(start: TwoLayer, sample: Sample) -> Tensor:
    """G̃ of all 4m neurons over a sample: (seeds, 4m, dim)."""
    mean = (sample.labels.unsqueeze(-1) * sample.inputs).mean(1, keepdim=True)
    return unmirrored(start, lambda w, b: simplified_gradient(sample.inputs, sample.labels, w, b), mean)


def unmirrored(start: TwoLayer, gradient: Callable[[Tensor, Tensor], Tensor], label_mean: Tensor) -> Tensor:
    """G of all 4m neurons from that of the first m, by G(−w, −b) = E[yx] − G(w, b): (seeds, 4m, dim)."""
    m = start.output.shape[1] // 4
    first = gradient(start.weights[:, :m], -start.biases[:, :m])
    return torch.cat([first, label_mean.to(first).expand_as(first) - first], 1).repeat(1, 2, 1)


def first_step(start: TwoLayer, gradients: Tensor, rate: Tensor, head: Tensor | None = None) -> TwoLayer:
    """One step on the hinge loss with weight decay 1/rate: the start is forgotten, w_i = rate·a_i·G_i stays. ``head``
    is E[y·neuron(x)], the same for the outputs; without it they are 0, the limit of many small outputs."""
    weights = rate[:, None, None] * start.output.unsqueeze(-1) * gradients
    output = torch.zeros_like(start.output) if head is None else rate[:, None] * head
    return TwoLayer(weights, start.biases, output)


def knot_rate(start: TwoLayer, gradients: Tensor, knot: float) -> Tensor:
    """The rate (seeds,) after which the median neuron switches on at ⟨w/‖w‖, x⟩ = ±knot. The spread of the initial
    outputs spreads the switches around it."""
    slopes = start.output.abs() * gradients.norm(dim=-1)
    alive = torch.where(slopes > 0, start.biases.abs() / slopes, torch.inf)
    return alive.median(dim=1).values / knot


def stepped(start: TwoLayer, gradients: Tensor, knot: float) -> TwoLayer:
    """The network after the practical first step, its switches spread around ``knot``."""
    return first_step(start, gradients, knot_rate(start, gradients, knot))


def train_both(
    net: TwoLayer, batch: Callable[[int], Sample], rate: float, steps: int
) -> Iterator[tuple[int, TwoLayer]]:
    """Algorithm A from step 2 on: plain gradient descent on both layers over fresh batches, thresholds fixed. Yields
    the network before each step and at the end."""
    net = net.clone()
    for step in range(1, steps + 1):
        yield step - 1, net
        sample = batch(step)
        slopes = hinge_gradients(net, sample.inputs, sample.labels, RELU)
        net = TwoLayer(net.weights - rate * slopes.weights, net.biases, net.output - rate * slopes.output)
    yield steps, net


def hidden_layer(net: TwoLayer) -> Callable[[int, Tensor], Tensor]:
    """The hidden layer of one seed as fixed features, (n, dim) -> (n, neurons), for a head of algorithm B."""
    return lambda seed, inputs: torch.addmm(net.biases[seed], inputs, net.weights[seed].T).clamp_(min=0)


def hinge_loss(net: TwoLayer, sample: Sample) -> Tensor:
    """(seeds,)."""
    return (1 - sample.labels * net(sample.inputs, RELU)).clamp(min=0).mean(1)


def errors(net: TwoLayer, sample: Sample) -> Tensor:
    """Share of wrong signs (seeds,); an output of 0 is wrong, and NaN where an output is not finite."""
    outputs = net(sample.inputs, RELU)
    return wrong(outputs, sample.labels)


def wrong(outputs: Tensor, labels: Tensor) -> Tensor:
    """Share of outputs without the label's sign (seeds,); 0 is wrong, and NaN where an output is not finite."""
    known = torch.where(outputs.isfinite().all(1), 1.0, math.nan).double()
    return (outputs * labels <= 0).double().mean(1) * known
