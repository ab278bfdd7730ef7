"""Stage one: how fast features grow from small weights without bias, and the lemmas behind it."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from pydantic import Field, model_validator

from assay import lab
from assay.methods.contrastive_planning import Descent, growth_factors, stage_one_steps
from assay.training import Seeds

from ..learners import Cells, Contrastive, infonce_step, random_start
from ..params import FEATURES, Draws, Network
from ..problem import MODES, Mode, TokenPairs
from ..theory import TAU, pair_correlations, positive_similarity


class Params(Draws, Network):
    growth_dim: int = Field(100, ge=3, description="input dimension of the stage-one check")
    growth_steps: int = Field(60, ge=5, description="steps of the stage-one check")
    growth_batch: int = Field(512, ge=2, description="its batch")

    @model_validator(mode="after")
    def _features_fit(self) -> Params:
        self.problem(self.growth_dim)
        return self


part = lab.Part(
    "stage_one",
    params=Params,
    presets={
        "smoke": lab.PartPreset(growth_dim=40, growth_steps=20, growth_batch=64),
        "paper": lab.PartPreset(growth_dim=500, fewer={"stage-one": 20, "pair-moments": 8, "logits": 8}),
    },
)

RATE = 0.05
DECAYS = (0.01, 0.3)
RARE = (0.1, 0.3, 0.5, 0.75, 1.0)


@part.arm(
    "stage-one",
    over={"views": ["paired", "unpaired"]},
    uses=(*FEATURES, "width", "growth_dim", "growth_steps", "growth_batch"),
    tolerance=1e-3,
    working_set=lambda p: 40.0 * p.growth_batch * (2 * p.growth_dim + 2 * p.growth_batch),
)
def stage_one(params: Params, seeds: Seeds, record: lab.Recorder, *, views: str) -> None:
    """Growth of features and noise from small weights without bias, for two weight decays."""
    problem = params.problem(params.growth_dim)
    d, steps = problem.features, params.growth_steps
    points = [(decay, epsilon) for decay in DECAYS for epsilon in RARE]
    cells = Cells([e for _, e in points], [0.05] * len(points), [decay for decay, _ in points])
    run = Contrastive(steps, params.growth_batch, RATE, TAU, bias_on=None, looks=range(steps))
    start = random_start(problem, len(points), seeds, width=params.width, scale=1e-3)
    reached, end = torch.full(start.biases.shape, torch.nan, device=seeds.device), start
    for look in run.train(problem, cells, seeds, start, unpaired=views == "unpaired"):
        end = look.encoders
        half = end.weights[..., :d].square().sum(-1) >= 0.5 * end.weights.square().sum(-1)
        reached = torch.where(reached.isnan() & half, float(look.step), reached)
    correlations = pair_correlations(problem, [e for _, e in points])
    parts = {"frequent": slice(0, problem.majority), "rare": slice(problem.majority, d), "noise": slice(d, None)}
    for c, (decay, epsilon) in enumerate(points):
        growth = growth_factors(correlations[c], Descent(RATE, decay, TAU, params.growth_batch))
        shrink = 1 - RATE * decay
        predicted = {"frequent": float(growth[0]), "rare": float(growth[-1]), "noise": shrink}
        for name, columns in parts.items():
            sizes = [torch.linalg.vector_norm(e.weights[:, c, :, columns], dim=(-1, -2)) for e in (start, end)]
            measured = (sizes[1] / sizes[0]) ** (1 / steps)
            record(
                at={"decay": decay, "epsilon": epsilon, "part": name},
                growth=measured,
                growth_over_predicted=measured / predicted[name],
                predicted_growth=predicted[name],
            )
        w = start.weights[:, c]
        expected = stage_one_steps(w[..., :d].square(), w[..., d:].square().sum(-1), growth.to(w.device), shrink)
        record(
            at={"decay": decay, "epsilon": epsilon},
            # A neuron that is never half features counts as infinitely late.
            stage_one_end=reached[:, c].nan_to_num(nan=torch.inf).median(-1).values,
            stage_one_predicted=expected.median(-1).values,
        )


@part.arm(
    "pair-moments",
    over={"token_mode": list(MODES)},
    uses=("samples",),
    dtype="float64",
    tolerance=1e-9,
    working_set=lambda p: 2.0**22,
)
def pair_moments(params: Params, seeds: Seeds, record: lab.Recorder, *, token_mode: Mode) -> None:
    """Lemma F.3 at b = 0: what positive and negative pairs contribute along features and noise directions."""
    problem = TokenPairs(5, 4, 20, 4, 0.3, token_mode)
    cells, run = Cells([0.3], [0.05], [0.0]), Contrastive(1, 2, 0.1, TAU, None)
    encoders = random_start(problem, 1, seeds, width=24, scale=1.0)
    alpha, d = encoders.weights[:, 0], problem.features
    first, second = run.attended(run.pairs(problem, cells, seeds, "moments").next(params.samples))
    slope = problem.tokens * first[:, 0, :, 0]  # ∇h_i(X) at b = 0, the same for every neuron
    kappa = pair_correlations(problem, 0.3)[0].to(alpha.device)

    def along(candidates: torch.Tensor) -> torch.Tensor:
        """Least-squares slope of the moment against α_ij, per direction: (seeds, dim)."""
        moment = encoders(candidates)[:, 0].mT @ slope / params.samples
        return (moment * alpha).sum(1) / alpha.square().sum(1)

    positive, negative = along(second), along(second.roll(1, 2))
    similarity = (encoders(first) * encoders(second)).sum(-1).mean(-1)[:, 0]
    # Errors of single directions have signs that cancel in a mean: the largest is kept as well.
    share = positive[:, :d] / kappa
    record(
        moment_over_kappa=share.mean(1),
        largest_moment_deviation=(share - 1).abs().amax(1),
        largest_noise_over_kappa=positive[:, d:].abs().amax(1) / kappa.max(),
        largest_negative_over_kappa=negative[:, :d].abs().amax(1) / kappa.max(),
        similarity_over_expected=similarity / positive_similarity(alpha[..., :d], kappa),
    )


@part.arm(
    "logits", over={"init": [0.01, 0.005]}, uses=(*FEATURES, "growth_dim", "width"), dtype="float64", tolerance=1e-9
)
def logits(params: Params, seeds: Seeds, record: lab.Recorder, *, init: float) -> None:
    """Near initialisation the softmax is uniform up to a term quadratic in the weights."""
    problem = params.problem(params.growth_dim)
    run, cells = Contrastive(1, 64, 0.1, TAU, None), Cells([0.3], [0.05], [0.0])
    start = random_start(problem, 1, seeds, width=params.width, scale=init)
    views = run.attended(run.pairs(problem, cells, seeds, "logits").next(run.batch))
    found = infonce_step(start, *views, TAU)
    zero = infonce_step(replace(start, weights=0 * start.weights), *views, TAU)
    record(
        softmax_deviation=(found.softmax - 1 / run.batch).abs().amax((1, 2, 3)) * run.batch,
        zero_loss_deviation=(zero.loss[:, 0] - math.log(run.batch)).abs(),
    )
