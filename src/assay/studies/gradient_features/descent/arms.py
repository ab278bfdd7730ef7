"""Descent after the first step: a head on frozen features against its bound, and how far both layers move."""

from __future__ import annotations

import math

import torch
from pydantic import Field, PositiveFloat

from assay import lab
from assay.training import Seeds, TwoLayer

from ..block_parity.problem import BlockParity
from ..learners import RELU, hidden_layer, sampled_gradients, stepped, symmetric_start, train_both
from ..multi_index.learners import learned_features
from ..multi_index.problem import MultiIndex
from ..params import FirstStep
from ..problem import Sample, mixture_of
from .learners import CURVATURE, OwnFeatures, best_head, descend_head, loss
from .theory import best_bound, drift_envelope, flip_bound, generalisation_bound, smoothness

PENALTIES = tuple(10.0 ** (k / 2) for k in range(-8, 3))  # the first head stands for the best, the others compare
CASES = {"mixture": "logistic", "parity": "logistic", "multi-index": "squared"}


class Params(FirstStep):
    frozen_samples: int = Field(1500, ge=100, description="samples of descent on frozen features")
    frozen_neurons: int = Field(48, ge=8, description="neurons m of it, of which there are 4m")
    frozen_steps: int = Field(1000, ge=10, description="steps of it")
    drift_rates: tuple[PositiveFloat, ...] = Field(
        (1e-5, 1e-4, 1e-3, 1e-2, 1e-1), min_length=1, description="rates at which drift is followed"
    )
    drift_steps: int = Field(50, ge=5, description="steps for which drift is followed")


part = lab.Part(
    "descent",
    params=Params,
    presets={
        "smoke": lab.PartPreset(frozen_samples=300, frozen_neurons=12, frozen_steps=100, drift_steps=10),
    },
)


def _case(params: Params, seeds: Seeds, case: str) -> tuple[TwoLayer | None, Sample, Sample, torch.Tensor]:
    """Stepped network where there is one, training and test sample, and features of all training inputs."""
    n, m = params.frozen_samples, params.frozen_neurons
    if case == "multi-index":
        index = MultiIndex(20)
        train, test = index.sample(seeds, "train", n), index.sample(seeds, "test", 2000)
        features, _ = learned_features(seeds, train, 2 * m)
        return None, train, test, torch.stack([features(i, x) for i, x in enumerate(train.inputs)])
    problem = mixture_of("multi-xor", 64) if case == "mixture" else BlockParity(50, 5)
    knot, spread = (4.0, 8.0) if case == "mixture" else (1.0, BlockParity(50, 5).spread)
    train, test = problem.sample(seeds, "train", n), problem.sample(seeds, "test", 2000)
    start = symmetric_start(seeds, m, train.inputs.shape[-1], params.threshold * spread)
    net = stepped(start, sampled_gradients(start, train), knot)
    hidden = hidden_layer(net)
    return net, train, test, torch.stack([hidden(i, x) for i, x in enumerate(train.inputs)])


