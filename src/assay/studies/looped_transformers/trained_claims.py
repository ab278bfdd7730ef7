"""Does training find the construction? Claims of our own (C9): the source trains nothing."""

from __future__ import annotations

import numpy as np

from assay.lab import Judgement, Measurements, Values

from .study import study

EXTENSION = "Extension: the source trains nothing"


def _trained(m: Measurements, metric: str, free: str, start: str, loss: str, who: str = "trained", times: int = 1):
    n, loops = m.params.compared_examples, m.params.train_loops
    where = {"arm": "trained", "free": free, "start": start, "loss": loss, "tested": n, "who": who}
    return m.at(metric, times * loops, **where)


def _against_construction(m: Measurements, metric: str, *point: str) -> Values:
    ratio = _trained(m, metric, *point) / _trained(m, metric, *point, who="construction")
    return ratio.named("trained/construction with 1/L, " + ("task" if "task" in metric else "parameter") + " error")


def _cosine(m: Measurements, start: str, loss: str) -> Values:
    where = {"arm": "trained", "free": "weights", "start": start, "loss": loss}
    return m.final("construction_cosine", **where).named("cos to the construction")


def _loops_hurt(m: Measurements) -> Judgement:
    point = ("weights", "random", "task")
    ratio = _trained(m, "task_rms", *point, times=4) / _trained(m, "task_rms", *point)
    return ratio.map(lambda value: float(np.log10(value))).named("log10 error, 4T against T loops").above(0)


_TRAINED = {
    "C9a": ("one learned step for all prompts does as well on the task as 1/L of each prompt",
            lambda m: _against_construction(m, "task_rms", "step", "construction", "task").at_most(1)),
    "C9b": ("trained from random weights on the task, it finds the construction (cos ≥ 0.95)",
            lambda m: _cosine(m, "random", "task").at_least(0.95)),
    "C9c": ("from random weights it reaches the construction's error on the task",
            lambda m: _against_construction(m, "task_rms", "weights", "random", "task").at_most(1)),
    "C9d": ("from random weights, asked for θ* itself (‖q − θ*‖²), it finds the construction (cos ≥ 0.95)",
            lambda m: _cosine(m, "random", "vector").at_least(0.95)),
    "C9e": ("started at the construction, training on the task stays there (cos ≥ 0.95)",
            lambda m: _cosine(m, "construction", "task").at_least(0.95)),
    "C9f": ("started at the construction, it gets better at the task",
            lambda m: _against_construction(m, "task_rms", "weights", "construction", "task").below(1)),
    "C9g": ("and worse at θ*, which the task does not need",
            lambda m: _against_construction(m, "parameter_rms", "weights", "construction", "task").above(1)),
    "C9h": ("trained there on ‖q − θ*‖² instead, it gets better at θ*",
            lambda m: _against_construction(m, "parameter_rms", "weights", "construction", "vector").below(1)),
    "C9i": ("from random weights, four times the loops of training make the task error larger", _loops_hurt),
}  # fmt: skip
for _id, (_statement, _judge) in _TRAINED.items():
    study.claim(_id, _statement, source=EXTENSION)(_judge)
