"""Fixed features beside the network: the linearised network (NTK), a head on random features, and their tuning."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pydantic import Field, field_validator

from assay import lab
from assay.training import Seeds, accuracies

from ..learners import Fit, features_of, initialise, train_head
from ..network.arms import MAIN, WITH_STRUCTURE, WITHOUT_STRUCTURE, record_curve
from ..params import TUNING_SEED, Training
from .learners import ambient_cosines, train_linearised
from .theory import bessel_bound

ADAM = ("adam 0.001", "adam 0.01", "adam 0.1", "adam 1")
SGD = ("sgd 0.0003", "sgd 0.001", "sgd 0.003", "sgd 0.01", "sgd 1")
TUNED = (*ADAM, *SGD)


def fit_words(text: str) -> tuple[str, float]:
    """An optimizer and its rate, written as 'adam 0.1'."""
    name, _, rate = text.partition(" ")
    if name not in ("adam", "sgd") or not rate.replace(".", "", 1).replace("e-", "", 1).isdigit() or not float(rate):
        raise ValueError("write an optimizer and its rate, such as 'sgd 0.001' or 'adam 0.1'")
    return name, float(rate)


class Params(Training):
    ntk: str = Field("sgd 0.001", description="optimizer and rate of the linearised network, tuned")
    random_features: str = Field("adam 0.01", description="optimizer and rate of the random-feature head, tuned")

    @field_validator("ntk", "random_features")
    @classmethod
    def _known_candidate(cls, text: str) -> str:
        fit_words(text)
        return text

    def comparator_fit(self, text: str) -> Fit:
        optimizer, rate = fit_words(text)
        return self.fit(rate, rate, optimizer, cool=True)


part = lab.Part(
    "fixed_features",
    params=Params,
    presets={"laptop": lab.PartPreset(ntk="sgd 0.003", fewer={"tuning": 3})},
    settings={"interval": dict(ntk="adam 0.1", random_features="adam 1")},
)


@part.arm(
    "ntk",
    over=[*WITH_STRUCTURE, *WITHOUT_STRUCTURE],
    uses=(*Training.model_fields, "ntk"),
    tolerance=0.05,
    working_set=lambda params: params.step_bytes,
)
def ntk(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str, inputs: str) -> None:
    """The network linearised at its initialisation, every parameter of the linear model trained."""
    problem = params.problem(inputs)
    train, test = params.data(problem, seeds)
    start = initialise(seeds, params.stages(), problem.features)
    fit = params.comparator_fit(params.ntk)
    record_curve(params, record, train_linearised(start, *train, fit, seeds), test, train)
    record.note(fit=params.ntk)


@part.arm(
    "random-features",
    over=[*WITH_STRUCTURE, *WITHOUT_STRUCTURE],
    uses=(*Training.model_fields, "random_features"),
    tolerance=0.05,
    working_set=lambda params: params.step_bytes,
)
def random_features(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str, inputs: str) -> None:
    """The first layer frozen at its initialisation, a head trained on top."""
    problem = params.problem(inputs)
    train, test = params.data(problem, seeds)
    start = initialise(seeds, params.stages(), problem.features)
    fit = params.comparator_fit(params.random_features)
    head = record_curve(params, record, train_head(features_of(start), *train, fit, seeds), test, train)
    margin = 1 - test[1] * head(test[0])
    record(hinge_loss=margin.clamp(min=0).mean(1))
    norms = head.weights.norm(dim=1).tolist()
    sizes = (problem.relevant, problem.patterns)
    bounds = [bessel_bound(problem.background, 2 * params.half_width, norm, *sizes) for norm in norms]
    record(head_norm=norms, bessel_bound=bounds)
    record(largest_cosine=ambient_cosines(start, problem, seeds).amax(1))
    record.note(fit=params.random_features)


@part.arm(
    "tuning",
    over={"setting": MAIN, "comparator": ("ntk", "random-features"), "candidate": TUNED},
    uses=tuple(Training.model_fields),
    tolerance=0.05,
    working_set=lambda params: params.step_bytes,
)
def tuning(
    params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str, comparator: str, candidate: str
) -> None:
    """An optimizer and rate of the grid for a comparator, on seeds and data kept for tuning."""
    seeds = Seeds(tuple(TUNING_SEED + seed for seed in seeds), seeds.device, seeds.dtype)
    problem = params.problem()
    train = problem.sample(seeds, "train", params.samples)
    validation = problem.sample(seeds, "validation", params.test_samples)
    start = initialise(seeds, params.stages(), problem.features)
    fit = replace(params.comparator_fit(candidate), every=params.steps, early=())
    learn = partial(train_linearised, start) if comparator == "ntk" else partial(train_head, features_of(start))
    for step, predict in learn(*train, fit, seeds):
        accuracy = accuracies(predict, *validation)[0]
        record(step=step, trials=params.test_samples, validation_accuracy=accuracy)
