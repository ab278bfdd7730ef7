"""The network: two erase-and-step stages and then training, and heads on what the first and the second step found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Self, TypeVar, get_args

from pydantic import Field, model_validator

from assay import lab
from assay.probes.directions import cosines
from assay.training import Seeds, accuracies

from ..fixed_features.theory import query_bound
from ..learners import Fit, Predictor, emerge, features_of, initialise, recalls, train_head
from ..params import SETTINGS, Training, check_distinct
from ..problem import Data
from .learners import Plain, train_network
from .theory import third_stage_rate

Trained = TypeVar("Trained", bound=Predictor)

MAIN = ("parity", "interval")
MEMORISED = "memorised"  # parity on inputs without structure, trained until the training set is fitted
Unstructured = Literal[
    "memorised", "low-dimension", "high-dimension", "imbalance-80", "imbalance-90", "fewer-samples", "few-samples"
]
COMPARED = [name for name in SETTINGS if name != "tiny-samples"]
WITH_STRUCTURE = [{"setting": name, "inputs": "structured"} for name in COMPARED]
WITHOUT_STRUCTURE = [{"setting": name, "inputs": "uniform"} for name in MAIN]


class Params(Training):
    output_rate: float = Field(1.0, gt=0, description="Adam's rate on output weights (network, one-, two-step heads)")
    weight_rate: float = Field(1e-3, ge=0, description="Adam's rate on the first layer in stage three")
    stage_three: Literal["practical", "theory"] = Field("practical", description="Adam, or SGD at the theory's rate")
    decay: float = Field(0.0, ge=0, description="λ of the regulariser in stage three")
    unstructured: tuple[Unstructured, ...] = Field(
        get_args(Unstructured), description="settings beside the main ones that also run without structure"
    )

    @model_validator(mode="after")
    def _settings_differ(self) -> Self:
        check_distinct(unstructured=self.unstructured)
        return self

    def network_fit(self) -> Fit:
        """Stage three: Adam with a falling rate, or the theory's own rate with plain gradient descent."""
        if self.stage_three == "theory":
            rate = third_stage_rate(self.relevant, self.half_width, self.steps)
            return self.fit(rate, rate, "sgd", cool=False, decay=self.decay)
        return self.fit(self.output_rate, self.weight_rate, "adam", cool=True, decay=self.decay)


WITHOUT_GRID = tuple(name for name in Params.model_fields if name != "unstructured")

part = lab.Part(
    "network",
    params=Params,
    presets={
        "smoke": lab.PartPreset(settings={MEMORISED: dict(samples=500, steps=60)}),
        "laptop": lab.PartPreset(
            unstructured=(MEMORISED, "low-dimension", "fewer-samples", "few-samples"),
            fewer={MEMORISED: 5},
            settings={MEMORISED: dict(half_width=200, weight_rate=0.03, steps=500)},
        ),
    },
    # Chance means something only beside a training set that is fitted: a faster first layer, and steps until it is.
    settings={MEMORISED: dict(weight_rate=0.01, steps=2500)},
)


def record_curve(
    params: Training,
    record: lab.Recorder,
    runs: Iterable[tuple[int, Trained]],
    test: Data,
    train: Data,
    at: Mapping[str, str] | None = None,
) -> Trained:
    """Record test accuracy along the way, training accuracy and recalls at the end; returns the last predictor."""
    positives = (test[1] > 0).sum(1)
    for step, predict in runs:
        plain, balanced = accuracies(predict, *test)
        record(step=step, at=at, trials=params.test_samples, test_accuracy=plain)
        record(step=step, at=at, balanced_accuracy=balanced)
    record(step=step, at=at, trials=params.samples, train_accuracy=accuracies(predict, *train)[0])
    found = recalls(predict, *test)
    # A class that a seed has no input of has no recall (NaN), of one trial.
    positive, negative = (each.clamp(min=1).tolist() for each in (positives, params.test_samples - positives))
    record(step=step, at=at, trials=positive, positive_recall=found[0])
    record(step=step, at=at, trials=negative, negative_recall=found[1])
    return predict


@part.arm(
    "network",
    over=[*WITH_STRUCTURE, *WITHOUT_STRUCTURE, {"setting": "parity", "inputs": "shuffled"}],
    uses=WITHOUT_GRID,
    tolerance=0.05,
    working_set=lambda params: params.step_bytes,
)
def network(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str, inputs: str) -> None:
    """Two erase-and-step stages, then both layers trained."""
    _train(params, seeds, record, inputs)


@part.arm(
    "unstructured",
    over={"setting": lambda params: params.unstructured},
    uses=WITHOUT_GRID,
    tolerance=0.05,
    working_set=lambda params: params.step_bytes,
)
def unstructured(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """The network on inputs without structure, in settings beside the main ones."""
    _train(params, seeds, record, "uniform")
    # Every parameter's gradient in every step is a query about the data.
    needed = query_bound(params.patterns, params.relevant)
    asked = params.steps * 2 * params.half_width * (params.patterns + 2)
    record(needed_over_asked_queries=needed / asked)


def _train(params: Params, seeds: Seeds, record: lab.Recorder, inputs: str) -> None:
    problem, stages = params.problem(inputs), params.stages()
    train, test = params.data(problem, seeds)
    if inputs == "shuffled":
        train = (train[0], train[1].gather(1, seeds.permutation("shuffled labels", params.samples)))
    two = emerge(initialise(seeds, stages, problem.features), *train, stages)[1]
    runs = ((step, Plain(net)) for step, net in train_network(two, *train, params.network_fit(), seeds))
    trained = record_curve(params, record, runs, test, train).net
    record(largest_cosine=cosines(trained.weights, problem.truth(seeds))[..., 0].amax(1))


@part.arm(
    "one-step",
    over={"setting": COMPARED},
    uses=WITHOUT_GRID,
    tolerance=0.05,
    working_set=lambda params: params.step_bytes,
)
def one_step(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """Heads on the features after one step: as they are, with the norms of step two, and standardised."""
    heads = ("raw", "rescaled", "standardised") if setting in MAIN else ("raw", "rescaled")
    _record_heads(params, seeds, record, heads, 0)


@part.arm(
    "two-step",
    over={"setting": COMPARED},
    uses=WITHOUT_GRID,
    tolerance=0.05,
    working_set=lambda params: params.step_bytes,
)
def two_step(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """A head on the features after two steps, as they are."""
    _record_heads(params, seeds, record, ("raw",), 1)


def _record_heads(params: Params, seeds: Seeds, record: lab.Recorder, heads: Sequence[str], after: int) -> None:
    problem, stages = params.problem(), params.stages()
    train, test = params.data(problem, seeds)
    nets = emerge(initialise(seeds, stages, problem.features), *train, stages)
    fit = replace(params.network_fit(), weight_rate=0.0, every=params.steps, early=())  # the end is what counts
    for head in heads:
        features = features_of(nets[after], head, like=nets[1], inputs=train[0])
        record_curve(params, record, train_head(features, *train, fit, seeds), test, train, {"head": head})
