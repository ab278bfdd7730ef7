"""Uniform parities: exact gradients against enumeration, learning from exact and from sampled gradients."""

from __future__ import annotations

import itertools
import math
from typing import Literal, Self

import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds, TwoLayer

from ..fixed_features.learners import random_fourier, random_relu, ridge_head
from ..learners import hidden_layer, stepped, unmirrored, wrong
from ..params import Testing, check_growing
from ..theory import cosines, simplified_gradient
from . import theory
from .learners import one_threshold_start, parity_step, sign_start, streamed_gradients
from .problem import UniformParity

# Dimension for each size, odd and at least 2k² (31 for k = 4 falls short of that by one).
DIMENSIONS = {2: 51, 4: 31, 6: 73}
Network = Literal["promised", "promised, none constant", "2^(k-2)"]
NETWORKS: tuple[Network, ...] = ("promised", "promised, none constant", "2^(k-2)")
OUTPUTS = ("normal", "signs")


class Params(Testing):
    parity_sizes: tuple[Literal[2, 4, 6], ...] = Field((2, 4), min_length=1, description="sizes k of uniform parities")
    head_samples: int = Field(6000, ge=200, description="samples for heads on uniform parities")
    sampled_dims: tuple[PositiveInt, ...] = Field((31, 41), description="dimensions with sampled gradients, k = 4")
    sample_ratios: tuple[PositiveFloat, ...] = Field((0.1, 0.3, 1.0), description="samples n·ξ²/d of sampled gradients")
    six_dims: tuple[PositiveInt, ...] = Field((31,), description="dimensions with sampled gradients, k = 6")
    ladder_neurons: int = Field(96, ge=8, description="neurons m with sampled gradients")

    @model_validator(mode="after")
    def _parity_grids_grow(self) -> Self:
        check_growing("sampled_dims", self.sampled_dims)
        check_growing("sample_ratios", self.sample_ratios)
        check_growing("six_dims", self.six_dims)
        for size, dims in ((4, self.sampled_dims), (6, self.six_dims)):
            for dim in dims:
                UniformParity(dim, size)  # refuses even dimensions
        return self


part = lab.Part(
    "uniform_parity",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            parity_sizes=(2,), head_samples=1000, sampled_dims=(11, 15), sample_ratios=(0.1, 1.0), ladder_neurons=32
        ),
        "laptop": lab.PartPreset(fewer={"exact-parity": 6, "one-threshold": 4}),
        "paper": lab.PartPreset(
            arms=("sampled-parity-six",),
            parity_sizes=(2, 4, 6),
            head_samples=20_000,
            sampled_dims=(31, 51, 71),
            sample_ratios=(0.1, 0.3, 1.0, 3.0),
        ),
    },
)


@part.arm("parity-gradients", over={"threshold": [-0.75, 0.0, 0.75]}, uses=(), dtype="float64", chunk=64)
def parity_gradients(params: Params, seeds: Seeds, record: lab.Recorder, *, threshold: float) -> None:
    """The closed form against all 2^11 inputs, k = 4."""
    problem = UniformParity(11, 4)
    weights = torch.where(seeds.uniform("weights", 32, 11) < 0.5, -1.0, 1.0).double()
    points = weights.new_tensor(list(itertools.product((-1.0, 1.0), repeat=11)))
    inputs = points.expand(len(seeds), -1, -1)
    levels = weights.new_full(weights.shape[:2], threshold)
    counted = simplified_gradient(inputs, problem.labels(inputs), weights, levels)
    exact = theory.exact_gradient(problem, weights)
    record(error=(counted - exact).abs().amax((1, 2)) / exact.abs().amax((1, 2)))
    own = torch.zeros_like(weights)
    own[..., :4] = weights[..., :4]
    found = cosines(counted.flatten(0, 1), own.flatten(0, 1)).diagonal().abs()
    record(cosine_off=(found - theory.limit_cosine(problem)).abs().reshape(len(seeds), -1).amax(1))


def _record_head(params: Params, seeds: Seeds, record: lab.Recorder, problem: UniformParity, net: TwoLayer) -> None:
    train = problem.sample(seeds, "head", params.head_samples)
    test = problem.sample(seeds, "test", params.test_samples)
    fitted = ridge_head(hidden_layer(net), train, test.inputs)
    record(trials=params.test_samples, test_accuracy=1 - wrong(fitted.outputs, test.labels))


