"""Polynomials of three directions: what gradients see with and without a quadratic part, and who learns them."""

from __future__ import annotations

import math
from typing import Self

import torch
from pydantic import Field, PositiveFloat, model_validator

from assay import lab
from assay.training import Seeds

from ..fixed_features.learners import exact_kernels, kernel_ridge, random_relu
from ..params import Testing, check_growing
from .learners import LinearPart, learned_features, squared_error
from .problem import MultiIndex
from .theory import subspace_fraction

TARGETS = {"full": 0.8, "no quadratic part": 0.0}
KERNELS = ("quadratic", "cubic", "rbf", "ntk")


class Params(Testing):
    index_dim: int = Field(50, ge=10, description="dimension of multi-index polynomials")
    index_neurons: int = Field(500, ge=8, description="directions m on multi-index polynomials, of 2m neurons")
    index_ratios: tuple[PositiveFloat, ...] = Field((0.5, 1.0, 2.0, 4.0), description="samples over d²")

    @model_validator(mode="after")
    def _ratios_grow(self) -> Self:
        check_growing("index_ratios", self.index_ratios)
        return self

    def samples(self, ratio: float) -> int:
        return math.ceil(ratio * self.index_dim**2)


part = lab.Part(
    "multi_index",
    params=Params,
    presets={
        "smoke": lab.PartPreset(index_dim=12, index_neurons=32, index_ratios=(1.0, 4.0)),
        "laptop": lab.PartPreset(fewer={"multi-index": 6, "multi-index-kernels": 6}),
        "paper": lab.PartPreset(index_dim=100, index_neurons=1000, index_ratios=(0.01, 0.1, 0.5, 1.0, 2.0, 4.0)),
    },
)


@part.arm(
    "multi-index",
    over={"target": tuple(TARGETS), "ratio": lambda p: p.index_ratios, "method": ("gradient", "relu")},
    uses=("test_samples", "index_dim", "index_neurons"),
    chunk=2,
    tolerance=0.05,
)
def multi_index(params: Params, seeds: Seeds, record: lab.Recorder, *, target: str, ratio: float, method: str) -> None:
    """Test error of heads on gradient features and on as many random ones, and where the gradients point."""
    problem = MultiIndex(params.index_dim, quadratic=TARGETS[target], strict=False)
    train = problem.sample(seeds, "train", params.samples(ratio))
    test = problem.sample(seeds, "test", params.test_samples)
    if method == "gradient":
        features, directions = learned_features(seeds, train, params.index_neurons)
        record(fraction=subspace_fraction(directions).median(1).values)
        start = subspace_fraction(seeds.normal("initial weights", params.index_neurons, problem.dim))
        record(fraction_before=start.median(1).values)
        top = torch.linalg.svd(directions, full_matrices=False).Vh[:, :3, :3]
        record(top_alignment=top.square().sum((1, 2)) / 3)
    else:
        width, root = 2 * params.index_neurons, math.sqrt(problem.dim)
        features = random_relu(seeds, "random features", width, problem.dim, 0.0, root)
    record(error=squared_error(features, train, test))


@part.arm(
    "multi-index-kernels",
    over={"method": KERNELS},
    uses=("test_samples", "index_dim"),
    chunk=1,
    tolerance=0.05,
)
def multi_index_kernels(params: Params, seeds: Seeds, record: lab.Recorder, *, method: str) -> None:
    """Exact kernels, tuned, at d² samples, on what the linear part leaves."""
    problem = MultiIndex(params.index_dim)
    train = problem.sample(seeds, "train", params.samples(1.0))
    test = problem.sample(seeds, "test", params.test_samples)
    linear = LinearPart.of(train)
    residual = type(train)(train.inputs, train.labels - linear(train.inputs), train.components)
    kernels = exact_kernels(problem.dim, math.sqrt(problem.dim))[method]
    fitted = kernel_ridge(kernels, residual, test.inputs, regression=True)
    record(error=(fitted.outputs + linear(test.inputs) - test.labels).square().mean(1), penalty=fitted.penalties)
    record(at_edge=fitted.edges)
