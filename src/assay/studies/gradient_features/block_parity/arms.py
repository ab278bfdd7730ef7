"""Parities of blocks: one block against tuned fixed features, three blocks and what breaks them, and the oracle."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from assay import lab
from assay.training import Seeds, TwoLayer

from ..fixed_features.learners import (
    exact_kernels,
    kernel_ridge,
    random_fourier,
    random_relu,
    random_tangent,
    ridge_head,
)
from ..learners import hidden_layer, sampled_gradients, stepped, symmetric_start, wrong
from ..params import FirstStep, Testing
from ..problem import Sample
from ..theory import cosines
from . import theory
from .problem import BlockParity

# Dimension, block size and background of the instances with one block; the last three have k = d/16.
INSTANCES = {
    "50-5": (50, 5, 0.5),
    "60-9": (60, 9, 0.15),
    "100-9": (100, 9, 0.5),
    "80-5": (80, 5, 0.5),
    "112-7": (112, 7, 0.5),
    "144-9": (144, 9, 0.5),
}
Instance = Literal["50-5", "60-9", "100-9", "80-5", "112-7", "144-9"]
FEATURES = ("gradient", "gradient, equal outputs", "relu", "fourier", "tangent")
KERNELS = ("rbf", "ntk")
KERNEL_SAMPLES = 2500


class Params(FirstStep, Testing):
    instances: tuple[Instance, ...] = Field(
        ("50-5", "60-9", "100-9", "80-5", "112-7", "144-9"), description="one-block parities: dimension and block size"
    )
    parity_samples: int = Field(8000, ge=200, description="samples of one-block parities")
    parity_neurons: int = Field(128, ge=8, description="neurons m on one-block parities")
    kernel_instances: tuple[Instance, ...] = Field(("100-9",), min_length=1, description="instances for exact kernels")
    block_samples: int = Field(100_000, ge=1000, description="samples of three-block parities")
    block_neurons: int = Field(256, ge=8, description="neurons m on three-block parities")

    @model_validator(mode="after")
    def _distinct_instances(self) -> Self:
        if len(set(self.instances)) < len(self.instances) or not self.instances:
            raise ValueError(f"instances are different ones, at least one, not {self.instances}")
        return self


part = lab.Part(
    "block_parity",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            instances=("50-5",),
            kernel_instances=("50-5",),
            parity_samples=500,
            parity_neurons=64,
            block_samples=5000,
            block_neurons=64,
        ),
        "laptop": lab.PartPreset(fewer={"parity": 6, "parity-kernels": 6, "blocks": 4}),
        "paper": lab.PartPreset(
            kernel_instances=("50-5", "100-9", "144-9"),
            parity_samples=20_000,
            parity_neurons=256,
            block_samples=200_000,
            block_neurons=512,
        ),
    },
)


def instance_of(name: str) -> BlockParity:
    dim, size, background = INSTANCES[name]
    return BlockParity(dim, size, structured=0.25, background=background)


def _net(seeds: Seeds, problem: BlockParity, train: Sample, neurons: int, ratio: float) -> TwoLayer:
    start = symmetric_start(seeds, neurons, problem.dim, ratio * problem.spread)
    # Switches around 1, the distance of neighbouring knots of the oracle being 2/√k and its range √k.
    return stepped(start, sampled_gradients(start, train), knot=1.0)


def _equal_outputs(seeds: Seeds, params: Params, problem: BlockParity, train: Sample) -> TwoLayer:
    """The step with outputs ±1: all switches of neurons with one gradient then coincide."""
    start = symmetric_start(seeds, params.parity_neurons, problem.dim, params.threshold * problem.spread)
    start = replace(start, output=start.output.sign())
    return stepped(start, sampled_gradients(start, train), knot=1.0)


@part.arm(
    "parity",
    over={"instance": lambda p: p.instances, "method": FEATURES},
    uses=("threshold", "test_samples", "parity_samples", "parity_neurons"),
    chunk=2,
    tolerance=0.05,
)
def parity(params: Params, seeds: Seeds, record: lab.Recorder, *, instance: str, method: str) -> None:
    """Heads on gradient features and on as many fixed ones, tested on all inputs and on uniform blocks alone."""
    problem = instance_of(instance)
    train = problem.sample(seeds, "train", params.parity_samples)
    test = problem.sample(seeds, "test", params.test_samples)
    uniform = replace(problem, structured=0.0).sample(seeds, "uniform test", params.test_samples)
    both = torch.cat([test.inputs, uniform.inputs], 1)
    width = 4 * params.parity_neurons
    if method == "gradient":
        net = _net(seeds, problem, train, params.parity_neurons, params.threshold)
        record(median_cosine=cosines(net.weights, problem.features)[..., 0].abs().median(1).values)
        features = hidden_layer(net)
    elif method == "relu":
        features = random_relu(seeds, "random features", width, problem.dim, 0.0, math.sqrt(problem.dim))
    elif method == "tangent":
        features = random_tangent(seeds, "random features", width, problem.dim, math.sqrt(problem.dim))
    elif method == "fourier":
        features = random_fourier(seeds, "random features", width, problem.dim, math.sqrt(problem.dim))
    else:
        features = hidden_layer(_equal_outputs(seeds, params, problem, train))
    fitted = ridge_head(features, train, both)
    n = params.test_samples
    record(trials=n, test_accuracy=1 - wrong(fitted.outputs[:, :n], test.labels))
    record(trials=n, uniform_accuracy=1 - wrong(fitted.outputs[:, n:], uniform.labels))
    record(penalty=fitted.penalties, at_edge=fitted.edges)
    if method == "fourier":  # features in [−1, 1], as the bound wants them
        loss = (1 - test.labels * fitted.outputs[:, :n]).clamp(min=0).mean(1)
        bound = [theory.fixed_feature_bound(width + 1, norm, problem.size) for norm in fitted.norms.tolist()]
        record(hinge_loss=loss, loss_bound=bound)


@part.arm(
    "parity-kernels",
    over={"instance": lambda p: p.kernel_instances, "method": KERNELS},
    uses=("test_samples", "parity_samples"),
    chunk=1,
    tolerance=0.05,
)
def parity_kernels(params: Params, seeds: Seeds, record: lab.Recorder, *, instance: str, method: str) -> None:
    """Exact kernels, tuned, on at most 2,500 of the samples."""
    problem = instance_of(instance)
    train = problem.sample(seeds, "train", params.parity_samples).part(0, KERNEL_SAMPLES)
    uniform = replace(problem, structured=0.0).sample(seeds, "uniform test", params.test_samples)
    kernels = exact_kernels(problem.dim, problem.spread)[method]
    fitted = kernel_ridge(kernels, train, uniform.inputs)
    record(trials=params.test_samples, uniform_accuracy=1 - wrong(fitted.outputs, uniform.labels))
    record(penalty=fitted.penalties, at_edge=fitted.edges)


CASES = {
    "plain": (BlockParity(40, 5, blocks=3, structured=0.12, background=0.005), 1.2),
    "higher threshold": (BlockParity(40, 5, blocks=3, structured=0.12, background=0.005), 1.8),
    "loud background": (BlockParity(60, 5, blocks=3, structured=0.12, background=0.2), 1.2),
}


@part.arm("block-gradients", over={"case": tuple(CASES)}, uses=("block_samples", "block_neurons"), chunk=2)
def block_gradients(params: Params, seeds: Seeds, record: lab.Recorder, *, case: str) -> None:
    """First gradients on three blocks: which blocks do neurons of either threshold sign point at?"""
    problem, ratio = CASES[case]
    train = problem.sample(seeds, "train", params.block_samples)
    m = params.block_neurons
    start = symmetric_start(seeds, m, problem.dim, ratio * problem.spread)
    found = sampled_gradients(start, train)
    nearest = cosines(found, problem.features).abs().amax(-1)
    for sign, rows in (("positive", slice(0, m)), ("negative", slice(m, 2 * m))):
        at = {"threshold_sign": sign}
        record(at=at, trials=m, near=(nearest[:, rows] > 0.9).double().mean(1))
        record(at=at, median_cosine=nearest[:, rows].median(1).values)
    mean = (train.labels.unsqueeze(-1) * train.inputs).mean(1)
    relevant = problem.blocks * problem.size
    record(label_mean=mean[:, :relevant].mean(1), label_mean_beside=mean[:, relevant:].mean(1))
    record.array("cosines", cosines(found[:, : 2 * m], problem.features))


@part.arm(
    "blocks",
    over={"method": ("gradient", "one block")},
    uses=("test_samples", "block_samples", "block_neurons"),
    chunk=2,
    tolerance=0.05,
)
def blocks(params: Params, seeds: Seeds, record: lab.Recorder, *, method: str) -> None:
    """Three blocks: a head on gradient features against one on the true direction of a single block."""
    problem, ratio = CASES["plain"]
    train = problem.sample(seeds, "train", params.block_samples)
    uniform = replace(problem, structured=0.0).sample(seeds, "uniform test", params.test_samples)
    if method == "gradient":
        features = hidden_layer(_net(seeds, problem, train, params.block_neurons, ratio))
    else:
        knots = torch.linspace(-2.5, 2.5, 64)
        features = lambda seed, x: ((x @ problem.features[0].to(x)).unsqueeze(-1) - knots.to(x)).clamp(min=0)  # noqa: E731
    fitted = ridge_head(features, train.part(0, 20_000), uniform.inputs)
    record(trials=params.test_samples, uniform_accuracy=1 - wrong(fitted.outputs, uniform.labels))


@part.arm("parity-oracle", over={"blocks": [1, 3], "size": [3, 5]}, uses=(), dtype="float64", chunk=64)
def parity_oracle(params: Params, seeds: Seeds, record: lab.Recorder, *, blocks: int, size: int) -> None:
    """The oracle network on every input of the blocks, by enumeration."""
    signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=size)), dtype=torch.float64)
    one: Tensor = signs.sum(1) / math.sqrt(size)
    parities = signs.prod(1)
    points = torch.cartesian_prod(*[torch.arange(len(signs))] * blocks).reshape(-1, blocks)
    wanted = parities[points].sum(1)
    error = (theory.oracle(one[points], size) - wanted).abs().max()
    knots = theory.oracle_knots(size)
    norm = math.sqrt(blocks) * float(knots[1].norm())
    printed = 2 * math.sqrt(blocks * size * (size + 1))
    record(
        error=float(error), norm_over_formula=norm / theory.oracle_norm(size, blocks), norm_over_printed=norm / printed
    )
    record(off_block=float(theory.oracle(torch.zeros(1, blocks, dtype=torch.float64), size).abs().max()))
