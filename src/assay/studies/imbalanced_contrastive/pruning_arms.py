"""The pruning mechanism: a constructed state in which small neurons are those of the rare feature, and its control."""

from __future__ import annotations

import itertools
from typing import Any

from assay.training.seeds import Seeds

from .learners import Cells, Contrastive, Encoders, constructed_start, random_start
from .mechanism import minority_share
from .study import last_look, nan_if_diverged, pruning_problem, study

PRUNING = ("pruned_majority", "pruned_dim", "pruned_rate", "pruned_rare", "pruned_steps", "pruned_batch", "per_feature",
           "tokens", "alpha", "rate", "temperature", "bias")  # fmt: skip
GRADIENTS = {"plain": (0, False), "logit-masked": (1, False), "straight-through": (1, True)}


def _bytes(params: Any, cells: int) -> float:
    return 8.0 * cells * params.pruned_batch * (params.pruned_batch + params.pruned_dim)


def pruned_state(params: Any, cells: int, seeds: Seeds) -> Encoders:
    """Pure neurons for every feature, those of the rare one half as large."""
    return constructed_start(pruning_problem(params), cells, seeds, per_feature=params.per_feature, scale=0.7,
                             rare_share=0.5, bias=params.bias)  # fmt: skip


def pruning_recipe(params: Any, **changes: Any) -> Contrastive:
    usual = dict(steps=params.pruned_steps, batch=params.pruned_batch, rate=params.rate,
                 temperature=params.temperature, bias_on=0, bias=params.bias)  # fmt: skip
    return Contrastive(**{**usual, **changes})


@study.arm("pruning", over={"decay": lambda p: p.pruned_decays}, uses=(*PRUNING, "pruned_decays"), tolerance=2e-2,
           working_set=lambda p: _bytes(p, 3 * len(p.pruned_rare)))  # fmt: skip
def pruning(params, seeds, record, *, decay):
    """From a constructed stage-three state: plain training against pruning, with and without gradient where masked."""
    problem = pruning_problem(params)
    points = list(itertools.product(params.pruned_rare, GRADIENTS))
    kinds = [GRADIENTS[kind] for _, kind in points]
    cells = Cells([e for e, _ in points], [0.05] * len(points), [decay] * len(points),
                  [params.alpha * on for on, _ in kinds], [straight for _, straight in kinds])  # fmt: skip
    every = max(1, params.pruned_steps // 60)
    run = pruning_recipe(params, looks=tuple(range(0, params.pruned_steps, every)))
    for look in run.train(problem, cells, seeds, pruned_state(params, len(points), seeds)):
        own = look.encoders.weights.unflatten(2, (problem.features, -1)).diagonal(dim1=2, dim2=4).mean(2)
        share = minority_share(look.mask, problem) + nan_if_diverged(look.encoders.weights)
        for c, (epsilon, gradient) in enumerate(points):
            at = {"epsilon": epsilon, "gradient": gradient}
            rare, frequent = own[:, c, -1], own[:, c, :-1].mean(-1)
            record(step=look.step, at=at, rare_coefficient=rare, frequent_coefficient=frequent, ratio=rare / frequent)
            if gradient != "plain":
                record(step=look.step, at=at, pruned_rare_share=share[:, c])


@study.arm("pruning-random", uses=(*PRUNING, "bias_on", "init"), tolerance=2e-2,
           working_set=lambda p: _bytes(p, 2 * len(p.pruned_rare)))  # fmt: skip
def pruning_random(params, seeds, record):
    """The same from random weights, where small neurons are not those of the rare feature."""
    problem = pruning_problem(params)
    points = list(itertools.product(params.pruned_rare, (0.0, params.alpha)))
    cells = Cells([e for e, _ in points], [0.05] * len(points), [0.01] * len(points), [a for _, a in points])
    run = pruning_recipe(params, bias_on=params.bias_on)
    width = problem.features * params.per_feature
    start = random_start(problem, len(points), seeds, width=width, scale=params.init)
    energy = (
        last_look(run, problem, cells, seeds, start).encoders.weights[..., problem.majority].square().sum(-1).sqrt()
    )
    for c, (epsilon, alpha) in enumerate(points):
        record(at={"epsilon": epsilon, "pruned": bool(alpha)}, rare_energy=energy[:, c])
