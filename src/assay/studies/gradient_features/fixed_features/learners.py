"""Heads on fixed features and exact kernels, all by ridge regression with a penalty chosen on held-out samples.

A learned hidden layer and its opponents go through the same door: features in, head out, the same grid of penalties.
Seeds are solved one by one, in double precision, so that none sees another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds

from ..problem import Sample

HELD_OUT = 0.2  # of the samples choose the penalty; the head is then fitted on all of them
PENALTIES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # times the mean of the features' variances
KERNEL_PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # times the mean of the kernel's diagonal
Features = Callable[[int, Tensor], Tensor]  # seed, (n, dim) -> (n, features)
Kernel = Callable[[Tensor, Tensor], Tensor]  # (n, dim), (k, dim) -> (n, k)


@dataclass(frozen=True)
class Fitted:
    """Outputs on the test inputs, and how they were chosen."""

    outputs: Tensor  # (seeds, k)
    penalties: Tensor  # (seeds,): the chosen ones, relative
    scores: Tensor  # (seeds,): accuracy on the held-out samples, or minus the squared error there
    norms: Tensor  # (seeds,): norm of the head with its intercept, of the function in a kernel's space


def score(outputs: Tensor, labels: Tensor, regression: bool) -> Tensor:
    """Accuracy, or minus the mean squared error, over the last axis."""
    if regression:
        return -(outputs - labels).square().mean(-1)
    return (outputs * labels > 0).double().mean(-1)


class _Ridge:
    """Normal equations of one seed; ``solve`` gives the head at a relative penalty."""

    def __init__(self, phi: Tensor, labels: Tensor) -> None:
        self.centre, self.offset = phi.mean(0), labels.mean()
        centred = (phi - self.centre).double()
        self.gram = centred.T @ centred / len(phi)
        self.moment = centred.T @ (labels - self.offset).double() / len(phi)
        self.level = float(self.gram.diagonal().mean()) or 1.0

    def solve(self, penalty: float) -> Tensor:
        shifted = self.gram.clone()
        shifted.diagonal().add_(penalty * self.level)
        factor = torch.linalg.cholesky(shifted)
        return torch.cholesky_solve(self.moment.unsqueeze(1), factor).squeeze(1)

    def predict(self, phi: Tensor, head: Tensor) -> Tensor:
        return (phi - self.centre).double() @ head + self.offset


def ridge_head(features: Features, train: Sample, test: Tensor, *, regression: bool = False) -> Fitted:
    """A linear head with an intercept on the features, which are centred and otherwise taken as they are."""
    cut = int(train.inputs.shape[1] * (1 - HELD_OUT))
    found = []
    for seed in range(len(train.inputs)):
        phi, y = features(seed, train.inputs[seed]), train.labels[seed]
        split = _Ridge(phi[:cut], y[:cut])
        tried = torch.stack([split.predict(phi[cut:], split.solve(penalty)) for penalty in PENALTIES])
        scores = score(tried, y[cut:], regression)
        best = int(scores.argmax())
        whole = _Ridge(phi, y)
        head = whole.solve(PENALTIES[best])
        outputs = whole.predict(features(seed, test[seed]), head)
        constant = float(whole.offset - whole.centre.double() @ head)
        found.append((outputs, PENALTIES[best], float(scores[best]), math.hypot(float(head.norm()), constant)))
    return _stack(found, train)


def kernel_ridge(kernels: Sequence[Kernel], train: Sample, test: Tensor, *, regression: bool = False) -> Fitted:
    """Exact kernel regression; among the kernels (widths of one family) and penalties the held-out samples choose."""
    cut = int(train.inputs.shape[1] * (1 - HELD_OUT))
    found = []
    for seed in range(len(train.inputs)):
        x, y = train.inputs[seed].double(), train.labels[seed].double()
        offset = y[:cut].mean()
        best, chosen, penalty = -math.inf, kernels[0], 0.0
        for kernel in kernels:
            gram = kernel(x, x)
            for relative in KERNEL_PENALTIES:
                dual = _dual(gram[:cut, :cut], y[:cut] - offset, relative)
                value = float(score(gram[cut:, :cut] @ dual + offset, y[cut:], regression))
                if value > best:
                    best, chosen, penalty = value, kernel, relative
        gram = chosen(x, x)
        dual = _dual(gram, y - y.mean(), penalty)
        outputs = chosen(test[seed].double(), x) @ dual + y.mean()
        found.append((outputs, penalty, best, math.sqrt(max(0.0, float(dual @ gram @ dual)))))
    return _stack(found, train)


def _dual(gram: Tensor, target: Tensor, penalty: float) -> Tensor:
    shifted = gram.clone()
    shifted.diagonal().add_(penalty * float(gram.diagonal().mean()))
    return torch.cholesky_solve(target.unsqueeze(1), torch.linalg.cholesky(shifted)).squeeze(1)


def _stack(found: list[tuple[Tensor, float, float, float]], train: Sample) -> Fitted:
    rest = [torch.tensor(column, dtype=torch.float64) for column in zip(*(row[1:] for row in found), strict=True)]
    return Fitted(torch.stack([row[0] for row in found]).to(train.labels), *rest)


def random_relu(seeds: Seeds, name: str, width: int, dim: int, threshold: float, typical: float) -> Features:
    """max(0, ⟨w, x⟩/typical − threshold·s) with standard normal w and a random sign s. ``typical`` is the norm of a
    typical input, so that thresholds are in units of the spread of ⟨w, x⟩."""
    weights = seeds.normal(name, width, dim) / typical
    signs = torch.where(seeds.uniform(f"{name} signs", width) < 0.5, -1.0, 1.0).to(weights)
    return lambda seed, x: torch.addmm(-threshold * signs[seed], x, weights[seed].T).clamp_(min=0)


def random_fourier(seeds: Seeds, name: str, width: int, dim: int, scale: float) -> Features:
    """cos(⟨w, x⟩ + phase) with frequencies of deviation 1/scale."""
    weights = seeds.normal(name, width, dim) / scale
    phases = 2 * math.pi * seeds.uniform(f"{name} phases", width)
    return lambda seed, x: torch.addmm(phases[seed], x, weights[seed].T).cos_()


def polynomial(degree: int, dim: int, shift: float = 0.0) -> Kernel:
    return lambda x, z: (shift + x @ z.T / dim) ** degree


def rbf(width: float) -> Kernel:
    return lambda x, z: torch.exp(-torch.cdist(x, z).square() / (2 * width**2))


def ntk(x: Tensor, z: Tensor) -> Tensor:
    """The tangent kernel of an infinitely wide two-layer ReLU network without thresholds, both layers trained."""
    norms = x.norm(dim=1, keepdim=True) * z.norm(dim=1).unsqueeze(0)
    angle = (x @ z.T / norms).clamp(-1, 1).acos()
    first = (math.pi - angle) / math.pi
    second = (angle.sin() + (math.pi - angle) * angle.cos()) / math.pi
    kernel: Tensor = (first * (x @ z.T) + second * norms) / 2
    return kernel


def exact_kernels(dim: int, typical: float) -> Mapping[str, Sequence[Kernel]]:
    """The opponents by name; those with a width come with several. ``typical`` is the norm of a typical input."""
    return {
        "quadratic": [polynomial(2, dim)],
        "cubic": [polynomial(3, dim, 1.0)],
        "rbf": [rbf(factor * typical) for factor in (0.5, 1.0, 2.0)],
        "ntk": [ntk],
    }
