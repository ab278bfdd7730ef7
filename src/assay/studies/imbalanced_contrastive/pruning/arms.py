"""Forward pruning over many steps: a constructed state in which small neurons are those of the rare feature, and its
control."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from pydantic import Field, model_validator

from assay import lab
from assay.training import Seeds

from ..learners import Cells, Contrastive, Encoders, nan_if_diverged, random_start
from ..params import Training, check_biases_are_used, check_decay, check_frequencies, check_rising
from ..problem import TokenPairs
from .learners import constructed_start, minority_share, own_neurons


class Params(Training):
    pruned_majority: int = Field(7, ge=1, description="frequent features of the pruning experiment; one is rare")
    pruned_dim: int = Field(60, ge=3, description="its input dimension")
    pruned_rate: float = Field(0.25, gt=0, le=1, description="its p₀")
    pruned_rare: tuple[float, ...] = Field((0.1, 0.3, 0.5), min_length=2, description="its ε")
    pruned_decays: tuple[float, ...] = Field((0.01, 0.05), min_length=1, description="its weight decays λ")
    pruned_steps: int = Field(1200, ge=10, description="its steps")
    pruned_batch: int = Field(192, ge=2, description="its batch")
    per_feature: int = Field(3, ge=1, description="pure neurons per feature in its constructed state")
    alpha: float = Field(0.125, gt=0, lt=1, description="share α of neurons that is pruned")

    @model_validator(mode="after")
    def _pruning_goes_together(self) -> Params:
        check_rising(pruned_rare=self.pruned_rare, pruned_decays=self.pruned_decays)
        check_frequencies(self.pruned_rare)
        if min(self.pruned_decays) < 0:
            raise ValueError("a weight decay is not negative")
        check_decay(self.rate, max(self.pruned_decays))
        check_biases_are_used(self.bias_on, pruned_steps=self.pruned_steps)
        neurons = self.pruned_problem.features * self.per_feature
        if not 0 < self.pruned_neurons < neurons:
            raise ValueError(f"alpha = {self.alpha:g} prunes {self.pruned_neurons} of {neurons} neurons")
        return self

    @property
    def pruned_problem(self) -> TokenPairs:
        return TokenPairs(self.pruned_majority, 1, self.pruned_dim, self.tokens, self.pruned_rate)

    @property
    def pruned_neurons(self) -> int:
        """How many neurons a mask hides."""
        return round(self.alpha * self.pruned_problem.features * self.per_feature)

    def constructed_state(self, cells: int, seeds: Seeds) -> Encoders:
        """Pure neurons for every feature, those of the rare one half as large."""
        shape = dict(scale=0.7, rare_share=0.5, bias=self.bias)
        return constructed_start(self.pruned_problem, cells, seeds, per_feature=self.per_feature, **shape)

    def pruning_recipe(self, steps: int, *, bias_on: int = 0, looks: Sequence[int] = ()) -> Contrastive:
        return Contrastive(steps, self.pruned_batch, self.rate, self.temperature, bias_on, self.bias, looks=looks)

    def pruning_bytes(self, cells: int) -> float:
        """What one seed touches in a step."""
        return 8.0 * cells * self.pruned_batch * (self.pruned_batch + self.pruned_dim)


part = lab.Part(
    "pruning",
    params=Params,
    presets={
        "smoke": lab.PartPreset(pruned_rare=(0.1, 0.5), pruned_decays=(0.01,), pruned_steps=60, pruned_batch=32),
        "paper": lab.PartPreset(fewer={"pruning": 20, "pruning-random": 40}),
    },
)

# What the constructed state and a step from it depend on; a whole training depends on more.
STATE = (
    "pruned_majority",
    "pruned_dim",
    "pruned_rate",
    "pruned_batch",
    "per_feature",
    "tokens",
    "rate",
    "temperature",
    "bias",
)
PRUNING = (*STATE, "pruned_rare", "pruned_steps", "alpha")
GRADIENTS = {"plain": (0, False), "logit-masked": (1, False), "straight-through": (1, True)}


@part.arm(
    "pruning",
    over={"decay": lambda p: p.pruned_decays},
    uses=PRUNING,
    tolerance=2e-2,
    working_set=lambda p: p.pruning_bytes(3 * len(p.pruned_rare)),
)
def pruning(params: Params, seeds: Seeds, record: lab.Recorder, *, decay: float) -> None:
    """From a constructed stage-three state: plain training against pruning, with and without gradient where masked."""
    problem = params.pruned_problem
    points = list(itertools.product(params.pruned_rare, GRADIENTS))
    kinds = [GRADIENTS[kind] for _, kind in points]
    cells = Cells(
        rare=[epsilon for epsilon, _ in points],
        deviation=[0.05] * len(points),
        decay=[decay] * len(points),
        alpha=[params.alpha * on for on, _ in kinds],
        straight=[straight for _, straight in kinds],
    )
    every = max(1, params.pruned_steps // 60)
    run = params.pruning_recipe(params.pruned_steps, looks=range(0, params.pruned_steps, every))
    for look in run.train(problem, cells, seeds, params.constructed_state(len(points), seeds)):
        own = torch.unflatten(look.encoders.weights, 2, (problem.features, -1)).diagonal(dim1=2, dim2=4).mean(2)
        share = minority_share(look.mask, problem) + nan_if_diverged(look.encoders.weights)
        for c, (epsilon, gradient) in enumerate(points):
            at: dict[str, float | str] = {"epsilon": epsilon, "gradient": gradient}
            rare, frequent = own[:, c, -1], own[:, c, :-1].mean(-1)
            record(step=look.step, at=at, rare_coefficient=rare, frequent_coefficient=frequent, ratio=rare / frequent)
            if gradient != "plain":
                record(step=look.step, at=at, trials=params.pruned_neurons, pruned_rare_share=share[:, c])
            if look.step == params.pruned_steps:
                record(step=look.step, at=at, own_neurons=own_neurons(look.encoders.weights, problem)[:, c])


@part.arm(
    "pruning-random",
    uses=(*PRUNING, "bias_on", "init"),
    tolerance=2e-2,
    working_set=lambda p: p.pruning_bytes(2 * len(p.pruned_rare)),
)
def pruning_random(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """The same from random weights, where small neurons are not those of the rare feature."""
    problem = params.pruned_problem
    points = list(itertools.product(params.pruned_rare, (0.0, params.alpha)))
    cells = Cells([e for e, _ in points], [0.05] * len(points), [0.01] * len(points), [a for _, a in points])
    run = params.pruning_recipe(params.pruned_steps, bias_on=params.bias_on)
    width = problem.features * params.per_feature
    start = random_start(problem, len(points), seeds, width=width, scale=params.init)
    weights = run.trained(problem, cells, seeds, start).weights
    energy, own = weights[..., problem.majority].square().sum(-1).sqrt(), own_neurons(weights, problem)
    for c, (epsilon, alpha) in enumerate(points):
        record(at={"epsilon": epsilon, "pruned": bool(alpha)}, rare_energy=energy[:, c], own_neurons=own[:, c])
