"""Is there a good sparse head on stepped neurons? The constructed one, networks that bound OPT, and the trade-off."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Self

import numpy as np
import torch
from pydantic import Field, PositiveFloat, PositiveInt, model_validator

from assay import lab
from assay.methods.gradient_bounds import FeatureConstants, gradient_bound, gradient_requirements
from assay.training import Seeds

from ..params import FirstStep, check_growing
from ..problem import GaussianMixture, Sample
from ..theory import cosines, in_cone, mixture_gradient
from .theory import components_of, construct, head_cost, small_opt_upper_bound

LABELS = (1.0, -1.0)  # of the axes, in turns
WIDTHS = (0.05, 0.1, 0.2)
CONES = (0.01, 0.02, 0.05, 0.1, 0.2)  # tried for the construction
SHARES = (0.01, 0.003, 0.001)  # p: of neurons that a gradient feature is to draw into its cone
PAIRS = (1, 2, 3)


class Params(FirstStep):
    head_dim: int = Field(100, ge=16, description="dimension of the XOR axes of the constructed head")
    head_widths: tuple[PositiveInt, ...] = Field((256, 1024, 4096, 16384), description="neurons m of the construction")
    trade_weights: tuple[PositiveFloat, PositiveFloat, PositiveFloat] = Field(
        (0.5, 0.3, 0.2), description="weights of the pairs of XOR axes of the trade-off, whose labels are opposite"
    )
    trade_neurons: int = Field(16384, ge=2000, description="neurons whose first gradients say how wide cones must be")
    program_samples: int = Field(400, ge=50, description="samples to which networks on few axes are fitted")
    program_held: int = Field(20_000, ge=100, description="samples on which their loss is measured")

    @model_validator(mode="after")
    def _widths_grow(self) -> Self:
        check_growing("head_widths", self.head_widths)
        return self

    def trade_mixture(self) -> GaussianMixture:
        """XOR axes in pairs of one weight and opposite labels, the heaviest pair first: who does not see a pair cannot
        gain by a guess of its label."""
        weights = tuple(weight for weight in self.trade_weights for _ in LABELS)
        return GaussianMixture.multi_xor(
            self.head_dim, weights, LABELS * len(self.trade_weights), math.sqrt(self.head_dim)
        )


part = lab.Part(
    "existence",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            head_dim=64, head_widths=(256, 512, 1024), trade_neurons=4096, program_samples=60, program_held=400
        ),
        "paper": lab.PartPreset(head_widths=(256, 1024, 4096, 16384, 65536), trade_neurons=65536),
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
    problem = GaussianMixture.multi_xor(params.head_dim, (0.25,) * 4, LABELS * 2, root)
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
    heights = labels.double() / (knot / 2)
    terms = (test.inputs @ directions.T.to(test.inputs) - knot).clamp(min=0).double() * heights.to(test.inputs.device)
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
            found[cone] = (head, head.bound(2 / knot, norm), neurons * share)
        head, bound, count = found[params.cone]
        made = (test.inputs[seed].double() @ stepped.T - threshold).clamp(min=0) @ head.outputs
        gap = float((made - terms[seed].sum(-1)).abs().mean())
        served = float((made - terms[seed] @ head.served.to(terms)).abs().mean())
        least = min((each for head, each, _ in found.values() if not head.empty), default=math.inf)
        rows.append((gap, served, bound, least, head.support, head.empty, count))
    columns = [list(column) for column in zip(*rows, strict=True)]
    record(gap=columns[0], served_gap=columns[1], bound=columns[2], least_bound=columns[3])
    record(support=columns[4], empty=columns[5], caught=columns[6])


@part.arm(
    "trade-off",
    over={"pairs": PAIRS},
    uses=("threshold", "head_dim", "trade_weights", "trade_neurons", "program_samples", "program_held"),
    chunk=1,
    tolerance=1e-3,
)
def trade_off(params: Params, seeds: Seeds, record: lab.Recorder, *, pairs: int) -> None:
    """The loss of a network of two neurons an axis over the heaviest pairs of axes, on samples that it was not fitted
    to (an upper bound on OPT); the same with four neurons more, on these axes or on two that no component lies on as
    well; and the slack that so many features cost, in cones of stated widths and in the narrowest that hold so large a
    share of gradients."""
    problem, axes = params.trade_mixture(), 2 * pairs
    root = math.sqrt(params.head_dim)
    sample = problem.sample(seeds, "program", params.program_samples)
    held = problem.sample(seeds, "held-out", params.program_held)
    largest = 4 / root  # B_a1 = 1/t of the oracle, t = ‖μ‖/4; its knots, and B_b, are 2t
    known = list(range(axes))
    record(opt=_held_losses(sample, held, known, 2 * axes, largest))
    record(opt_wider=_held_losses(sample, held, known, 2 * axes + 4, largest))
    record(opt_with_noise=_held_losses(sample, held, [*known, -2, -1], 2 * axes + 4, largest))
    norm = sample.inputs.norm(dim=-1).mean(1)
    weights = seeds.normal("initial weights", params.trade_neurons, params.head_dim)
    exact = mixture_gradient(problem, weights, weights.new_full(weights.shape[:2], params.threshold * root))
    axis = torch.eye(1, params.head_dim).roll(axes - 1, 1).to(exact)
    for width in WIDTHS:
        caught = in_cone(exact, axis, width)[..., 0].double().mean(1)
        record(at={"width": width}, slack=2 * axes * largest * norm * math.sqrt(2 * width))
        record(at={"width": width}, trials=params.trade_neurons, caught=caught)
    along = cosines(exact, axis)[..., 0].abs()
    for share in SHARES:
        narrowest = 1 - along.quantile(1 - share, dim=1)
        record(at={"share": share}, narrowest=narrowest, least_slack=2 * axes * largest * norm * (2 * narrowest).sqrt())


def _held_losses(sample: Sample, held: Sample, axes: list[int], terms: int, largest: float) -> list[float]:
    """Seed by seed, what a network of so many neurons on these axes loses on samples that it was not fitted to. Its
    thresholds have either sign, as those of gradient features do where E[yx] = 0."""
    reach = 2 / largest
    knots = np.linspace(-reach, reach, 9)
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
