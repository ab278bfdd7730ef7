"""The order of learning on XOR axes of unequal weight: are small families of features fitted before larger ones? On two
pairs of axes, and on four with weights that halve from pair to pair."""

from __future__ import annotations

import math

import torch
from pydantic import Field
from torch import Tensor

from assay import lab
from assay.training import Seeds

from ..learners import RELU, stepped, symmetric_start, train_both, unmirrored
from ..mixtures.learners import component_errors
from ..params import FirstStep
from ..problem import GaussianMixture, Sample
from ..theory import mixture_gradient
from .theory import correlation, distance, least_loss, oracle

# Within each pair the labels differ, so that no class is heavier: predicting one class learns no axis.
LABELS = (1.0, -1.0, 1.0, -1.0)
PAIRS = 4
RATIOS = {"halving": 0.5, "equal": 1.0}  # of the weights of one pair to those of the pair before it
LEARNED = 0.05  # the error below which an axis counts as learned
NEAR_OPT = 0.02
SEEN = {"whole": math.inf, "clipped": 1.0}  # beyond the margin 1 the hinge loss sees no difference
WEIGHTS = {"unequal": (0.4, 0.4, 0.1, 0.1), "equal": (0.25, 0.25, 0.25, 0.25)}


class Params(FirstStep):
    order_dim: int = Field(100, ge=8, description="dimension of the XOR axes")
    order_neurons: int = Field(128, ge=8, description="neurons m, of which the network has 4m")
    order_steps: int = Field(400, ge=10, description="steps")
    order_rate: float = Field(0.03, gt=0, description="learning rate")
    order_batch: int = Field(500, ge=10, description="samples of every step")


part = lab.Part(
    "order",
    params=Params,
    presets={
        "smoke": lab.PartPreset(order_dim=36, order_neurons=32, order_steps=20, order_batch=100),
        "paper": lab.PartPreset(order_steps=2000, order_rate=0.01, order_batch=1000),
    },
)


@part.arm("order", over={"weights": tuple(WEIGHTS)}, chunk=4, tolerance=0.2)
def order(params: Params, seeds: Seeds, record: lab.Recorder, *, weights: str) -> None:
    """Both layers trained on fresh batches after an exact first step; errors per axis, nearness to smaller oracles."""
    root = math.sqrt(params.order_dim)
    problem = GaussianMixture.multi_xor(params.order_dim, WEIGHTS[weights], LABELS, norm=root)
    start = symmetric_start(seeds, params.order_neurons, problem.dim, params.threshold * root)
    exact = unmirrored(start, lambda w, b: mixture_gradient(problem, w, b), problem.label_mean.to(seeds.device))
    net = stepped(start, exact, knot=root / 2)
    test = problem.sample(seeds, "test", 4000)
    axis = test.components // 2
    tested = [(axis == j).sum(1) for j in range(4)]
    small, large = (oracle(problem, test.inputs, LABELS[:axes]) for axes in (2, 4))

    def batch(step: int) -> Sample:
        return problem.sample(seeds, f"batch {step}", params.order_batch)

    moments = sorted({*range(1, 21), *(round(1.15**i) for i in range(100)), params.order_steps})
    moments = [step for step in moments if 1 <= step <= params.order_steps]
    last_wrong = torch.zeros(len(seeds), 4)
    steps, leads = [], []
    clipped: list[Tensor] = []  # beyond the margin 1 the hinge loss sees no difference
    for step, now in train_both(net, batch, params.order_rate, params.order_steps):
        if step not in moments:
            continue
        outputs = now(test.inputs, RELU)
        missed = (outputs * test.labels <= 0).to(seeds.dtype)
        shares = torch.stack([(missed * (axis == j)).sum(1) / tested[j] for j in range(4)], 1)
        last_wrong = torch.where(shares.cpu() > 0.05, float(step), last_wrong)
        steps.append(step)
        leads.append(correlation(outputs, large) - correlation(outputs, small))
        short, small_short, large_short = (each.clamp(-1, 1) for each in (outputs, small, large))
        clipped.append(correlation(short, large_short) - correlation(short, small_short))
        for j in range(4):
            record(step=step, at={"axis": j + 1}, trials=tested[j].tolist(), axis_error=shares[:, j])
    record.curve(steps, larger_oracle_lead=torch.stack(leads), clipped_lead=torch.stack(clipped))
    logs = (last_wrong + 1).log()
    record(heavy_time=logs[:, :2].mean(1), light_time=logs[:, 2:].mean(1))
    record(heavy_first=last_wrong[:, :2].amax(1) < last_wrong[:, 2:].amin(1))


