"""Is there a good sparse head on stepped neurons? The constructed one, networks that bound OPT, and the trade-off."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Self

import numpy as np
import torch
from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.methods.gradient_bounds import FeatureConstants, gradient_bound, gradient_requirements
from assay.training import Seeds

from ..params import FirstStep, check_growing
from ..problem import GaussianMixture, Sample
from ..theory import cosines, in_cone, mixture_gradient
from .theory import components_of, construct, head_cost, small_opt_upper_bound

LABELS = (1.0, -1.0, 1.0, -1.0)
WIDTHS = (0.05, 0.1, 0.2)
CONES = (0.01, 0.02, 0.05, 0.1, 0.2)  # tried for the construction
SHARE = 0.01  # of neurons that a direction must draw into its cone to count as a gradient feature


class Params(FirstStep):
    head_dim: int = Field(100, ge=16, description="dimension of the XOR axes of the constructed head")
    head_widths: tuple[PositiveInt, ...] = Field((256, 1024, 4096, 16384), description="neurons m of the construction")
    trade_weights: tuple[float, float, float, float] = Field(
        (0.4, 0.3, 0.2, 0.1), description="weights of the XOR axes of the trade-off"
    )
    program_samples: int = Field(400, ge=50, description="samples to which networks on few axes are fitted")
    program_held: int = Field(4000, ge=100, description="samples on which their loss is measured")

    @model_validator(mode="after")
    def _widths_grow(self) -> Self:
        check_growing("head_widths", self.head_widths)
        return self


part = lab.Part(
    "existence",
    params=Params,
    presets={
        "smoke": lab.PartPreset(head_dim=64, head_widths=(256, 512, 1024), program_samples=60, program_held=400),
        "paper": lab.PartPreset(head_widths=(256, 1024, 4096, 16384, 65536)),
    },
)


@part.arm(
    "construction",
    over={"neurons": lambda p: p.head_widths},
    uses=("threshold", "cone", "head_dim"),
    chunk=2,
    tolerance=1e-3,
)
def construction(params: Params, seeds: Seeds, record: lab.Recorder, *, neurons: int) -> None:
    """The head of the existence lemma on neurons after an exact step, with ε_a = 1.5/√(m·p̂); and the least bound of
    such heads over widths of the cone that leave no component without a neuron."""
    root = math.sqrt(params.head_dim)
    problem = GaussianMixture.multi_xor(params.head_dim, (0.25,) * 4, LABELS, root)
    directions, labels = components_of(problem)
    knot = root / 2  # of g* = Σ_j (y_j/t)·max(0, ⟨D_j, x⟩ − 2t) with t = ‖μ‖/4
    weights = seeds.normal("initial weights", neurons, params.head_dim)
    threshold = params.threshold * root
    exact = mixture_gradient(problem, weights, weights.new_full(weights.shape[:2], threshold))
    outputs = seeds.normal("initial outputs", neurons)
    # Scaled so that the median neuron within the cones switches on at the oracle's knot.
    caught = in_cone(exact, directions, params.cone).any(-1)
    steps = outputs.unsqueeze(-1) * exact
    test = problem.sample(seeds, "test", 2000)
    unit = (test.inputs @ directions.T.to(test.inputs) - knot).clamp(min=0)
    target = unit.double() @ labels.to(unit.device).double() / (knot / 2)
    heights = labels.double() / (knot / 2)
    rows = []
    for seed in range(len(seeds)):
        scale = threshold / knot / steps[seed][caught[seed]].norm(dim=-1).median()
        stepped = (steps[seed] * scale).double()
        norm = float(test.inputs[seed].norm(dim=-1).mean())
        found = {}
        for cone in {*CONES, params.cone}:
            share = float(in_cone(exact[seed], directions, cone).double().mean())  # p̂ of one direction, both sides
            wanted = 1.5 / math.sqrt(max(neurons * share, 1))
            head = construct(stepped, threshold, directions.double(), heights, knot, cone=cone, tolerance=wanted)
            found[cone] = (head, head.bound(len(directions), 2 / knot, norm), neurons * share)
        head, bound, count = found[params.cone]
        hidden = (test.inputs[seed].double() @ stepped.T - threshold).clamp(min=0)
        gap = float((hidden @ head.outputs - target[seed]).abs().mean())
        least = min((each for head, each, _ in found.values() if not head.empty), default=math.inf)
        rows.append((gap, bound, least, head.support, head.empty, count))
    columns = [list(column) for column in zip(*rows, strict=True)]
    record(gap=columns[0], bound=columns[1], least_bound=columns[2])
    record(support=columns[3], empty=columns[4], caught=columns[5])


@part.arm(
    "trade-off",
    over={"axes": [1, 2, 3, 4]},
    uses=("threshold", "head_dim", "trade_weights", "program_samples", "program_held"),
    chunk=1,
    tolerance=1e-3,
)
def trade_off(params: Params, seeds: Seeds, record: lab.Recorder, *, axes: int) -> None:
    """The loss of a network of two neurons an axis over the heaviest axes, on samples that it was not fitted to (an
    upper bound on OPT); the same with two neurons more, on these axes or on one that no component lies on as well; and
    the slack that so many features cost, in cones of stated widths and in the narrowest that hold a feature."""
    root = math.sqrt(params.head_dim)
    problem = GaussianMixture.multi_xor(params.head_dim, params.trade_weights, LABELS, root, balanced=False)
    sample = problem.sample(seeds, "program", params.program_samples)
    held = problem.sample(seeds, "held-out", params.program_held)
    largest = 4 / root  # B_a1 = 1/t of the oracle, t = ‖μ‖/4
    known = list(range(axes))
    record(opt=_held_losses(sample, held, known, 2 * axes, largest))
    record(opt_wider=_held_losses(sample, held, known, 2 * axes + 2, largest))
    record(opt_with_noise=_held_losses(sample, held, [*known, -1], 2 * axes + 2, largest))
    norm = sample.inputs.norm(dim=-1).mean(1)
    weights = seeds.normal("initial weights", 4096, params.head_dim)
    exact = mixture_gradient(problem, weights, weights.new_full(weights.shape[:2], params.threshold * root))
    axis = torch.eye(1, params.head_dim).roll(axes - 1, 1).to(exact)
    for width in WIDTHS:
        caught = in_cone(exact, axis, width)[..., 0].double().mean(1)
        record(at={"width": width}, slack=2 * axes * largest * norm * math.sqrt(2 * width))
        record(at={"width": width}, trials=4096, caught=caught)
    narrowest = 1 - cosines(exact, axis)[..., 0].abs().quantile(1 - SHARE, dim=1)
    record(narrowest=narrowest, least_slack=2 * axes * largest * norm * (2 * narrowest).sqrt())


def _held_losses(sample: Sample, held: Sample, axes: list[int], terms: int, largest: float) -> list[float]:
    """Seed by seed, what a network of so many neurons on these axes loses on samples that it was not fitted to."""
    knots = np.linspace(0, math.sqrt(sample.inputs.shape[-1]), 9)
    losses = []
    for (x, y), (own_x, own_y) in zip(_rows(held, axes), _rows(sample, axes), strict=True):
        network = small_opt_upper_bound(
            own_x, own_y, knots, terms=terms, largest=largest, norm=largest * math.sqrt(terms)
        )
        losses.append(network.loss_on(x, y))
    return losses


def _rows(sample: Sample, axes: list[int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Projections and labels of each seed."""
    for inputs, labels in zip(sample.inputs, sample.labels, strict=True):
        yield inputs[:, axes].double().cpu().numpy(), labels.double().cpu().numpy()


@part.arm("balance", over={"largest_output": [0.0625, 1.0, 16.0], "terms": [2, 32]}, uses=(), chunk=64)
def balance(params: Params, seeds: Seeds, record: lab.Recorder, *, largest_output: float, terms: int) -> None:
    """What a head of the existence lemma costs descent, beside the slack of its existence, at the theorem's sizes."""
    constants = FeatureConstants(
        share=0.5,
        floor=0.5,
        gamma=0.01,
        terms=terms,
        largest_output=largest_output,
        output_norm=largest_output * math.sqrt(terms),
        largest_knot=2.0,
        mean_norm=10.0,
        second_moment=100.0,
        largest_norm=12.0,
    )
    asked = gradient_requirements(constants, error=0.1, dim=100)
    slack = gradient_bound(constants, neurons=round(asked.neurons), samples=1).width
    record(cost_over_slack=head_cost(constants, asked) / slack)
