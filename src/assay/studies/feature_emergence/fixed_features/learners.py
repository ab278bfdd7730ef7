"""The linearised network (NTK), and where random features point."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from assay.probes.directions import cosines
from assay.training.seeds import Seeds
from assay.training.two_layer import Linearised, TwoLayer, take

from ..learners import PLAIN, Fit, Predictor, detached
from ..problem import PatternProblem


def train_linearised(
    start: TwoLayer, inputs: Tensor, labels: Tensor, fit: Fit, seeds: Seeds
) -> Iterator[tuple[int, Predictor]]:
    """The NTK comparator: the model linearised at the same initialisation, all of its parameters trained."""
    model = Linearised.at(start)
    for part in (model.moves.weights, model.moves.biases, model.moves.output):
        part.requires_grad_(True)
    current = replace(model, moves=detached(model.moves))

    def gradients(index: Tensor) -> TwoLayer:
        return current.gradients(*take(inputs, labels, index), PLAIN)

    for step in fit.descend(model.moves, gradients, inputs.shape[1], seeds):
        yield step, lambda x: current(x, PLAIN)


def ambient_cosines(start: TwoLayer, problem: PatternProblem, seeds: Seeds) -> Tensor:
    """Cosines (seeds, neurons) of initial weights with the relevant patterns' sum in the input space. Weights in the
    pattern basis lack what a Gaussian vector has beside the patterns, which only its length knows of."""
    found = cosines(start.weights, problem.truth(seeds))[..., 0]
    beside = problem.dim - problem.features
    if not beside:
        return found
    half, sigma_w = start.weights.shape[1] // 2, 1 / problem.relevant
    rest = seeds.normal("initial weights beside the patterns", half, beside).square().sum(-1) * sigma_w**2
    inside = start.weights.square().sum(-1)
    return found * (inside / (inside + torch.cat([rest, rest], 1))).sqrt()