@part.arm(
    "frozen",
    over={"case": tuple(CASES)},
    uses=("threshold", "frozen_samples", "frozen_neurons", "frozen_steps"),
    dtype="float64",
    chunk=1,
    tolerance=1e-3,
)
def frozen(params: Params, seeds: Seeds, record: lab.Recorder, *, case: str) -> None:
    """Full-batch descent of the head with rate 1/L_s beside what the theorem says of it with its best comparator."""
    kind = CASES[case]
    net, train, test, features = _case(params, seeds, case)
    moments = sorted({max(1, round(params.frozen_steps ** (i / 12))) for i in range(13)})
    gaps, bounds, generalisation = [], [], []
    for i in range(len(seeds)):
        phi, y = features[i], train.labels[i]
        rate = 1 / smoothness(phi, CURVATURE[kind])
        heads = [best_head(phi, y, kind, penalty) for penalty in PENALTIES]
        heads.append(torch.zeros_like(heads[0]))
        losses = [float(loss(phi @ head, y, kind)) for head in heads]
        sizes = [float(head.square().sum()) for head in heads]
        seen, limit = [], []
        for step, head in descend_head(phi, y, kind, rate, params.frozen_steps):
            if step in moments:
                seen.append(float(loss(phi @ head, y, kind)) - losses[0])
                limit.append(best_bound(losses, sizes, rate, step) - losses[0])
        gaps.append(seen)
        bounds.append(limit)
        if net is not None:
            hidden = hidden_layer(net)(i, test.inputs[i])
            gap = float(loss(hidden @ head, test.labels[i], kind) - loss(phi @ head, y, kind))
            largest = float(train.inputs[i].norm(dim=-1).max())
            size = float(head.norm())
            promised = generalisation_bound(size, net.weights[i], net.biases[i], largest, params.frozen_samples)
            generalisation.append(gap / promised)
    if generalisation:
        record(generalisation_over_bound=generalisation)
    record.curve(moments, gap=torch.tensor(gaps).T, bound=torch.tensor(bounds).T)


@part.arm(
    "drift",
    over={"rate": lambda p: p.drift_rates},
    uses=("threshold", "cone", "drift_steps"),
    dtype="float64",  # at the smallest rate the movement is 1e-9 of a weight
    chunk=2,
    tolerance=1e-2,
)
def drift(params: Params, seeds: Seeds, record: lab.Recorder, *, rate: float) -> None:
    """Both layers trained on four XOR axes: movement of the first layer beside the envelope of its recursion, what
    neurons keep of their own features, and gates that flip."""
    problem = mixture_of("multi-xor", 64)
    start = symmetric_start(seeds, 64, 64, params.threshold * 8)
    net = stepped(start, sampled_gradients(start, problem.sample(seeds, "first step", 4000)), knot=4.0)
    batches = [problem.sample(seeds, f"batch {step}", 500) for step in range(1, params.drift_steps + 1)]
    input_norm = max(float(sample.inputs.norm(dim=-1).mean(1).max()) for sample in batches)
    norms = net.weights.norm(dim=-1)
    reach = input_norm * norms + net.biases.abs()
    _, allowed = drift_envelope(net.output, reach, input_norm, rate, params.drift_steps)
    test = problem.sample(seeds, "test", 1000)
    gates = net.preactivation(test.inputs) > 0
    largest = float(test.inputs.norm(dim=-1).max())
    used = norms.new_zeros(len(seeds))
    features = OwnFeatures(net, problem.features, params.cone)
    moments = {0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, params.drift_steps}
    for step, now in train_both(net, lambda step: batches[step - 1], rate, params.drift_steps):
        moved = (now.weights - net.weights).norm(dim=-1)
        # Rounding in weights of this size is no movement. What has not moved uses nothing, of an envelope of 0 too.
        beyond = (moved - 1e-14 * norms).clamp(min=0)
        used = torch.maximum(used, torch.where(beyond == 0, beyond, beyond / allowed[step]).amax(1))
        if step in moments:
            flips = ((now.preactivation(test.inputs) > 0) != gates).double().mean((1, 2))
            record(step=step, flips=flips, own_cosine=features.cosine(now), kept=features.kept(now))
            bound = flip_bound(moved / norms, largest).mean(1)
            record(step=step, flips_over_bound=torch.where(flips == 0, flips, flips / bound))
    both = now(test.inputs, RELU)
    head_only = TwoLayer(net.weights, net.biases, now.output)(test.inputs, RELU)
    change = ((1 - test.labels * both).clamp(min=0) - (1 - test.labels * head_only).clamp(min=0)).mean(1).abs()
    bound = input_norm * now.output.norm(dim=1) * math.sqrt(now.output.shape[1]) * moved.amax(1)
    record(drift=(moved / norms).amax(1), envelope_used=used)
    record(loss_change=change, loss_change_bound=bound)
