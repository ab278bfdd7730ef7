"""The invariants of the proofs, in networks of which nothing is pruned and on samples of which nothing is left out."""

from __future__ import annotations

from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..learners import LABELS, Initialisation, TheorySGD
from ..params import Patches, PatchProblem
from .learners import invariants_over


class Params(Patches):
    full_neurons: int = Field(1000, ge=100, description="m of the unpruned runs that check the invariants")
    full_steps: int = Field(30, ge=3, description="their steps")


part = lab.Part(
    "invariants",
    params=Params,
    presets={
        "smoke": lab.PartPreset(full_neurons=400, full_steps=4),
        "laptop": lab.PartPreset(fewer={"invariants": 4}),
    },
)


@part.arm(
    "invariants",
    over={"labels": LABELS, "bias": ["tied", "free"]},
    uses=(*PatchProblem.model_fields, "threshold", "scale", "rate", "bias_rate", "full_neurons", "full_steps"),
    tolerance=0.02,
    working_set=lambda p: 2.0**23,
)
def invariants(params: Params, seeds: Seeds, record: lab.Recorder, *, labels: str, bias: str) -> None:
    """No neuron pruned, no patch left out: who fires on what, with the norm-tied bias and with none."""
    problem = params.problem(subclasses=min(4, params.subclasses), counts="exact")
    init = Initialisation(params.full_neurons, params.threshold, params.scale, prune=False)
    sgd = TheorySGD(params.rate, params.bias_rate if bias == "tied" else 0.0)
    record(**invariants_over(problem, init, sgd, seeds, params.full_steps, labels))
