"""One step: is the update that of the formula, with and without a mask, and what does a mask add to the growth?"""

from __future__ import annotations

from dataclasses import replace

import torch
from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..learners import Attention, Cells, Contrastive, infonce_step, random_start
from ..problem import MODES, Mode, TokenPairs
from ..pruning.arms import STATE
from ..pruning.arms import Params as Pruning
from ..theory import TAU
from .learners import masked_surrogate, plain_loss, pruned_growth, response_deviation


class Params(Pruning):
    one_step_batches: int = Field(40, ge=1, description="batches over which one pruned step is averaged")


part = lab.Part(
    "one_step",
    params=Params,
    presets={
        "smoke": lab.PartPreset(one_step_batches=2),
        "paper": lab.PartPreset(fewer={"gradient": 8, "one-step": 20}),
    },
)


@part.arm(
    "gradient",
    over={"attention": ["uniform", "softmax"], "token_mode": list(MODES)},
    uses=(),
    dtype="float64",
    tolerance=1e-9,
)
def gradient(params: Params, seeds: Seeds, record: lab.Recorder, *, attention: Attention, token_mode: Mode) -> None:
    """The closed-form gradient against autograd, plain and with a mask."""
    problem = TokenPairs(3, 2, 8, 3, 0.5, token_mode)
    run = Contrastive(1, 6, 0.1, TAU, 0, attention=attention)
    cells = Cells([0.5], [0.1], [0.0], [0.5])
    start = random_start(problem, 1, seeds, width=6, scale=0.5, attention=attention)
    start = replace(start, biases=0.2 * torch.linalg.vector_norm(start.weights, dim=-1))
    first, second = run.attended(run.pairs(problem, cells, seeds, "gradient").next(run.batch))
    mask = cells.masks(start.weights)
    assert mask is not None
    plain, masked, ones = (
        infonce_step(start, first, second, TAU, hidden).gradient for hidden in (None, mask, torch.ones_like(mask))
    )
    free = start.weights.clone().requires_grad_()
    (auto,) = torch.autograd.grad(plain_loss(free, start, first, second, TAU).sum(), free)
    (auto_mask,) = torch.autograd.grad(masked_surrogate(free, start, first, second, TAU, mask).sum(), free)
    pruned = torch.linalg.vector_norm(masked, dim=-1)[mask == 0].unflatten(0, (len(seeds), -1))
    record(
        autograd_deviation=_largest(plain - auto) / _largest(auto),
        masked_autograd_deviation=_largest(masked - auto_mask) / _largest(auto_mask),
        trivial_mask_difference=_largest(ones - plain),
        pruned_gradient=pruned.mean(1) / torch.linalg.vector_norm(plain, dim=-1).amax((1, 2)),
    )


def _largest(gradient: torch.Tensor) -> torch.Tensor:
    """The largest entry of a seed's gradients: (seeds, cells, neurons, dim) → (seeds,)."""
    return gradient.abs().amax((1, 2, 3))


@part.arm(
    "one-step",
    over={"epsilon": lambda p: p.pruned_rare},
    uses=(*STATE, "one_step_batches"),
    dtype="float64",
    tolerance=1e-6,
    working_set=lambda p: 64.0 * p.pruned_batch * (p.pruned_batch + p.pruned_dim),
)
def one_step(params: Params, seeds: Seeds, record: lab.Recorder, *, epsilon: float) -> None:
    """What a mask over the rare feature's neurons adds to the growth of every feature, at a constructed state."""
    problem = params.pruned_problem
    width = problem.features * params.per_feature
    counts = list(range(params.per_feature + 1))
    cells = Cells([epsilon] * len(counts), [0.05] * len(counts), [0.0] * len(counts), [n / width for n in counts])
    run, state = params.pruning_recipe(1), params.constructed_state(len(counts), seeds)
    for scale in (1.0, 0.2):
        start = replace(state, weights=scale * state.weights, biases=scale * state.biases)
        growth = pruned_growth(problem, cells, seeds, start, run, params.one_step_batches)
        boost = growth - growth[:, :1]
        for c, count in enumerate(counts[1:], 1):
            others = boost[:, c, :-1]
            record(
                at={"pruned": count, "scale": scale},
                rare_boost=boost[:, c, -1],
                other_boost=others.mean(-1),
                other_over_rare=others.abs().amax(-1) / boost[:, c, -1].abs(),
                plain_growth=growth[:, 0, -1],
            )
    whole = replace(cells, alpha=[params.per_feature / width] * len(counts))
    for scale in (1.0, 0.1, 0.03):
        found = response_deviation(problem, whole, seeds, state, run, scale)
        record(at={"scale": scale}, response_deviation=found)