@part.arm(
    "pairs",
    over={"weights": tuple(RATIOS)},
    uses=("threshold", "order_dim", "order_neurons", "order_steps", "order_rate", "order_batch"),
    chunk=2,
    tolerance=0.2,
)
def pairs(params: Params, seeds: Seeds, record: lab.Recorder, *, weights: str) -> None:
    """Both layers trained on four pairs of axes: when each is learned, and which oracle the network is nearest to."""
    root, labels = math.sqrt(params.order_dim), LABELS[:2] * PAIRS
    shares = tuple(RATIOS[weights] ** (j // 2) for j in range(2 * PAIRS))
    problem = GaussianMixture.multi_xor(params.order_dim, shares, labels, norm=root)
    start = symmetric_start(seeds, params.order_neurons, problem.dim, params.threshold * root)
    exact = unmirrored(start, lambda w, b: mixture_gradient(problem, w, b), problem.label_mean.to(seeds.device))
    net = stepped(start, exact, knot=root / 2)
    test = problem.sample(seeds, "test", 4000)
    by_axis = Sample(test.inputs, test.labels, test.components // 2)
    oracles = [oracle(problem, test.inputs, labels[: 2 * (pair + 1)]) for pair in range(PAIRS)]
    best = [least_loss(outputs, test.labels) for outputs in oracles]

    def batch(step: int) -> Sample:
        return problem.sample(seeds, f"batch {step}", params.order_batch)

    moments = {*range(1, 13), *(round(1.25**i) for i in range(40)), params.order_steps}
    times = torch.zeros(len(seeds), 2 * PAIRS)
    reached = torch.full((len(seeds), PAIRS), float(params.order_steps))
    for step, now in train_both(net, batch, params.order_rate, params.order_steps):
        if step not in moments:
            continue
        outputs = now(test.inputs, RELU)
        wrong, counts = component_errors(outputs, by_axis, 2 * PAIRS)
        # What is not finite is not learned.
        times = torch.where((wrong <= LEARNED).cpu(), times, float(step))
        for j in range(2 * PAIRS):
            record(step=step, at={"axis": j + 1}, trials=counts[:, j].tolist(), axis_error=wrong[:, j])
        for name, limit in SEEN.items():
            seen, known = outputs.clamp(-limit, limit), [each.clamp(-limit, limit) for each in oracles]
            near = torch.stack([correlation(seen, each) for each in known], 1)
            nearest = torch.where(near.isfinite().all(1), near.argmax(1) + 1.0, math.nan)
            record(step=step, at={"outputs": name}, nearest=nearest)
            for pair in range(PAIRS):
                far = distance(seen, known[pair])
                at: dict[str, int | str] = {"oracle": pair + 1, "outputs": name}
                record(step=step, at=at, oracle_distance=far, oracle_correlation=near[:, pair])
        loss = (1 - test.labels * outputs).clamp(min=0).mean(1)
        for pair in range(PAIRS):
            there = (loss <= best[pair] + NEAR_OPT).cpu()
            reached[:, pair] = torch.where(there, reached[:, pair].clamp(max=step), reached[:, pair])
    for j in range(2 * PAIRS):
        record(at={"axis": j + 1}, learning_time=times[:, j])
    for pair in range(PAIRS):
        record(at={"oracle": pair + 1}, least_loss=best[pair], time_near_least=reached[:, pair])
