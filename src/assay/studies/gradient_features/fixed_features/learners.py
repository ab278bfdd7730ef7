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
from assay.training.two_layer import TwoLayer

from ..learners import RELU, train_both
from ..problem import Sample

HELD_OUT = 0.2  # of the samples choose the penalty; the head is then fitted on all of them
# Ten to a power, times the mean of the features' variances or of the kernel's diagonal. Both grids reach so far up that
# the strongest shrinks every head to its intercept.
PENALTIES = tuple(10.0**power for power in range(-7, 5))
KERNEL_PENALTIES = tuple(10.0**power for power in range(-5, 6))
RBF_WIDTHS = (0.5, 1.0, 2.0, 4.0)  # times the norm of a typical input; wider ones come to the linear kernel
Features = Callable[[int, Tensor], Tensor]  # seed, (n, dim) -> (n, features)
Kernel = Callable[[Tensor, Tensor], Tensor]  # (n, dim), (k, dim) -> (n, k)


@dataclass(frozen=True)
class Fitted:
    """Outputs on the test inputs, and how they were chosen."""

    outputs: Tensor  # (seeds, k)
    penalties: Tensor  # (seeds,): the chosen ones, relative
    scores: Tensor  # (seeds,): accuracy on the held-out samples, or minus the squared error there
    norms: Tensor  # (seeds,): norm of the head with its intercept, of the function in a kernel's space
    edges: Tensor  # (seeds,): 1 where the best penalty is the first or last of its grid, and better than all others


def score(outputs: Tensor, labels: Tensor, regression: bool) -> Tensor:
    """Accuracy, or minus the mean squared error, over the last axis."""
    if regression:
        return -(outputs - labels).square().mean(-1)
    return (outputs * labels > 0).double().mean(-1)


@dataclass(frozen=True)
class _Moments:
    """Sums over samples, of features and labels from which a constant was taken; those of two sets add up."""

    count: int
    features: Tensor  # (features,)
    products: Tensor  # (features, features)
    labels: Tensor
    both: Tensor  # (features,)

    @classmethod
    def of(cls, phi: Tensor, labels: Tensor) -> _Moments:
        return cls(len(phi), phi.sum(0), phi.T @ phi, labels.sum(), phi.T @ labels)

    def __add__(self, other: _Moments) -> _Moments:
        return _Moments(
            self.count + other.count,
            self.features + other.features,
            self.products + other.products,
            self.labels + other.labels,
            self.both + other.both,
        )


class _Ridge:
    """Normal equations of one seed; ``solve`` gives the head at a relative penalty."""

    def __init__(self, sums: _Moments) -> None:
        self.centre, self.offset = sums.features / sums.count, sums.labels / sums.count
        self.gram = (sums.products - torch.outer(sums.features, self.centre)) / sums.count
        self.moment = (sums.both - sums.labels * self.centre) / sums.count
        self.level = float(self.gram.diagonal().mean()) or 1.0

    def solve(self, penalty: float) -> Tensor:
        shifted = self.gram.clone()
        shifted.diagonal().add_(penalty * self.level)
        factor = torch.linalg.cholesky(shifted)
        return torch.cholesky_solve(self.moment.unsqueeze(1), factor).squeeze(1)

    def predict(self, phi: Tensor, head: Tensor) -> Tensor:
        return (phi - self.centre) @ head + self.offset


def ridge_head(features: Features, train: Sample, test: Tensor, *, regression: bool = False) -> Fitted:
    """A linear head with an intercept on the features, which are centred and otherwise taken as they are."""
    cut = int(train.inputs.shape[1] * (1 - HELD_OUT))
    found = []
    for seed in range(len(train.inputs)):
        phi, y = features(seed, train.inputs[seed]).double(), train.labels[seed].double()
        constant = phi.mean(0)  # products of centred features lose fewer digits
        phi = phi - constant
        sums = _Moments.of(phi[:cut], y[:cut])
        split = _Ridge(sums)
        tried = torch.stack([split.predict(phi[cut:], split.solve(penalty)) for penalty in PENALTIES])
        scores = score(tried, y[cut:], regression)
        best = int(scores.argmax())
        whole = _Ridge(sums + _Moments.of(phi[cut:], y[cut:]))
        head = whole.solve(PENALTIES[best])
        outputs = whole.predict(features(seed, test[seed]).double() - constant, head)
        norm = math.hypot(float(head.norm()), float(whole.offset - (whole.centre + constant) @ head))
        found.append((outputs, PENALTIES[best], float(scores[best]), norm, outermost(scores)))
    return _stack(found, train)


