"""How strongly pretraining on a mixture of linear tasks weighs shared and private features."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..learners import gram
from ..params import Linear
from ..problem import LinearTasks
from ..theory import LOSSES, canonical, even_weights, optimal_weights, superposed
from .learners import feature_weights

# (s, r, T) of even mixtures in which the convex program is solved, an uneven mixture, and features of unequal scales.
EVEN = ((2, 4, 3), (2, 5, 3), (1, 5, 4), (5, 6, 2), (10, 20, 4), (1, 9, 8), (6, 8, 5), (3, 30, 2))
UNEVEN = LinearTasks(2, 4, 3, 4, mixture=(0.6, 0.3, 0.1))
SCALED = {
    "private 2, 1, 0.5": LinearTasks(2, 4, 3, 4, private_scales=(2.0, 1.0, 0.5)),
    "shared 0.3": LinearTasks(2, 4, 3, 4, shared_scales=(0.3, 0.3, 0.3)),
}
HALF, FEW = 0.5, 10  # private share of the label and number of labels where bounds are compared


class Params(Linear):
    mixture_tasks: tuple[Annotated[int, Field(ge=2)], ...] = Field(
        (3, 4), min_length=1, description="tasks T of the mixtures trained on"
    )


part = lab.Part(
    "weights",
    params=Params,
    presets={
        "smoke": lab.PartPreset(linear_steps=300, linear_batch=400, mixture_tasks=(3,)),
        "paper": lab.PartPreset(linear_steps=4000, linear_batch=2000, mixture_tasks=(2, 3, 4, 6)),
    },
)


@part.arm("program", uses=(), dtype="float64")
def program(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """The convex program behind the optimal weights, in even mixtures and in an uneven one."""
    for s, r, tasks in EVEN:
        problem = LinearTasks(s, r, tasks)
        found = optimal_weights(problem)
        error = max(abs(w - b) for w, b in zip(found, (1.0, *[1 / tasks] * tasks), strict=True))
        used = (s * found[0] + (r - s) * sum(found[1:])) / r
        record(at={"case": f"s = {s}, r = {r}, T = {tasks}"}, weight_error=error, budget_error=abs(used - 1))
    found = optimal_weights(UNEVEN)
    record(uneven_shared=found[0])
    for t, weight in enumerate(found[1:]):
        record(at={"number": t + 1}, uneven_private=weight)
    for scales, problem in SCALED.items():
        alpha, *private = optimal_weights(problem)
        record(at={"scales": scales}, scaled_shared=alpha)
        for t, weight in enumerate(private):
            record(at={"scales": scales, "number": t + 1}, scaled_private=weight)


@part.arm("equal-optima", uses=("shared", "relevant", "spurious"), dtype="float64", tolerance=1e-9)
def equal_optima(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Two different optima of one mixture on the same sample: features apart, and private blocks superposed."""
    problem = params.problem(4)
    pairs = problem.pairs(seeds, "common sample", 2000)
    apart, together = canonical(problem, (1.0, *[0.25] * 4)), superposed(problem)
    losses = []
    for weights in (apart, together):
        x, y = (z @ weights.to(z).T for z in pairs)
        losses.append(LOSSES["logistic"]((x * y).sum(-1)).mean(1))
    record(loss_difference=(losses[0] - losses[1]).abs())
    record(rank=int(torch.linalg.matrix_rank(apart)) - int(torch.linalg.matrix_rank(together)))


def _record_blocks(record: lab.Recorder, problem: LinearTasks, found: torch.Tensor) -> None:
    """Squared weights by block, what is outside the diagonal within a task, and what is left of spurious features."""
    s, k = problem.shared, problem.features
    diagonal = found.diagonal(dim1=1, dim2=2)
    record(shared_weight=diagonal[:, :s].mean(1), spurious_weight=diagonal[:, k:].amax(1))
    outside = []
    for t in range(problem.tasks):
        own = problem.own(t)
        block = found[:, own][:, :, own]
        outside.append((block - torch.diag_embed(block.diagonal(dim1=1, dim2=2))).abs().amax((1, 2)))
        record(at={"number": t + 1}, private_weight=diagonal[:, own[s:]].mean(1))
    record(off_diagonal=torch.stack(outside).amax(0))
    record(other_weight=diagonal[:, problem.own(0)[-1] + 1 : k].amax(1) if problem.tasks > 1 else 0.0)


def _record_bounds(record: lab.Recorder, problem: LinearTasks, weights: torch.Tensor, basis: torch.Tensor) -> None:
    """Predictor norm and leading term of the bound for the first task, half of whose label is private, at m = 10."""
    found = feature_weights(problem, weights, basis, task=0, private=HALF, labels=FEW)
    record(predictor_norm=found.norm, trained_leading=found.leading, trained_bound=found.bound)


@part.arm(
    "mixture",
    over={"tasks": lambda p: p.mixture_tasks},
    uses=tuple(Linear.model_fields),
    tolerance=0.02,
)
def mixture(params: Params, seeds: Seeds, record: lab.Recorder, *, tasks: int) -> None:
    """Projected descent on an even mixture: weights by block and the spectrum as a whole."""
    problem = params.problem(tasks)
    weights = params.pretraining().train(problem, seeds, name=f"mixture of {tasks}")
    _record_blocks(record, problem, gram(weights, problem.basis(seeds)))
    _record_bounds(record, problem, weights, problem.basis(seeds))
    spectrum = torch.linalg.svdvals(weights).square()
    record.array("spectrum", spectrum)
    record(least_of_spectrum=spectrum[:, -1], even_share=even_weights(tasks)[1])


@part.arm("single", uses=tuple(Linear.model_fields), tolerance=0.02)
def single(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Projected descent on one task's data alone."""
    problem = params.problem(3)
    weights = params.pretraining().train(problem, seeds, task=0, name="single task")
    _record_blocks(record, problem, gram(weights, problem.basis(seeds)))
    _record_bounds(record, problem, weights, problem.basis(seeds))
    record.array("spectrum", torch.linalg.svdvals(weights).square())


@part.arm("uneven", uses=("linear_steps", "linear_batch"), tolerance=0.02)
def uneven(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Projected descent on an uneven mixture."""
    weights = params.pretraining().train(UNEVEN, seeds, name="uneven mixture")
    _record_blocks(record, UNEVEN, gram(weights, UNEVEN.basis(seeds)))


@part.arm("scaled", over={"scales": list(SCALED)}, uses=("linear_steps", "linear_batch"), tolerance=0.02)
def scaled(params: Params, seeds: Seeds, record: lab.Recorder, *, scales: str) -> None:
    """Projected descent on even mixtures whose features have unequal variances."""
    problem = SCALED[scales]
    weights = params.pretraining().train(problem, seeds, name=f"scales {scales}")
    _record_blocks(record, problem, gram(weights, problem.basis(seeds)))
