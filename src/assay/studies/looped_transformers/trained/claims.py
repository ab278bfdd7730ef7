"""Does training find the construction? Claims of our own (X9): the source trains nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part

EXTENSION = "Extension: the source trains nothing"


class Trained(NamedTuple):
    """One training: what is free, where it starts, and what it is asked for."""

    free: str
    start: str
    loss: str


ONE_STEP = Trained("step", "construction", "task")
FROM_RANDOM = Trained("weights", "random", "task")
FROM_RANDOM_FOR_THETA = Trained("weights", "random", "vector")
FROM_CONSTRUCTION = Trained("weights", "construction", "task")
FROM_CONSTRUCTION_FOR_THETA = Trained("weights", "construction", "vector")


def _error(m: Measurements[Params], metric: str, which: Trained, who: str = "trained", times: int = 1) -> Values:
    """An error on fresh prompts of the training length, after ``times`` as many loops as in training."""
    n, loops = m.params.compared_examples, m.params.train_loops
    return m.at(metric, times * loops, arm="trained", tested=n, who=who, **which._asdict())


def _against_construction(m: Measurements[Params], metric: str, which: Trained) -> Values:
    ratio = _error(m, metric, which) / _error(m, metric, which, who="construction")
    return ratio.named("trained/construction with 1/L, " + ("task" if "task" in metric else "parameter") + " error")


def _cosine(m: Measurements[Params], which: Trained) -> Values:
    return m.final("construction_cosine", arm="trained", **which._asdict()).named("cos to the construction")


@part.claim(
    "X9a",
    "One learned step for all prompts leaves no larger an error on the task than steps of 1/L of each prompt.",
    source=EXTENSION,
)
def one_step(m: Measurements[Params]) -> Judgement:
    return _against_construction(m, "task_rms", ONE_STEP).at_most(1)


@part.claim(
    "X9b",
    "Trained from random weights on the task, the looped transformer finds the hand-set weights (cosine of at least "
    "0.95).",
    source=EXTENSION,
)
def found(m: Measurements[Params]) -> Judgement:
    return _cosine(m, FROM_RANDOM).at_least(0.95)


@part.claim(
    "X9c",
    "Trained from random weights on the task, the looped transformer has no larger a task error than the hand-set "
    "weights with steps of 1/L.",
    source=EXTENSION,
)
def as_good_from_random(m: Measurements[Params]) -> Judgement:
    return _against_construction(m, "task_rms", FROM_RANDOM).at_most(1)


@part.claim(
    "X9d",
    "Trained from random weights to output θ* itself, the looped transformer finds the hand-set weights (cosine of at "
    "least 0.95).",
    source=EXTENSION,
    headline=True,
)
def found_when_asked(m: Measurements[Params]) -> Judgement:
    return _cosine(m, FROM_RANDOM_FOR_THETA).at_least(0.95)


@part.claim(
    "X9e",
    "Training on the task that starts at the hand-set weights stays there (cosine of at least 0.95).",
    source=EXTENSION,
)
def stays(m: Measurements[Params]) -> Judgement:
    return _cosine(m, FROM_CONSTRUCTION).at_least(0.95)


@part.claim(
    "X9f",
    "Trained on the task from the hand-set weights, the looped transformer has a smaller task error than these with "
    "steps of 1/L.",
    source=EXTENSION,
)
def better_at_the_task(m: Measurements[Params]) -> Judgement:
    return _against_construction(m, "task_rms", FROM_CONSTRUCTION).below(1)


@part.claim(
    "X9g",
    "Trained on the task from the hand-set weights, the looped transformer ends farther from θ* than the hand-set "
    "weights with steps of 1/L.",
    source=EXTENSION,
)
def worse_at_theta(m: Measurements[Params]) -> Judgement:
    return _against_construction(m, "parameter_rms", FROM_CONSTRUCTION).above(1)


@part.claim(
    "X9h",
    "Trained from the hand-set weights to output θ* itself, the looped transformer ends closer to θ* than the hand-set "
    "weights with steps of 1/L.",
    source=EXTENSION,
)
def better_at_theta(m: Measurements[Params]) -> Judgement:
    return _against_construction(m, "parameter_rms", FROM_CONSTRUCTION_FOR_THETA).below(1)


@part.claim(
    "X9i",
    "Trained from random weights on the task, the looped transformer has a larger task error after four times its "
    "loops of training.",
    source=EXTENSION,
)
def loops_hurt(m: Measurements[Params]) -> Judgement:
    ratio = _error(m, "task_rms", FROM_RANDOM, times=4) / _error(m, "task_rms", FROM_RANDOM)
    return ratio.map(lambda value: float(np.log10(value))).named("log10 error, 4T against T loops").above(0)
