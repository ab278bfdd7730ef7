"""The XOR mixture: a head on the features of one gradient step against tuned heads on fixed features and kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self

from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds, TwoLayer

from ..learners import hidden_layer, sampled_gradients, stepped, symmetric_start, wrong
from ..params import FirstStep, Testing, check_growing
from ..problem import GaussianMixture, Sample, xor_bayes_accuracy
from .learners import (
    Features,
    Fitted,
    exact_kernels,
    feature_kernel_ridge,
    kernel_ridge,
    random_fourier,
    random_relu,
    random_tangent,
    ridge_head,
    train_both_layers,
)

METHODS = ("gradient", "relu 2d", "relu d^1.5", "fourier d^1.5", "tangent d^1.5")
KERNELS = ("quadratic", "cubic", "rbf", "ntk")
THRESHOLDS = (0.0, 0.5, 1.0)
FOURIER_WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
BOTH_RATES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
TUNING_SEED = 1_000_000  # tuning seeds lie where no run reaches


class Params(FirstStep, Testing):
    hard_dims: tuple[PositiveInt, ...] = Field((81, 100, 144), description="dimensions of the hard XOR mixture")
    wide_dims: tuple[PositiveInt, ...] = Field((81,), description="dimensions at which d² random features are tried")
    hard_ratio: float = Field(2.83, gt=0, description="√d/σ_B of the hard XOR mixture")
    fourier_width: float = Field(
        8.0, gt=0, description="width of random Fourier features in norms of a typical input, tuned"
    )
    step_neurons: int = Field(256, ge=8, description="neurons m, of which the network has 4m")
    random_threshold: float = Field(0.0, ge=0, description="threshold of random ReLU features, tuned")
    kernel_samples: tuple[PositiveInt, ...] = Field((300, 1000, 2000), description="samples of the kernel comparison")
    kernel_dim: int = Field(100, ge=4, description="dimension of the kernel comparison")
    kernel_noise: float = Field(3.0, gt=0, description="noise σ_B of the kernel comparison")
    both_steps: int = Field(50, ge=10, description="steps of training both layers there")

    @model_validator(mode="after")
    def _xor_grids_grow(self) -> Self:
        check_growing("hard_dims", self.hard_dims)
        check_growing("wide_dims", self.wide_dims)
        check_growing("kernel_samples", self.kernel_samples)
        return self


part = lab.Part(
    "fixed_features",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            hard_dims=(25, 36), wide_dims=(25,), step_neurons=64, kernel_samples=(200, 400), kernel_dim=36
        ),
        "laptop": lab.PartPreset(
            fewer={"xor-mild": 4, "xor-wide": 5, "xor-kernels": 6, "xor-tuning": 6, "xor-fourier-tuning": 6}
        ),
        "paper": lab.PartPreset(hard_dims=(100, 144, 196, 256, 400), wide_dims=(100, 400), both_steps=200),
    },
)


def stepped_network(seeds: Seeds, train: Sample, *, neurons: int, threshold: float, knot: float) -> TwoLayer:
    """One gradient step on the training samples."""
    start = symmetric_start(seeds, neurons, train.inputs.shape[-1], threshold)
    return stepped(start, sampled_gradients(start, train), knot)


def _fit(params: Params, seeds: Seeds, problem: GaussianMixture, train: Sample, test: Sample, method: str) -> Fitted:
    dim, root = problem.dim, math.sqrt(problem.dim)
    typical = root * math.sqrt(1 + problem.deviation**2)
    if method in ("gradient", "both layers"):
        threshold = params.threshold * problem.deviation * root
        net = stepped_network(seeds, train, neurons=params.step_neurons, threshold=threshold, knot=root / 2)
        if method == "gradient":
            return ridge_head(hidden_layer(net), train, test.inputs)
        return train_both_layers(seeds, net, train, test.inputs, rates=BOTH_RATES, steps=params.both_steps)
    kind, _, size = method.partition(" ")
    width = 2 * dim if size == "2d" else int(dim**1.5)
    if kind == "relu":
        features = random_relu(seeds, "random features", width, dim, params.random_threshold, typical)
    elif kind == "tangent":
        features = random_tangent(seeds, "random features", width, dim, typical)
    else:
        features = random_fourier(seeds, "random features", width, dim, params.fourier_width * typical)
    return ridge_head(features, train, test.inputs)


@part.arm(
    "xor",
    over={"dim": lambda p: p.hard_dims, "method": METHODS},
    uses=("threshold", "test_samples", "hard_ratio", "step_neurons", "random_threshold", "fourier_width"),
    chunk=2,
    tolerance=0.05,
)
def xor(params: Params, seeds: Seeds, record: lab.Recorder, *, dim: int, method: str) -> None:
    """Test accuracy at 2·d^1.5 samples, with noise in proportion to √d."""
    _compare(params, seeds, record, GaussianMixture.xor(dim, math.sqrt(dim) / params.hard_ratio), method)


@part.arm(
    "xor-mild",
    over={"method": METHODS},
    uses=("threshold", "test_samples", "hard_dims", "step_neurons", "random_threshold", "fourier_width"),
    chunk=2,
    tolerance=0.05,
)
def xor_mild(params: Params, seeds: Seeds, record: lab.Recorder, *, method: str) -> None:
    """The same at the largest dimension with noise 1."""
    _compare(params, seeds, record, GaussianMixture.xor(params.hard_dims[-1], 1.0), method)


def _compare(params: Params, seeds: Seeds, record: lab.Recorder, problem: GaussianMixture, method: str) -> None:
    train = problem.sample(seeds, "train", math.ceil(2 * problem.dim**1.5))
    test = problem.sample(seeds, "test", params.test_samples)
    fitted = _fit(params, seeds, problem, train, test, method)
    accuracy = 1 - wrong(fitted.outputs, test.labels)
    record(trials=params.test_samples, test_accuracy=accuracy)
    record(below_bayes=xor_bayes_accuracy(problem.dim, problem.deviation) - accuracy)
    record(penalty=fitted.penalties, at_edge=fitted.edges)


@part.arm(
    "xor-wide",
    over={"dim": lambda p: p.wide_dims},
    uses=("test_samples", "hard_ratio", "random_threshold"),
    chunk=1,
    tolerance=0.05,
)
def xor_wide(params: Params, seeds: Seeds, record: lab.Recorder, *, dim: int) -> None:
    """As many as d² random ReLU features, through their inner products."""
    problem = GaussianMixture.xor(dim, math.sqrt(dim) / params.hard_ratio)
    train = problem.sample(seeds, "train", math.ceil(2 * dim**1.5))
    test = problem.sample(seeds, "test", params.test_samples)
    typical = math.sqrt(dim * (1 + problem.deviation**2))
    features = random_relu(seeds, "random features", dim**2, dim, params.random_threshold, typical)
    fitted = feature_kernel_ridge(features, train, test.inputs)
    record(trials=params.test_samples, test_accuracy=1 - wrong(fitted.outputs, test.labels))
    record(penalty=fitted.penalties, at_edge=fitted.edges)


@part.arm(
    "xor-kernels",
    over={"samples": lambda p: p.kernel_samples, "method": ("gradient", "both layers", *KERNELS)},
    uses=("threshold", "test_samples", "step_neurons", "kernel_dim", "kernel_noise", "random_threshold", "both_steps"),
    chunk=1,
    tolerance=0.05,
)
def xor_kernels(params: Params, seeds: Seeds, record: lab.Recorder, *, samples: int, method: str) -> None:
    """Exact kernels, tuned, beside a head after one gradient step (B) and both layers after it (A), by samples."""
    problem = GaussianMixture.xor(params.kernel_dim, params.kernel_noise)
    train = problem.sample(seeds, "train", samples)
    test = problem.sample(seeds, "test", params.test_samples)
    if method not in KERNELS:
        fitted = _fit(params, seeds, problem, train, test, method)
    else:
        typical = math.sqrt(problem.dim * (1 + problem.deviation**2))
        fitted = kernel_ridge(exact_kernels(problem.dim, typical)[method], train, test.inputs)
    record(trials=params.test_samples, test_accuracy=1 - wrong(fitted.outputs, test.labels))
    record(penalty=fitted.penalties, at_edge=fitted.edges)


@part.arm(
    "xor-tuning",
    over={"candidate": THRESHOLDS},
    uses=("test_samples", "hard_ratio", "hard_dims"),
    chunk=1,
    tolerance=0.05,
)
def xor_tuning(params: Params, seeds: Seeds, record: lab.Recorder, *, candidate: float) -> None:
    """Thresholds for random ReLU features, on seeds kept for tuning."""

    def features(seeds: Seeds, width: int, dim: int, typical: float) -> Features:
        return random_relu(seeds, "random features", width, dim, candidate, typical)

    _try_features(params, seeds, record, features)


@part.arm(
    "xor-fourier-tuning",
    over={"candidate": FOURIER_WIDTHS},
    uses=("test_samples", "hard_ratio", "hard_dims"),
    chunk=1,
    tolerance=0.05,
)
def xor_fourier_tuning(params: Params, seeds: Seeds, record: lab.Recorder, *, candidate: float) -> None:
    """Widths of random Fourier features, on the same seeds."""

    def features(seeds: Seeds, width: int, dim: int, typical: float) -> Features:
        return random_fourier(seeds, "random features", width, dim, candidate * typical)

    _try_features(params, seeds, record, features)


def _try_features(
    params: Params, seeds: Seeds, record: lab.Recorder, made: Callable[[Seeds, int, int, float], Features]
) -> None:
    """Accuracy of a head on d^1.5 features, at the smallest dimension."""
    seeds = Seeds(tuple(TUNING_SEED + seed for seed in seeds), seeds.device, seeds.dtype)
    dim = params.hard_dims[0]
    problem = GaussianMixture.xor(dim, math.sqrt(dim) / params.hard_ratio)
    train = problem.sample(seeds, "train", math.ceil(2 * dim**1.5))
    validation = problem.sample(seeds, "validation", params.test_samples)
    typical = math.sqrt(dim * (1 + problem.deviation**2))
    fitted = ridge_head(made(seeds, int(dim**1.5), dim, typical), train, validation.inputs)
    record(trials=params.test_samples, validation_accuracy=1 - wrong(fitted.outputs, validation.labels))