def train_both_layers(
    seeds: Seeds, net: TwoLayer, train: Sample, test: Tensor, *, rates: Sequence[float], steps: int, batch: int = 500
) -> Fitted:
    """Algorithm A on a fixed sample: both layers by gradient descent over batches of it. Held-out samples, the same as
    for heads, choose rate and moment; ``penalties`` are the rates and ``norms`` those of the outputs."""
    cut = int(train.inputs.shape[1] * (1 - HELD_OUT))
    rest, held = train.part(0, cut), train.part(cut, train.inputs.shape[1])
    count = len(train.inputs)
    rows = torch.arange(count).unsqueeze(1)
    scores = torch.full((len(rates), count), -1.0, dtype=torch.float64)
    best = torch.full((count,), -1.0, dtype=torch.float64)
    outputs, norms = test.new_zeros(test.shape[:2]), torch.zeros(count, dtype=torch.float64)
    chosen = torch.zeros(count, dtype=torch.float64)
    for at, rate in enumerate(rates):
        order = list(seeds.batches("batches", cut, min(batch, cut), steps))

        def draw(step: int, order: list[Tensor] = order) -> Sample:
            index = order[step - 1]
            return Sample(rest.inputs[rows, index], rest.labels[rows, index], rest.components[rows, index])

        for step, now in train_both(net, draw, rate, steps):
            if step == 0 or step % max(1, steps // 10):
                continue
            found = score(now(held.inputs, RELU), held.labels, False).cpu()
            scores[at] = torch.maximum(scores[at], found)
            better = found > best
            if bool(better.any()):
                best = torch.where(better, found, best)
                chosen = torch.where(better, rate, chosen)
                outputs = torch.where(better.to(outputs.device).unsqueeze(1), now(test, RELU), outputs)
                norms = torch.where(better, now.output.norm(dim=1).double().cpu(), norms)
    edges = torch.tensor([outermost(column) for column in scores.T], dtype=torch.float64)
    return Fitted(outputs, chosen, best, norms, edges)


def kernel_ridge(kernels: Sequence[Kernel], train: Sample, test: Tensor, *, regression: bool = False) -> Fitted:
    """Exact kernel regression; among the kernels (widths of one family) and penalties the held-out samples choose."""
    cut = int(train.inputs.shape[1] * (1 - HELD_OUT))
    found = []
    for seed in range(len(train.inputs)):
        x, y = train.inputs[seed].double(), train.labels[seed].double()
        offset = y[:cut].mean()
        scores = y.new_zeros(len(kernels), len(KERNEL_PENALTIES))
        for i, kernel in enumerate(kernels):
            gram = kernel(x, x)
            for j, relative in enumerate(KERNEL_PENALTIES):
                dual = _dual(gram[:cut, :cut], y[:cut] - offset, relative)
                scores[i, j] = score(gram[cut:, :cut] @ dual + offset, y[cut:], regression)
        width, power = divmod(int(scores.argmax()), len(KERNEL_PENALTIES))
        gram = kernels[width](x, x)
        dual = _dual(gram, y - y.mean(), KERNEL_PENALTIES[power])
        outputs = kernels[width](test[seed].double(), x) @ dual + y.mean()
        norm = math.sqrt(max(0.0, float(dual @ gram @ dual)))
        best = float(scores[width, power])
        found.append((outputs, KERNEL_PENALTIES[power], best, norm, outermost(scores[width])))
    return _stack(found, train)


def feature_kernel_ridge(features: Features, train: Sample, test: Tensor) -> Fitted:
    """A head on more features than samples, by their inner products: ``ridge_head`` but for the centring."""
    found = []
    for seed in range(len(train.inputs)):

        def kernel(x: Tensor, z: Tensor, seed: int = seed) -> Tensor:
            left = features(seed, x.to(train.inputs))
            right = left if x is z else features(seed, z.to(train.inputs))
            return (left @ right.T).double() / left.shape[1]

        rows = slice(seed, seed + 1)
        one = Sample(train.inputs[rows], train.labels[rows], train.components[rows])
        found.append(kernel_ridge([kernel], one, test[rows]))
    columns = [(each.outputs, each.penalties, each.scores, each.norms, each.edges) for each in found]
    return Fitted(*(torch.cat(column) for column in zip(*columns, strict=True)))


def outermost(scores: Tensor) -> float:
    """1 where the first or the last score is better than all others: a wider grid might then have had a better one."""
    return float(bool(scores[0] > scores[1:].max() or scores[-1] > scores[:-1].max()))


def _dual(gram: Tensor, target: Tensor, penalty: float) -> Tensor:
    shifted = gram.clone()
    shifted.diagonal().add_(penalty * float(gram.diagonal().mean()))
    return torch.cholesky_solve(target.unsqueeze(1), torch.linalg.cholesky(shifted)).squeeze(1)


def _stack(found: list[tuple[Tensor, float, float, float, float]], train: Sample) -> Fitted:
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


def random_tangent(seeds: Seeds, name: str, width: int, dim: int, typical: float) -> Features:
    """At most ``width`` features (or those of one neuron) of a random two-layer ReLU network's first-order model: each
    neuron's gradient in its weights, 1{⟨w, x⟩ > 0}·x (dim features), and in its output, max(0, ⟨w, x⟩)."""
    neurons = max(1, width // (dim + 1))
    weights = seeds.normal(name, neurons, dim) / typical

    def features(seed: int, x: Tensor) -> Tensor:
        z = x @ weights[seed].T  # (n, neurons)
        gated = (z > 0).to(x).unsqueeze(-1) * (x / typical).unsqueeze(1)
        return torch.cat([gated.flatten(1), z.clamp(min=0)], 1)

    return features


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
        "rbf": [rbf(factor * typical) for factor in RBF_WIDTHS],
        "ntk": [ntk],
    }
