"""Other labels than the true subclasses on a finite set: the synthetic twin of the experiments on images."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..params import Patches, Testing
from .learners import TWINS, twin_errors


class Params(Testing, Patches):
    twin_steps: int = Field(30, ge=3, description="steps on a finite set under other labels")
    twin_per_subclass: int = Field(8, ge=2, description="samples per subclass of that set")


part = lab.Part(
    "twins",
    params=Params,
    presets={
        "smoke": lab.PartPreset(twin_steps=4, twin_per_subclass=2),
        "laptop": lab.PartPreset(fewer={"twins": 4}),
    },
)


@part.arm("twins", over={"labels": TWINS}, tolerance=0.05, working_set=lambda p: 2 * p.working_set("fine"))
def twins(params: Params, seeds: Seeds, record: lab.Recorder, *, labels: str) -> None:
    """A finite set under true, random, mixed and too fine labels, read out by the maximum."""
    problem = params.problem(counts="exact")
    training = replace(params.training(problem), per_subclass=params.twin_per_subclass, finite=True)
    easy, hard = problem.test_sets(seeds, params.test_per_subclass)
    labelled, wrong = twin_errors(labels, params.initialisation(), training, seeds, params.twin_steps, easy, hard)
    record(**labelled)
    record(trials=len(easy), **wrong)
