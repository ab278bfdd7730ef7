"""Algorithm C: sign weights, a ladder of thresholds, one gradient step, then a head."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.training.seeds import Seeds
from assay.training.two_layer import TwoLayer

from ..learners import first_step, mirrored
from ..theory import simplified_gradient
from .problem import UniformParity
from .theory import majority_coefficient


def sign_start(seeds: Seeds, problem: UniformParity, neurons: int, *, constant: bool = True) -> TwoLayer:
    """Weights and outputs of signs, thresholds uniform in {−1 + 1/k, …, 1 − 1/k}. Without ``constant`` neurons whose
    signs agree on all of A get their first sign turned."""
    k = problem.size
    weights = torch.where(seeds.uniform("initial weights", neurons, problem.dim) < 0.5, -1.0, 1.0).to(seeds.dtype)
    if not constant:
        agree = weights[..., :k].sum(-1).abs() == k
        weights[..., 0] = torch.where(agree, -weights[..., 0], weights[..., 0])
    ladder = torch.arange(1, 2 * k, device=seeds.device) / k - 1
    rungs = (seeds.uniform("initial thresholds", neurons) * (2 * k - 1)).long().clamp(max=2 * k - 2)
    outputs = torch.where(seeds.uniform("initial outputs", neurons) < 0.5, -1.0, 1.0).to(seeds.dtype)
    return mirrored(weights, ladder.to(seeds.dtype)[rungs], outputs)


def one_threshold_start(
    seeds: Seeds, problem: UniformParity, neurons: int, threshold: float, *, normal: bool = True
) -> TwoLayer:
    """The other start: sign weights, thresholds ±b̃ of one size below 1, and standard normal outputs, whose spread is
    all that spreads the switches after the step. Without ``normal`` outputs are signs, and the switches coincide."""
    if not 0 < threshold < 1:
        raise ValueError(f"the closed form is for thresholds between 0 and 1, and {threshold:g} is none")
    weights = torch.where(seeds.uniform("initial weights", neurons, problem.dim) < 0.5, -1.0, 1.0).to(seeds.dtype)
    outputs = seeds.normal("initial outputs", neurons)
    return mirrored(weights, torch.full_like(outputs, threshold), outputs if normal else outputs.sign())


def parity_step(start: TwoLayer, gradients: Tensor, problem: UniformParity) -> TwoLayer:
    """The step with rate 2/(k|ξ_{k−1}|), after which weights on A are ±1/k and ⟨w, x⟩ lies on the ladder. (The printed
    rate lacks the 2, as the printed gradient lacks its ½.)"""
    rate = 2 / (problem.size * abs(majority_coefficient(problem.size - 1, problem.dim)))
    return first_step(start, gradients, torch.full_like(start.output[:, 0], rate))


def streamed_gradients(seeds: Seeds, problem: UniformParity, start: TwoLayer, samples: int) -> Tensor:
    """G̃ of all 4m neurons over many samples, drawn in pieces. Their E[yx] is that of the samples."""
    m = start.output.shape[1] // 4
    weights, thresholds = start.weights[:, :m], -start.biases[:, :m]
    total, mean = torch.zeros_like(weights), torch.zeros_like(weights[:, :1])
    for sample in problem.stream(seeds, "gradient", samples):
        share = sample.inputs.shape[1] / samples
        total += share * simplified_gradient(sample.inputs, sample.labels, weights, thresholds)
        mean += share * (sample.labels.unsqueeze(-1) * sample.inputs).mean(1, keepdim=True)
    return torch.cat([total, mean - total], 1).repeat(1, 2, 1)