@part.arm(
    "exact-parity",
    over={"size": lambda p: p.parity_sizes, "network": NETWORKS},
    uses=("test_samples", "head_samples"),
    chunk=2,
    tolerance=0.05,
)
def exact_parity(params: Params, seeds: Seeds, record: lab.Recorder, *, size: int, network: Network) -> None:
    """A head after a step along exact gradients, at the promised width and at a tiny one."""
    problem = UniformParity(DIMENSIONS[size], size)
    m = max(1, 2 ** (size - 2)) if network == "2^(k-2)" else theory.promised_neurons(size)
    start = sign_start(seeds, problem, m, constant=network == "promised")
    exact = unmirrored(start, lambda w, b: theory.exact_gradient(problem, w), torch.zeros(1))
    _record_head(params, seeds, record, problem, parity_step(start, exact, problem))


@part.arm(
    "one-threshold",
    over={"size": lambda p: p.parity_sizes, "outputs": OUTPUTS},
    uses=("test_samples", "head_samples"),
    chunk=2,
    tolerance=0.05,
)
def one_threshold(params: Params, seeds: Seeds, record: lab.Recorder, *, size: int, outputs: str) -> None:
    """The other start, with thresholds ±b̃ of one size. The median switch lies where a neuron knows least."""
    problem = UniformParity(DIMENSIONS[size], size)
    # Below four signs there is no such place: 1, as for other parities.
    knot = theory.blind_knot(problem) if size >= 4 else 1.0
    start = one_threshold_start(seeds, problem, theory.promised_neurons(size), 0.5, normal=outputs == "normal")
    exact = unmirrored(start, lambda w, b: theory.exact_gradient(problem, w), torch.zeros(1))
    record(knot=[knot] * len(seeds))
    _record_head(params, seeds, record, problem, stepped(start, exact, knot))


@part.arm(
    "fixed-parity",
    over={"size": lambda p: p.parity_sizes, "method": ("relu", "fourier")},
    uses=("test_samples", "head_samples"),
    chunk=2,
    tolerance=0.05,
)
def fixed_parity(params: Params, seeds: Seeds, record: lab.Recorder, *, size: int, method: str) -> None:
    """Heads on as many random features, tuned."""
    problem = UniformParity(DIMENSIONS[size], size)
    width, root = 4 * theory.promised_neurons(size), math.sqrt(problem.dim)
    train = problem.sample(seeds, "head", params.head_samples)
    test = problem.sample(seeds, "test", params.test_samples)
    if method == "relu":
        features = random_relu(seeds, "random features", width, problem.dim, 0.0, root)
    else:
        features = random_fourier(seeds, "random features", width, problem.dim, root)
    fitted = ridge_head(features, train, test.inputs)
    record(trials=params.test_samples, test_accuracy=1 - wrong(fitted.outputs, test.labels))


@part.arm(
    "sampled-parity",
    over={"dim": lambda p: p.sampled_dims, "ratio": lambda p: p.sample_ratios},
    uses=("test_samples", "head_samples", "ladder_neurons"),
    chunk=1,
    tolerance=0.05,
)
def sampled_parity(params: Params, seeds: Seeds, record: lab.Recorder, *, dim: int, ratio: float) -> None:
    """A head after a step along gradients of n samples, n·ξ²/d being the ratio, k = 4."""
    _sampled(params, seeds, record, UniformParity(dim, 4), ratio)


@part.arm(
    "sampled-parity-six",
    over={"dim": lambda p: p.six_dims, "ratio": lambda p: p.sample_ratios},
    uses=("test_samples", "head_samples", "ladder_neurons"),
    optional=True,
    chunk=1,
    tolerance=0.05,
)
def sampled_parity_six(params: Params, seeds: Seeds, record: lab.Recorder, *, dim: int, ratio: float) -> None:
    """The same for k = 6, where n·ξ²/d = 1 takes a hundred million samples at d = 31."""
    _sampled(params, seeds, record, UniformParity(dim, 6), ratio)


def _sampled(params: Params, seeds: Seeds, record: lab.Recorder, problem: UniformParity, ratio: float) -> None:
    samples, m, k = theory.samples_for(problem, ratio), params.ladder_neurons, problem.size
    start = sign_start(seeds, problem, m)
    found = streamed_gradients(seeds, problem, start, samples)
    own = torch.zeros_like(start.weights[:, :m])
    own[..., :k] = start.weights[:, :m, :k]
    aligned = torch.nn.functional.cosine_similarity(found[:, :m], own, dim=-1).abs()
    record(median_cosine=aligned.median(1).values, predicted_cosine=theory.sampled_cosine(problem, samples))
    record(samples=float(samples))
    _record_head(params, seeds, record, problem, parity_step(start, found, problem))
