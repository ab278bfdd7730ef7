"""The claims on the shortcut: the task is easier than regression (C7)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements

from ..params import Prompts
from .arms import part


@part.claim(
    "C7a",
    "one example answers the task exactly, q = αx/y, whatever θ* is",
    source="Definition 8.4 and the remark after it",
    printed="the task is as hard as regression; solving it requires an estimate of θ*",
)
def one_example(m: Measurements[Prompts]) -> Judgement:
    return m.every("task_error", arm="shortcut").named("error/|α|").at_most(0, tolerance=1e-12)


@part.claim("C7b", "that answer is no estimate of θ*: ‖q/α − θ*‖ is at least half of ‖θ*‖", source="C7a")
def one_example_knows_little(m: Measurements[Prompts]) -> Judgement:
    return m.final("parameter_error", arm="shortcut").named("‖q/α − θ*‖").at_least(0.5)
