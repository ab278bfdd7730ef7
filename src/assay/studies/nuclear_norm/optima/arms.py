"""Population optima of the diagonal model: no sample and no seed has a part in these numbers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, PositiveFloat, model_validator

from assay import lab
from assay.training import Seeds

from ..params import check_rising
from ..problem import Environments
from ..theory import gaussian_log_accuracy
from . import theory

DECAYS = (1e-4, 1e-2, 0.1, 1.0, 10.0)
STRENGTHS = (0.003, 0.01, 0.03, 0.1)
OTHERS = {"10 of 120": Environments(120, 10, 0.3), "4 of 20": Environments(20, 4, 0.2)}  # γ is below 3/√r
SCALES = (1.0, 10.0, 100.0, 1000.0)
VANISHING = (0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)
Gamma = Annotated[float, Field(gt=0, lt=0.5)]


class Params(lab.Params):
    invariants: tuple[Annotated[int, Field(ge=37)], ...] = Field(
        (40, 50, 64, 100, 400), min_length=1, description="numbers r of invariant features, of which γ < 1/2 asks 37"
    )
    gammas: tuple[Gamma, ...] = Field(
        (0.2, 0.3, 0.35, 0.4, 0.45, 0.48), min_length=1, description="γ; each r takes those above 3/√r"
    )
    support_sizes: tuple[Annotated[int, Field(ge=1, le=8)], ...] = Field(
        (1, 2, 3, 4), min_length=1, description="features that a rank-limited network may use"
    )
    support_decay: PositiveFloat = Field(0.05, description="weight decay of the rank-limited network")

    @model_validator(mode="after")
    def _instances_are_legal(self) -> Self:
        check_rising(invariants=self.invariants, gammas=self.gammas, support_sizes=self.support_sizes)
        for r in self.invariants:
            if not self.legal(r):
                raise ValueError(
                    f"no γ of {self.gammas} lies above 3/√{r} = {3 / math.sqrt(r):.3f}, as the theory asks"
                )
        return self

    def legal(self, invariant: int) -> list[float]:
        """The γ that the theory allows with so many invariant features."""
        return [gamma for gamma in self.gammas if theory.legal(invariant, gamma)]


part = lab.Part(
    "optima",
    params=Params,
    presets={
        "smoke": lab.PartPreset(invariants=(50,), gammas=(0.45, 0.48), support_sizes=(1, 2)),
        "laptop": lab.PartPreset(fewer=dict.fromkeys(("decayed", "penalised", "supports", "vanishing"), 3)),
        "paper": lab.PartPreset(fewer=dict.fromkeys(("decayed", "penalised", "supports", "vanishing"), 3)),
    },
)


def _problem(invariant: int, gamma: float) -> Environments:
    return Environments(theory.smallest_dimension(invariant, gamma), invariant, gamma)


@part.arm("decayed", over={"invariant": lambda p: p.invariants}, uses=("gammas",), dtype="float64", chunk=64)
def decayed(params: Params, seeds: Seeds, record: lab.Recorder, *, invariant: int) -> None:
    """The optimum under weight decay, at the least dimension that the theory allows."""
    for gamma in params.legal(invariant):
        problem = _problem(invariant, gamma)
        ranges = theory.Hoeffding.of(problem)
        record(
            at={"gamma": gamma},
            dim=problem.dim,
            ranges_share=ranges.exact / ranges.corrected,
            printed_ranges_share=ranges.exact / ranges.printed,
        )
        for decay in DECAYS:
            found = theory.decayed(problem, decay)
            alpha, beta = found.alpha, found.beta
            record(
                at={"gamma": gamma, "decay": decay},
                alpha=alpha,
                beta=beta,
                order=min(beta / alpha, 1 - beta / alpha, 1 - alpha * math.sqrt(invariant)),
                share_of_bound=alpha / beta * 4 * gamma / 3,
                share_of_means=alpha / beta * 2 * gamma,
                log10_accuracy=found.log_accuracy(problem) / math.log(10),
                log10_gaussian=gaussian_log_accuracy(problem, alpha, beta) / math.log(10),
                log10_excess=(found.log_accuracy(problem) + invariant / 10) / math.log(10),
            )


@part.arm("penalised", over={"invariant": lambda p: p.invariants}, uses=("gammas",), dtype="float64", chunk=64)
def penalised(params: Params, seeds: Seeds, record: lab.Recorder, *, invariant: int) -> None:
    """The optimum under the nuclear norm, at the same instances; ``above`` is γ over the derived threshold."""
    for gamma in params.legal(invariant):
        for strength in STRENGTHS:
            _record_penalised(record, _problem(invariant, gamma), strength, {"gamma": gamma})


@part.arm("penalised-outside", over={"instance": list(OTHERS)}, uses=(), dtype="float64", chunk=64)
def penalised_outside(params: Params, seeds: Seeds, record: lab.Recorder, *, instance: str) -> None:
    """The same with fewer invariant features than the theory asks."""
    for strength in STRENGTHS:
        _record_penalised(record, OTHERS[instance], strength, {})


def _record_penalised(record: lab.Recorder, problem: Environments, strength: float, at: dict[str, float]) -> None:
    found = theory.penalised(problem, strength)
    record(
        at={**at, "strength": strength},
        alpha=found.alpha,
        beta=found.beta,
        beta_share=found.beta / found.alpha,
        above=problem.gamma - theory.threshold(problem.invariant),
        least_accuracy=found.least_accuracy(problem),
        log10_accuracy=found.log_accuracy(problem) / math.log(10),
    )


@part.arm("supports", uses=("gammas", "support_sizes", "support_decay"), dtype="float64", chunk=64)
def supports(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Networks that may use so many features: the least loss by the number of invariant ones among them, and the best
    one's accuracy outside at its own weights."""
    for size in params.support_sizes:
        record(at={"size": size}, unbounded_loss=theory.scaled_loss(size, SCALES[-1]))
        for gamma in params.gammas:
            found = [theory.support_optimum(k, size - k, gamma, params.support_decay) for k in range(size + 1)]
            losses = [loss for loss, _ in found]
            best = losses.index(min(losses))
            record(
                at={"size": size, "gamma": gamma},
                saved_by_exchange=min(before - after for before, after in pairwise(losses)),
                invariant_share=best / size,
                accuracy=theory.support_accuracy(best, size - best, gamma, found[best][1]),
            )
            for used, loss in enumerate(losses):
                record(at={"size": size, "gamma": gamma, "invariant_used": used}, loss=loss)


@part.arm("vanishing", over={"invariant": [1, 2]}, uses=(), dtype="float64", chunk=64)
def vanishing(params: Params, seeds: Seeds, record: lab.Recorder, *, invariant: int) -> None:
    """Weight decay that vanishes, with few invariant features: the data are separable, and β/α goes to 0."""
    problem = Environments(3 * invariant, invariant, 0.3)
    for decay in VANISHING:
        found = theory.decayed(problem, decay)
        record(at={"decay": decay}, share_of_bound=found.alpha / found.beta * 4 * problem.gamma / 3)
