"""Do first gradients point at features? Exact and sampled gradients of Gaussian mixtures and of linear data."""

from __future__ import annotations

import math
from typing import Self

import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor

from assay import lab
from assay.training import Seeds

from ..fixed_features.learners import ridge_head
from ..learners import hidden_layer, sampled_gradients, stepped, symmetric_start, wrong
from ..params import FirstStep, Testing, check_growing
from ..problem import GaussianMixture, LinearData
from ..theory import cosines, escaped, in_cone, mixture_gradient, simplified_gradient
from .learners import LINEAR, first_gradients
from .theory import xor_share

WIDTHS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


class Params(FirstStep, Testing):
    xor_dims: tuple[PositiveInt, ...] = Field((50, 100, 200, 400), description="dimensions of the XOR mixture")
    xor_noise: float = Field(1.0, gt=0, description="noise σ_B of the XOR mixture whose first gradients are looked at")
    first_neurons: int = Field(8192, ge=16, description="neurons m of each seed whose first gradients are looked at")
    sampled: tuple[PositiveInt, ...] = Field((500, 2000, 8000, 32000), description="samples n of sampled gradients")
    sampled_dim: int = Field(100, ge=4, description="dimension of the mixtures with sampled gradients")
    sampled_neurons: int = Field(128, ge=8, description="neurons with sampled gradients")
    linear_dim: int = Field(100, ge=4, description="dimension of linear data")
    linear_samples: int = Field(2000, ge=100, description="samples of linear data")
    linear_neurons: int = Field(64, ge=4, description="neurons m on linear data")

    @model_validator(mode="after")
    def _grids_grow(self) -> Self:
        check_growing("xor_dims", self.xor_dims)
        check_growing("sampled", self.sampled)
        return self


part = lab.Part(
    "emergence",
    params=Params,
    presets={
        "smoke": lab.PartPreset(xor_dims=(50, 100), first_neurons=2048, sampled=(250, 1000, 4000), sampled_neurons=64),
        "paper": lab.PartPreset(xor_dims=(50, 100, 200, 400, 800), first_neurons=65536),
    },
)
SIGNS = {"positive": 1.0, "negative": -1.0}
CASES = (*LINEAR, "orthogonal", "multi-xor", "block parity", "uniform parity", "polynomial")


def promised_sign(case: str) -> str:
    """The sign of the threshold with which the theory finds features: on linear data, that of always-active neurons."""
    return "negative" if case in LINEAR else "positive"


@part.arm(
    "xor-gradients",
    over={"dim": lambda p: p.xor_dims, "labels": ["true", "shuffled"]},
    uses=("threshold", "cone", "xor_noise", "first_neurons"),
    working_set=lambda p: 32.0 * p.first_neurons * 100,
)
def xor_gradients(params: Params, seeds: Seeds, record: lab.Recorder, *, dim: int, labels: str) -> None:
    """Exact first gradients of the XOR mixture; with shuffled labels, those of 4d samples whose labels are random."""
    problem = GaussianMixture.xor(dim, params.xor_noise)
    threshold = params.threshold * params.xor_noise * math.sqrt(dim)
    features = problem.features.to(seeds.device)
    weights = seeds.normal("initial weights", params.first_neurons, dim)
    sample = problem.sample(seeds, "shuffled", 4 * dim) if labels == "shuffled" else None
    coins = torch.where(seeds.uniform("coins", 4 * dim) < 0.5, -1.0, 1.0).to(seeds.dtype)
    before = cosines(weights, features).abs().amax(-1)
    signs = seeds.normal("initial outputs", params.first_neurons).sign().unsqueeze(-1)
    # The floor of the XOR case: sure neurons have ‖G‖ of about √d/4, at least √d/5.
    floor = math.sqrt(dim) / 5
    for name, sign in SIGNS.items():
        at = {"threshold_sign": name}
        levels = torch.full_like(weights[..., 0], sign * threshold)
        if sample is None:
            found = mixture_gradient(problem, weights, levels)
        else:
            found = simplified_gradient(sample.inputs, coins, weights, levels)
        after = cosines(found, features).abs().amax(-1)
        norms = found.norm(dim=-1)
        record(at=at, median_before=before.median(1).values, median_after=after.median(1).values)
        record(at=at, trials=params.first_neurons, near_after=(after > 0.9).double().mean(1))
        # The features are coordinate axes: what is left without them lies outside their span.
        outside = found[..., len(features) :].norm(dim=-1) / norms
        record(at=at, outside_span=outside.median(1).values)
        record(at=at, trials=params.first_neurons, above_floor=(norms >= floor).double().mean(1))
        record.array(f"cosines {name}", torch.stack([before, after], 1))
        record.array(f"norms {name}", norms)
        share = xor_share(dim, params.xor_noise, sign * threshold, params.cone, floor)
        _record_cones(params, record, found, found * signs, features, floor, share, name)


