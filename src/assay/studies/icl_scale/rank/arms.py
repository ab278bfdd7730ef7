"""What does attention of limited rank keep? Networks of every rank, trained on the population loss and on prompts."""

from __future__ import annotations

import torch
from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..learners import Pretraining
from ..params import Regression
from ..problem import geometric
from ..theory import exchange_cost, lowest_loss, optimal_gains, pretraining_loss, principal_angle


class Params(Regression):
    descent_steps: int = Field(3000, ge=1, description="steps of descent on the population loss")
    descent_rate: float = Field(0.03, gt=0, description="their rate, with momentum 0.9")


part = lab.Part(
    "rank",
    params=Params,
    presets={
        "smoke": lab.PartPreset(steps=300, batch=64, descent_steps=600),
        "paper": lab.PartPreset(dim=8, largest=3.0, smallest=0.3, steps=20_000, batch=512),
    },
)


@part.arm(
    "population",
    uses=("dim", "largest", "smallest", "examples", "descent_steps", "descent_rate"),
    dtype="float64",
    tolerance=1e-6,
)
def population(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Descent on the exact loss from random factors, at every rank."""
    problem, lam = params.problem(), params.problem().spectrum(seeds)
    recipe = Pretraining(params.examples, params.descent_steps, rate=params.descent_rate)
    found = recipe.descend(problem, seeds, params.ranks)
    features = problem.features(seeds)
    full = features.mT @ found[:, -1] @ features
    for at, r in enumerate(params.ranks):
        gains = torch.diag(optimal_gains(lam, params.examples, r))
        own = features.mT @ found[:, at] @ features
        cut = torch.zeros_like(full)
        cut[:, :r, :r] = full[:, :r, :r]
        record(
            at={"rank": r},
            distance=(own - gains).abs().amax((1, 2)),
            from_truncated=(own - cut).abs().amax((1, 2)),
        )
    steep = torch.tensor(geometric(8, 1.8, 0.12), dtype=seeds.dtype)
    whole, short = (lowest_loss(steep, params.examples, r) for r in (8, 7))
    record(share_of_last=float(short / whole - 1))


@part.arm("sampled", uses=tuple(Regression.model_fields), tolerance=0.05)
def sampled(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Adam on sampled prompts, the whole block of weights that the answer depends on, at every rank."""
    problem = params.problem()
    network = params.pretraining().train(problem, seeds, params.ranks)
    double = Seeds(seeds.values, seeds.device, torch.float64)
    lam, features, covariance = problem.spectrum(double), problem.features(double), problem.covariance(double)
    effective, one = network.effective().double(), torch.ones(len(seeds), device=seeds.device, dtype=torch.float64)
    for at, r in enumerate(params.ranks):
        own = effective[:, at]
        lowest, cost = lowest_loss(lam, params.examples, r), exchange_cost(lam, params.examples, r)
        weakest = own - (own @ features[..., r - 1 : r]) @ features[..., r - 1 : r].mT
        excess = pretraining_loss(own, one, covariance, params.examples) - lowest
        without = pretraining_loss(weakest, one, covariance, params.examples) - lowest
        record(
            at={"rank": r},
            loss=excess + lowest,
            lowest_loss=lowest,
            exchange_share=excess / cost,
            exchange_share_without_one=without / cost,
            angle=principal_angle(own, features, r),
            stray=network.stray()[:, at],
        )
    record.array("gains", (features.mT.unsqueeze(1) @ effective @ features.unsqueeze(1)).diagonal(dim1=-2, dim2=-1))
