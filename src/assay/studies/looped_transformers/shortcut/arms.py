"""A shortcut: the task can be answered from one example, with no estimate of θ*."""

from __future__ import annotations

from assay import lab
from assay.training import Seeds

from ..params import Prompts
from .theory import one_example

part = lab.Part("shortcut", params=Prompts)


@part.arm("shortcut", dtype="float64", tolerance=1e-9)
def shortcut(params: Prompts, seeds: Seeds, record: lab.Recorder) -> None:
    """The task answered from one example, with no estimate of θ*."""
    prompts = params.problem().sample(seeds, "shortcut")
    answer = one_example(prompts.inputs, prompts.targets, params.alpha)
    record(
        task_error=prompts.task_error(answer) / abs(params.alpha),
        parameter_error=prompts.parameter_error(answer / params.alpha),
    )