def _record_cones(
    params: Params,
    record: lab.Recorder,
    found: Tensor,
    stepped: Tensor,
    features: Tensor,
    floor: float,
    share: float,
    sign: str,
) -> None:
    """How many gradients lie in cones around features, over the width; how many above the floor, over the derived
    share p; and how many neurons after the step are nice for each signed feature, over the promised m·p/4."""
    for width in WIDTHS:
        near = in_cone(found, features, width).any(-1).double().mean(1)
        record(at={"threshold_sign": sign, "width": width}, trials=params.first_neurons, share_in_cones=near)
    caught = in_cone(found, features, params.cone, floor)  # (seeds, neurons, features)
    at = {"threshold_sign": sign}
    record(at=at, trials=params.first_neurons, caught=caught[..., 0].double().mean(1))
    record(at=at, caught_over_derived=caught.double().mean((1, 2)) / share)
    own = cosines(stepped, features)
    for feature in range(len(features)):
        for side in (1.0, -1.0):
            nice = (caught[..., feature] & (side * own[..., feature] > 0)).double().mean(1)
            which = f"{'+' if side > 0 else '-'}{feature + 1}"
            record(at=at | {"feature": which}, nice_over_promise=nice / (share / 4))


@part.arm(
    "first-gradients",
    over={"case": CASES, "threshold_sign": tuple(SIGNS)},
    uses=("threshold", "cone"),
    chunk=2,
    tolerance=0.01,
)
def every_case(params: Params, seeds: Seeds, record: lab.Recorder, *, case: str, threshold_sign: str) -> None:
    """First gradients of 1,024 neurons (8,192 on the uniform parity) on each of the other families of problems."""
    neurons = 8192 if case == "uniform parity" else 1024  # a closed form costs little, and a share is counted in it
    first = first_gradients(seeds, case, SIGNS[threshold_sign], params.threshold, neurons)
    before, after = first.nearness(first.weights), first.nearness(first.gradients)
    record(median_before=before.median(1).values, median_after=after.median(1).values)
    if first.shuffled is not None:
        record(median_shuffled=first.nearness(first.shuffled).median(1).values)
    record(trials=neurons, caught=(after > 1 - params.cone).double().mean(1))
    for width in WIDTHS:
        record(at={"width": width}, trials=neurons, share_in_cones=(after > 1 - width).double().mean(1))
    record.array("cosines", torch.stack([before, after], 1))


@part.arm(
    "sampled-gradients",
    over={"mixture": ["xor", "multi-xor"], "samples": lambda p: p.sampled},
    uses=("threshold", "sampled_dim", "sampled_neurons", "cone"),
    chunk=4,
)
def sampled_against_exact(params: Params, seeds: Seeds, record: lab.Recorder, *, mixture: str, samples: int) -> None:
    """How far gradients over n samples are from the exact ones."""
    dim = params.sampled_dim
    problem = (
        GaussianMixture.xor(dim, 1.0)
        if mixture == "xor"
        else GaussianMixture.multi_xor(dim, (0.25,) * 4, (1.0, -1.0, 1.0, -1.0), math.sqrt(dim))
    )
    weights = seeds.normal("initial weights", params.sampled_neurons, dim)
    levels = torch.full_like(weights[..., 0], params.threshold * math.sqrt(dim))
    exact = mixture_gradient(problem, weights, levels)
    sample = problem.sample(seeds, f"train {samples}", samples)
    sampled = simplified_gradient(sample.inputs, sample.labels, weights, levels)
    deviation = (sampled - exact).norm(dim=-1).amax(1)
    second = math.sqrt(float((problem.means.square().sum(1) * problem.weights).sum()) + problem.deviation**2 * dim)
    record(deviation=deviation, over_bound=deviation / (second * samples ** (-1 / 3)))
    # Sure neurons have ‖G‖ of about p_B‖μ‖; four fifths of it are the floor, as in the XOR case.
    floor = 0.8 * float(problem.weights.min()) * math.sqrt(dim)
    record(escaped=escaped(exact, sampled, problem.features.to(exact), params.cone, floor))


@part.arm("linear", over={"threshold_ratio": [0.0, 0.5, 1.0, 2.0, 4.0, 8.0]}, chunk=4)
def linear(params: Params, seeds: Seeds, record: lab.Recorder, *, threshold_ratio: float) -> None:
    """Sampled first gradients on linear data, thresholds in units of the spread of ⟨w, x⟩, and a head on them."""
    problem = LinearData(params.linear_dim, margin=0.5)
    # At 0 the sign of the threshold is kept: what counts is which side of it a neuron is on.
    threshold = max(threshold_ratio, 1e-6) * problem.typical_norm()
    start = symmetric_start(seeds, params.linear_neurons, problem.dim, threshold)
    train = problem.sample(seeds, "train", params.linear_samples)
    found = sampled_gradients(start, train)
    m = params.linear_neurons
    off = 1 - cosines(found, problem.features.to(found))[..., 0]
    record(off_negative=off[:, m : 2 * m].median(1).values, median_cosine=1 - off[:, m : 2 * m].median(1).values)
    record(trials=m, dead_positive=(found[:, :m].norm(dim=-1) == 0).double().mean(1))
    test = problem.sample(seeds, "test", params.test_samples)
    net = stepped(start, found, knot=problem.typical_norm())
    fitted = ridge_head(hidden_layer(net), train, test.inputs)
    record(trials=params.test_samples, error=wrong(fitted.outputs, test.labels))
