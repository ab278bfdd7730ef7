"""First gradients of each family of problems, with the features that they are to point at."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from assay.training.seeds import Seeds

from ..block_parity.problem import BlockParity
from ..multi_index.learners import LinearPart
from ..multi_index.problem import MultiIndex
from ..problem import LinearData, mixture_of
from ..theory import cosines, mixture_gradient, simplified_gradient
from ..uniform_parity.problem import UniformParity
from ..uniform_parity.theory import exact_gradient

LINEAR: dict[str, Literal["normal", "heavy tails", "low rank"]] = {
    "linear": "normal",
    "linear, heavy tails": "heavy tails",
    "linear, low rank": "low rank",
}
SAMPLED = (*LINEAR, "block parity", "polynomial")  # cases whose gradients are of a sample, as no closed form is known
PARITY = UniformParity(31, 4)


@dataclass(frozen=True)
class First:
    weights: Tensor  # (seeds, neurons, dim)
    gradients: Tensor  # (seeds, neurons, dim)
    features: Tensor  # (features, dim)
    shuffled: Tensor | None = None  # (seeds, neurons, dim): of the same samples with the labels of others
    space: bool = False  # the features are a space, and directions within it are all alike

    def nearness(self, vectors: Tensor) -> Tensor:
        """The cosine with the nearest feature, or with the space of them: (seeds, neurons)."""
        found = cosines(vectors, self.features.to(vectors))
        return found.norm(dim=-1) if self.space else found.abs().amax(-1)


def first_gradients(seeds: Seeds, case: str, sign: float, threshold: float, neurons: int) -> First:
    """Exact where there is a closed form (mixtures, uniform parity), of a sample elsewhere."""
    if case == "uniform parity":
        signs = torch.where(seeds.uniform("initial signs", neurons, PARITY.dim) < 0.5, -1.0, 1.0).to(seeds.dtype)
        return First(signs, exact_gradient(PARITY, signs), PARITY.features)
    if case in ("orthogonal", "multi-xor"):
        mixture = mixture_of(case, 100)
        weights = seeds.normal("initial weights", neurons, mixture.dim)
        level = sign * threshold * math.sqrt(mixture.dim)
        return First(
            weights, mixture_gradient(mixture, weights, torch.full_like(weights[..., 0], level)), mixture.features
        )
    problem: LinearData | BlockParity | MultiIndex
    if case in LINEAR:
        problem, n = LinearData(100, margin=0.5, kind=LINEAR[case]), 2000
        level = 8 * problem.typical_norm()
    elif case == "block parity":
        problem = BlockParity(50, 5, structured=0.25, background=0.5)
        n, level = 20_000, threshold * problem.spread
    else:
        problem, n, level = MultiIndex(50), 5000, 0.0
    sample = problem.sample(seeds, "train", n)
    if isinstance(problem, MultiIndex):
        sample = replace(sample, labels=sample.labels - LinearPart.of(sample)(sample.inputs))
    weights = seeds.normal("initial weights", neurons, problem.dim)
    levels = torch.full_like(weights[..., 0], sign * level)
    found = simplified_gradient(sample.inputs, sample.labels, weights, levels)
    others = sample.labels.gather(1, seeds.permutation("shuffled labels", n).to(sample.labels.device))
    shuffled = simplified_gradient(sample.inputs, others, weights, levels)
    return First(weights, found, problem.features, shuffled, space=isinstance(problem, MultiIndex))
