"""Mixtures of Gaussians: which thresholds find the means, and training of one and of both layers."""

from __future__ import annotations

import math

import torch
from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..emergence.theory import axis_share
from ..fixed_features.learners import ridge_head
from ..learners import RELU, hidden_layer, sampled_gradients, stepped, symmetric_start, train_both, wrong
from ..params import FirstStep, Testing
from ..problem import Sample, mixture_of
from ..theory import cosines, in_cone, mixture_gradient, safe_oracle_loss
from .learners import component_errors
from .problem import UnequalSpread
from .theory import spread_gradient, stated_oracle_loss, xor_oracle_loss

KINDS = ("orthogonal", "multi-xor")
SIGNS = {"positive": 1.0, "negative": -1.0}
AXES = ("sharper", "noisier")
NORMS = ("above the floor", "any")
NOISE_RATIOS = (0.25, 0.5, 1.0)
TAUS = (8, 12, 16)  # 8 is the least that the theory allows
TAIL_DIMS = (10**4, 10**5, 10**6, 10**7, 10**8)


class Params(FirstStep, Testing):
    mixture_dim: int = Field(100, ge=16, description="dimension of the mixtures of eight components")
    mixture_neurons: int = Field(128, ge=8, description="neurons m on mixtures")
    mixture_steps: int = Field(100, ge=10, description="steps of training both layers")
    mixture_rate: float = Field(0.05, gt=0, description="its learning rate")
    mixture_batch: int = Field(1000, ge=50, description="its batch, and the samples of the first step over ten")


part = lab.Part(
    "mixtures",
    params=Params,
    presets={"smoke": lab.PartPreset(mixture_dim=36, mixture_neurons=32, mixture_steps=20, mixture_batch=200)},
)


@part.arm(
    "mixture-gradients",
    over={"kind": KINDS, "threshold_sign": tuple(SIGNS)},
    uses=("threshold", "cone", "mixture_dim"),
    chunk=8,
)
def mixture_gradients(params: Params, seeds: Seeds, record: lab.Recorder, *, kind: str, threshold_sign: str) -> None:
    """Exact first gradients of 4,096 neurons: near a mean, or near E[yx]?"""
    problem = mixture_of(kind, params.mixture_dim)
    weights = seeds.normal("initial weights", 4096, problem.dim)
    level = SIGNS[threshold_sign] * params.threshold * math.sqrt(problem.dim)
    found, other = (
        mixture_gradient(problem, weights, weights.new_full(weights.shape[:2], each)) for each in (level, -level)
    )
    record(signs_apart=(found - other).norm(dim=-1).amax(1) / found.norm(dim=-1).amax(1))
    near = cosines(found, problem.features).abs().amax(-1)
    record(trials=4096, nice=(near > 1 - params.cone).double().mean(1))
    record(median_cosine=near.median(1).values)
    if kind == "orthogonal":
        record(label_mean_cosine=cosines(found, problem.label_mean.unsqueeze(0))[..., 0].abs().median(1).values)


@part.arm("unequal-spread", over={"ratio": NOISE_RATIOS}, uses=("threshold", "cone", "mixture_dim"), chunk=8)
def unequal_spread(params: Params, seeds: Seeds, record: lab.Recorder, *, ratio: float) -> None:
    """Exact first gradients of 8,192 neurons on an XOR mixture whose first axis has ``ratio`` times the noise of the
    second, which is 1: how many find each feature, beside the derived shares."""
    problem, count, root = UnequalSpread.xor(params.mixture_dim, 1.0, ratio), 8192, math.sqrt(params.mixture_dim)
    weights = seeds.normal("initial weights", count, problem.dim)
    level = params.threshold * root
    found = spread_gradient(problem, weights, torch.full_like(weights[..., 0], level))
    signs = seeds.normal("initial outputs", count).sign()
    own = cosines(found, problem.features) * signs.unsqueeze(-1)
    for norm, floor in {"above the floor": root / 5, "any": 0.0}.items():  # the norm floor of the XOR case, and none
        inside = in_cone(found, problem.features, params.cone, floor)  # (seeds, neurons, axes)
        for j, axis in enumerate(AXES):
            here, there = (float(problem.deviations[2 * each]) for each in (j, 1 - j))
            share = axis_share(problem.dim, here, there, level, params.cone, floor)
            counted = inside[..., j].double().mean(1)
            at = {"axis": axis, "norm": norm}
            record(at=at, trials=count, caught=counted)
            record(at=at, derived=[share] * len(seeds), caught_over_derived=counted / share)
            if floor:
                sides = [(inside[..., j] & (side * own[..., j] > 0)).double().mean(1) for side in (1, -1)]
                record(at=at, nice_over_promise=torch.minimum(*sides) / (share / 4))


@part.arm("mixture-training", over={"kind": KINDS}, chunk=4, tolerance=0.05)
def mixture_training(params: Params, seeds: Seeds, record: lab.Recorder, *, kind: str) -> None:
    """One step on a sample, then both layers on fresh batches (A), and a head on the frozen first layer (B)."""
    problem = mixture_of(kind, params.mixture_dim)
    root = math.sqrt(problem.dim)
    start = symmetric_start(seeds, params.mixture_neurons, problem.dim, params.threshold * root)
    train = problem.sample(seeds, "train", 10 * params.mixture_batch)
    net = stepped(start, sampled_gradients(start, train), knot=root / 2)
    test = problem.sample(seeds, "test", params.test_samples)

    def batch(step: int) -> Sample:
        return problem.sample(seeds, f"batch {step}", params.mixture_batch)

    record.array("cosines", cosines(net.weights[:, : 2 * params.mixture_neurons], problem.features))
    moments = {1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, params.mixture_steps}
    for step, now in train_both(net, batch, params.mixture_rate, params.mixture_steps):
        if step in moments:
            outputs = now(test.inputs, RELU)
            record(step=step, at={"layers": "both"}, trials=params.test_samples, error=wrong(outputs, test.labels))
            shares, counts = component_errors(outputs, test, len(problem.means))
            for j in range(len(problem.means)):
                record(step=step, at={"component": j + 1}, trials=counts[:, j].tolist(), component_error=shares[:, j])
    fitted = ridge_head(hidden_layer(net), train, test.inputs)
    record(at={"layers": "head"}, trials=params.test_samples, error=wrong(fitted.outputs, test.labels))


@part.arm("oracle-tails", over={"tau": TAUS, "dim": TAIL_DIMS}, uses=(), chunk=64)
def oracle_tails(params: Params, seeds: Seeds, record: lab.Recorder, *, tau: int, dim: int) -> None:
    """The oracle's exact loss on an XOR mixture with noise 1 and means of norm 4√(τ·log d), as near as is allowed."""
    tails = math.sqrt(tau * math.log(dim))
    loss = xor_oracle_loss(tails)
    record(loss=loss, loss_over_safe=loss / safe_oracle_loss(4, tails))
    record(loss_over_stated=loss / stated_oracle_loss(dim, tau))
