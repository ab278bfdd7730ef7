"""Where training goes: rare features when it goes on, the floor of the loss, and online descent on the pseudo-loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from pydantic import Field, model_validator

from assay import lab
from assay.methods.loss_floor import loss_floor
from assay.training import Seeds

from ..learners import Cells, Contrastive, Encoders, infonce_step, random_start
from ..params import FEATURES, SWEEP, Draws, Dynamics, Frequencies, check_biases_are_used
from ..theory import TAU
from .learners import regret_share


class Params(Draws, Dynamics, Frequencies):
    long_steps: int = Field(1600, ge=10, description="steps after which rare features have caught up")

    @model_validator(mode="after")
    def _long_training_has_biases(self) -> Params:
        check_biases_are_used(self.bias_on, long_steps=self.long_steps)
        return self


part = lab.Part(
    "convergence",
    params=Params,
    presets={
        "smoke": lab.PartPreset(long_steps=80),
        "paper": lab.PartPreset(fewer={"longer": 20, "loss-floor": 8, "pseudo-loss": 8}),
    },
)


@part.arm(
    "longer",
    uses=(*SWEEP, "rare", "dynamics_noise", "long_steps"),
    tolerance=2e-2,
    working_set=lambda p: p.bytes_per_seed(len(p.rare)),
)
def longer(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Coefficients of rare features over frequent ones when training goes on, and how far the loss is above the floor
    of perfect neurons."""
    problem, count = params.problem(params.dim), len(params.rare)
    looks = range(0, params.long_steps, max(1, params.long_steps // 16))
    run = params.recipe(params.long_steps, params.attention, looks=looks)
    cells = Cells(params.rare, [problem.deviation(params.dynamics_noise)] * count, [params.decay] * count)
    start = random_start(problem, count, seeds, width=params.width, scale=params.init, attention=run.attention)
    floors = [loss_floor(q.tolist(), params.batch - 1) for q in problem.rates(params.rare)]
    for look in run.train(problem, cells, seeds, start):
        energy = look.encoders.weights[..., : problem.features].square().sum(-2).sqrt()
        ratio = energy[..., problem.majority :].mean(-1) / energy[..., : problem.majority].mean(-1)
        for c, epsilon in enumerate(params.rare):
            record(step=look.step, at={"epsilon": epsilon}, energy_ratio=ratio[:, c])
            if look.step:  # before the first step there is no loss yet
                record(step=look.step, at={"epsilon": epsilon}, loss_excess=look.loss[:, c] - floors[c])


@part.arm("loss-floor", uses=(*FEATURES, "samples"), tolerance=1e-3)
def floor(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Pure neurons of great size, constant magnitudes, no noise: the loss against its floor E log(1 + N)."""
    problem = replace(params.problem(params.majority + params.minority), low=1.0, high=1.0, mode="all")
    cells, run = Cells([0.3], [0.0], [0.0]), Contrastive(1, 128, 0.1, 1.0, None)
    pure = 8 * torch.eye(problem.features, device=seeds.device, dtype=seeds.dtype)
    encoders = Encoders(pure.expand(len(seeds), 1, -1, -1), torch.zeros_like(pure[0]).expand(len(seeds), 1, -1), 1)
    stream, batches = run.pairs(problem, cells, seeds, "floor"), max(2, params.samples // 500)
    losses = [infonce_step(encoders, *run.attended(stream.next(run.batch)), 1.0).loss[:, 0] for _ in range(batches)]
    expected = loss_floor(problem.rates(0.3)[0].tolist(), run.batch - 1)
    record(floor_loss=torch.stack(losses).mean(0), floor_formula=expected)


@part.arm("pseudo-loss", uses=FEATURES, dtype="float64", tolerance=1e-9)
def pseudo_loss(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """The pseudo-loss at w⁽ᵗ⁾ equals τ times the loss, is convex, and obeys the regret bound of online descent."""
    problem = params.problem(max(20, params.majority + params.minority))
    run = Contrastive(30, 32, 0.1, TAU, None)
    found = []
    for seed in seeds:
        one = replace(seeds, values=(seed,))
        start = random_start(problem, 1, one, width=24, scale=0.1)
        start = replace(start, biases=0.2 * torch.linalg.vector_norm(start.weights, dim=-1))
        found.append(regret_share(problem, one, start, run, 0.5))
    metrics: dict[str, Any] = {f"pseudo_{name}": [each[name] for each in found] for name in found[0]}
    record(**metrics)
