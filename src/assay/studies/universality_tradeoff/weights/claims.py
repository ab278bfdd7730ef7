"""Claims about the weights of features after pretraining on linear tasks (C5)."""

from __future__ import annotations

from typing import Any

from assay.lab import Judgement, Measurements, combine, pool

from ..theory import bound_ratio, predictor_norm
from .arms import HALF, SCALED, Params, part

LONG = {"at least 1,000 steps of 1,000 pairs": lambda p: p.linear_steps >= 1000 and p.linear_batch >= 1000}
FIVE_PERCENT = "the specification's 5 %, for descent on sampled pairs"


@part.claim(
    "C5a",
    "For even mixtures of linear tasks the optimal squared weights are 1 on shared and 1/T on private features, "
    "in all eight cases of s, r and T tried.",
    source="Proposition 7.3 leaves α open and shows r = 2s; derived for every case; logistic loss, solver to 1e-4",
    printed="some α in [0, 1] and β = min(1, (r − αs)/(T(r − s)))",
)
def even_program(m: Measurements[Params]) -> Judgement:
    return m.every("weight_error", arm="program").named("largest |weight − predicted|").at_most(1e-4)


@part.claim(
    "C5b",
    "Trained on an even mixture of T linear tasks, a linear encoder gives private features the squared weight 1/T, "
    "within 5 %.",
    source="Proposition 7.3, by blocks of the Gram matrix of each task; " + FIVE_PERCENT,
    headline=True,
    when=LONG,
)
def private_weights(m: Measurements[Params]) -> Judgement:
    ratios = [
        m.final("private_weight", arm="mixture", tasks=tasks, number=t + 1) * tasks
        for tasks in m.params.mixture_tasks
        for t in range(tasks)
    ]
    return pool(ratios, "private weight × T").between(0.95, 1.05)


@part.claim(
    "C5c",
    "Trained on an even mixture of linear tasks, a linear encoder gives shared features the squared weight 1, within "
    "5 %.",
    source="Proposition 7.3, by blocks; " + FIVE_PERCENT,
    when=LONG,
)
def shared_weights(m: Measurements[Params]) -> Judgement:
    found = [m.final("shared_weight", arm="mixture", tasks=tasks) for tasks in m.params.mixture_tasks]
    return pool(found, "shared weight").between(0.95, 1.05)


@part.claim(
    "C5d",
    "Trained on an even mixture of linear tasks, a linear encoder has no weight on spurious and no mixing within any "
    "task's features.",
    source="Proposition 7.3: the Gram block of every task is diagonal; 0.05 on a scale where shared features have 1",
    when=LONG,
)
def diagonal_blocks(m: Measurements[Params]) -> Judgement:
    found = m.every(["off_diagonal", "spurious_weight"], arm="mixture")
    return found.named("largest entry off the diagonal or on spurious features").at_most(0.05)


@part.claim(
    "C5e",
    "Trained on one linear task alone, a linear encoder gives all features of this task the squared weight 1, within "
    "5 %.",
    source="Proposition 7.4; " + FIVE_PERCENT,
    when=LONG,
)
def specific_weights(m: Measurements[Params]) -> Judgement:
    parts = [m.final("shared_weight", arm="single"), m.final("private_weight", arm="single", number=1)]
    return pool(parts, "weight of the task's features").between(0.95, 1.05)


@part.claim(
    "C5f",
    "On linear encoders trained contrastively the smallest exact predictor of a label that is half private has the "
    "norm √(v₁/α + v₂/β), with β = 1/T on the encoder of T tasks and 1 on that of one, within 5 %.",
    source="Propositions 7.3 and 7.4, by a probe of the trained encoders' Gram blocks; " + FIVE_PERCENT,
    when=LONG,
)
def predictor_norms(m: Measurements[Params]) -> Judgement:
    ratios = [
        m.final("predictor_norm", **where) / predictor_norm(1.0, 1 / tasks, 1 - HALF, HALF)
        for tasks, where in trained(m)
    ]
    return pool(ratios, "predictor norm / √(v₁/α + v₂/β)").between(0.95, 1.05)


@part.claim(
    "C5g",
    "The leading term of the risk bound, evaluated on linear encoders trained on mixtures of T tasks over one trained "
    "on the target alone, is the predicted ratio within 5 %.",
    source="Section 7.2.2 for all s and r, by a probe of the trained encoders' Gram blocks; " + FIVE_PERCENT,
    when=LONG,
)
def leading_terms(m: Measurements[Params]) -> Judgement:
    own = m.final("trained_leading", arm="single")
    ratios = [
        m.final("trained_leading", **where) / own / bound_ratio(m.params.problem(tasks), HALF)
        for tasks, where in trained(m)
        if tasks > 1
    ]
    return pool(ratios, "ratio of leading terms, trained / predicted").between(0.95, 1.05)


