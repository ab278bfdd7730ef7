"""The two-dimensional task: population optima against closed forms, and networks trained on a sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from assay import lab
from assay.training import Seeds

from ..problem import Environments
from . import theory
from .learners import Descent, train

GAMMAS = [0.2, 0.4]
DECAYS = (0.01, 0.1, 1.0)
STRENGTHS = (0.02, 0.1, 0.3)
FIXED: dict[str, dict[str, Any]] = {
    "ERM": {},
    **{f"weight decay {decay:g}": {"decay": decay} for decay in DECAYS},
    **{f"nuclear norm {strength:g}": {"strength": strength} for strength in STRENGTHS},
}
FREE = {"ERM": FIXED["ERM"], "nuclear norm 0.1": FIXED["nuclear norm 0.1"]}


class Params(lab.Params):
    plane_samples: int = Field(1000, ge=50, description="training samples of the two-dimensional task")
    plane_steps: int = Field(2000, ge=1, description="steps of gradient descent on it")
    plane_rate: PositiveFloat = Field(0.5, description="its rate, which falls linearly to 0")
    plane_test: int = Field(20_000, ge=100, description="samples per domain on which classifiers are tested")


part = lab.Part(
    "plane",
    params=Params,
    presets={
        "smoke": lab.PartPreset(plane_steps=60, plane_test=2000, plane_samples=200),
        "laptop": lab.PartPreset(fewer={"plane-optima": 3}),
        "paper": lab.PartPreset(plane_steps=10_000, plane_test=200_000, fewer={"plane-optima": 3}),
    },
)


def _record_accuracies(
    record: lab.Recorder, problem: Environments, v: Tensor, seeds: Seeds, samples: int, at: dict[str, str]
) -> None:
    """Accuracies (seeds,) of classifiers v (seeds, 2) on fresh samples of both domains, and what ρ says of them."""
    for domain in ("inside", "outside"):
        outside = domain == "outside"
        z = problem.sample(seeds, f"test {domain}", samples, outside=outside)
        found = ((z @ v.unsqueeze(2)).squeeze(2) >= 0).double().mean(1)
        slopes = (v[:, 1] / v[:, 0]).tolist()
        closed = found.new_tensor([theory.accuracy(problem, slope, outside=outside) for slope in slopes])
        record(at={**at, "domain": domain}, trials=samples, accuracy=found)
        record(at={**at, "domain": domain}, closed_form=closed, formula_error=(found - closed).abs())
    record(at=at, slope=v[:, 1] / v[:, 0])


@part.arm("plane-optima", over={"gamma": GAMMAS}, uses=("plane_test",), dtype="float64", chunk=64)
def plane_optima(params: Params, seeds: Seeds, record: lab.Recorder, *, gamma: float) -> None:
    """Population optima with weight decay and with the nuclear norm, tested on samples."""
    problem = Environments(2, 1, gamma)
    slopes = {f"weight decay {decay:g}": theory.decayed_slope(problem, decay) for decay in DECAYS}
    slopes |= {f"nuclear norm {strength:g}": theory.penalised_slope(problem, strength) for strength in STRENGTHS}
    strong = theory.strong_slopes(problem)
    slopes |= {"strong weight decay": strong[0], "strong nuclear norm": strong[1]}
    for method, slope in slopes.items():
        v = torch.tensor([[1.0, slope]], dtype=torch.float64, device=seeds.device).expand(len(seeds), 2)
        exact = theory.accuracy(problem, slope, outside=True)
        record(at={"method": method}, outside_exact=exact)
        _record_accuracies(record, problem, v, seeds, params.plane_test, {"method": method})


@part.arm("plane", over={"gamma": GAMMAS, "method": list(FIXED)}, dtype="float64", tolerance=1e-4)
def plane(params: Params, seeds: Seeds, record: lab.Recorder, *, gamma: float, method: str) -> None:
    """Two linear layers with a fixed head, trained on a sample without penalty, with weight decay, with the norm."""
    _train(params, seeds, record, gamma, Descent(params.plane_steps, params.plane_rate, **FIXED[method]))


@part.arm("plane-free-head", over={"gamma": GAMMAS, "method": list(FREE)}, dtype="float64", tolerance=1e-4)
def plane_free_head(params: Params, seeds: Seeds, record: lab.Recorder, *, gamma: float, method: str) -> None:
    """The same with a head that is trained as well, which can grow while the features shrink."""
    recipe = Descent(params.plane_steps, params.plane_rate, **FREE[method])
    _train(params, seeds, record, gamma, replace(recipe, free_head=True))


def _train(params: Params, seeds: Seeds, record: lab.Recorder, gamma: float, recipe: Descent) -> None:
    problem = Environments(2, 1, gamma)
    z = problem.sample(seeds, "training", params.plane_samples)
    found = train(z, seeds, recipe)
    _record_accuracies(record, problem, found.classifier, seeds, params.plane_test, {})
    record(second_value=found.second_value, penalty=found.penalty, head_norm=found.head_norm)
    record.array("classifier", found.classifier)
    if recipe == Descent(recipe.steps, recipe.rate):
        for domain in ("inside", "outside"):
            shown = problem.sample(seeds, f"shown {domain}", 150, outside=domain == "outside")
            labels = 1 - 2 * (seeds.uniform(f"labels {domain}", 150) < 0.5).to(shown.dtype)
            record.array(f"shown_{domain}", torch.cat([shown * labels.unsqueeze(2), labels.unsqueeze(2)], 2))