def trained(m: Measurements[Params]) -> list[tuple[int, dict[str, Any]]]:
    """Numbers of tasks, and the rows of encoders trained on as many."""
    mixtures: list[tuple[int, dict[str, Any]]] = [(t, {"arm": "mixture", "tasks": t}) for t in m.params.mixture_tasks]
    return [(1, {"arm": "single"}), *mixtures]


@part.claim(
    "N5",
    "Trained on one linear task alone, a linear encoder gives the private features of other tasks no weight.",
    source="control and Proposition 7.4: what never varies is not encoded; 0.01 for the descent",
    when=LONG,
)
def nothing_else(m: Measurements[Params]) -> Judgement:
    return m.every("other_weight", arm="single").named("weight of other tasks' features").at_most(0.01)


@part.claim(
    "X2a",
    "Two linear encoders of different rank have the same contrastive loss: private features of different tasks may "
    "share directions.",
    source="Derived: features of different tasks never occur together, so that their cross terms are free",
    printed="the optimum is Q(Σ √α z_j e_j + Σ √β z_j e_j) for an orthonormal Q",
)
def equal_losses(m: Measurements[Params]) -> Judgement:
    return m.every("loss_difference", arm="equal-optima").named("|loss, apart − superposed|").at_most(1e-12)


@part.claim(
    "X2b",
    "A linear encoder trained on an even mixture ends at an optimum with superposed features: its least squared "
    "singular value is under half of 1/T.",
    source="Derived: the loss does not fix the spectrum, which is why blocks are compared",
    when=LONG,
)
def spectrum_is_free(m: Measurements[Params]) -> Judgement:
    ratios = [m.final("least_of_spectrum", arm="mixture", tasks=tasks) * tasks for tasks in m.params.mixture_tasks]
    return combine(max, ratios, "least squared singular value × T, largest").below(0.5)


@part.claim(
    "X3a",
    "In an uneven mixture a rare task can be dropped: with shares 0.6, 0.3 and 0.1 its private features get weight 0.",
    source="the convex program of Appendix F.2.2, solved for s = 2, r = 4; solver to 1e-4",
)
def dropped(m: Measurements[Params]) -> Judgement:
    return m.exact("uneven_private", arm="program", number=3).named("weight of the rare task").at_most(1e-4)


@part.claim(
    "X3b",
    "A linear encoder trained on an uneven mixture (shares 0.6, 0.3, 0.1) has the weights of the convex program on "
    "shared and on private features, within 0.05.",
    source="Appendix F.2.2 by training; 5 % on a scale where shared features have 1",
    when=LONG,
)
def uneven_weights(m: Measurements[Params]) -> Judgement:
    gaps = [
        m.final("shared_weight", arm="uneven") - m.exact("uneven_shared", arm="program").value,
        *(
            m.final("private_weight", arm="uneven", number=t) - m.exact("uneven_private", arm="program", number=t).value
            for t in (1, 2, 3)
        ),
    ]
    return pool(gaps, "weight, trained − program").between(-0.05, 0.05)


@part.claim(
    "X3c",
    "In an even mixture a task with weak features can be dropped: where private features have standard deviations 2, 1 "
    "and 0.5, the last get weight 0.",
    source="the convex program of Appendix F.2.2 with its variances, solved for s = 2, r = 4, T = 3; solver to 1e-4",
)
def weak_private(m: Measurements[Params]) -> Judgement:
    found = m.exact("scaled_private", arm="program", scales="private 2, 1, 0.5", number=3)
    return found.named("weight of the weak task").at_most(1e-4)


@part.claim(
    "X3d",
    "Features that three linear tasks share get weight 0 where their standard deviation is 0.3, and that of private "
    "ones 1.",
    source="the same program: what is shared is weighed most only where it varies as much; solver to 1e-4",
)
def weak_shared(m: Measurements[Params]) -> Judgement:
    return m.exact("scaled_shared", arm="program", scales="shared 0.3").named("weight of shared features").at_most(1e-4)


@part.claim(
    "X3e",
    "A linear encoder trained on an even mixture with features of unequal variances has the weights of the convex "
    "program, within 0.05.",
    source="Appendix F.2.2 by training; 5 % on a scale where shared features have 1",
    when=LONG,
)
def scaled_weights(m: Measurements[Params]) -> Judgement:
    gaps = []
    for scales in SCALED:
        where = {"scales": scales}
        program = m.exact("scaled_shared", arm="program", **where).value
        gaps.append(m.final("shared_weight", arm="scaled", **where) - program)
        for t in (1, 2, 3):
            program = m.exact("scaled_private", arm="program", number=t, **where).value
            gaps.append(m.final("private_weight", arm="scaled", number=t, **where) - program)
    return pool(gaps, "weight, trained − program").between(-0.05, 0.05)
