"""The network: two erase-and-step stages and then training, and heads on what the first and the second step found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from pydantic import Field

from assay import lab
from assay.probes.directions import cosines
from assay.training import Seeds, accuracies

from ..learners import Fit, Predictor, emerge, features_of, initialise, train_head
from ..params import SETTINGS, Training
from ..problem import Data
from .learners import Plain, train_network
from .theory import third_stage_rate

Trained = TypeVar("Trained", bound=Predictor)

MAIN = ("parity", "interval")
COMPARED = [name for name in SETTINGS if name != "tiny-samples"]
WITH_STRUCTURE = [{"setting": name, "inputs": "structured"} for name in COMPARED]
WITHOUT_STRUCTURE = [{"setting": name, "inputs": "uniform"} for name in MAIN]


class Params(Training):
    output_rate: float = Field(1.0, gt=0, description="Adam's rate on output weights (network, one-, two-step heads)")
    weight_rate: float = Field(1e-3, ge=0, description="Adam's rate on the first layer in stage three")
    stage_three: Literal["practical", "theory"] = Field("practical", description="Adam, or SGD at the theory's rate")
    decay: float = Field(0.0, ge=0, description="λ of the regulariser in stage three")

    def network_fit(self) -> Fit:
        """Stage three: Adam with a falling rate, or the theory's own rate with plain gradient descent."""
        if self.stage_three == "theory":
            rate = third_stage_rate(self.relevant, self.half_width, self.steps)
            return self.fit(rate, rate, "sgd", cool=False, decay=self.decay)
        return self.fit(self.output_rate, self.weight_rate, "adam", cool=True, decay=self.decay)


part = lab.Part("network", params=Params)


def record_curve(
    record: lab.Recorder,
    runs: Iterable[tuple[int, Trained]],
    test: Data,
    train: Data,
    at: Mapping[str, str] | None = None,
) -> Trained:
    """Record test accuracy along the way and training accuracy at the end; returns the last predictor."""
    for step, predict in runs:
        plain, balanced = accuracies(predict, *test)
        record(step=step, at=at, test_accuracy=plain, balanced_accuracy=balanced)
    record(step=step, at=at, train_accuracy=accuracies(predict, *train)[0])
    return predict


@part.arm(
    "network",
    over=[*WITH_STRUCTURE, *WITHOUT_STRUCTURE, {"setting": "parity", "inputs": "shuffled"}],
    tolerance=0.05,
    working_set=lambda params: params.step_bytes,
)
def network(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str, inputs: str) -> None:
    """Two erase-and-step stages, then both layers trained."""
    problem, stages = params.problem(inputs), params.stages()
    train, test = params.data(problem, seeds)
    if inputs == "shuffled":
        train = (train[0], train[1].gather(1, seeds.permutation("shuffled labels", params.samples)))
    two = emerge(initialise(seeds, stages, problem.features), *train, stages)[1]
    runs = ((step, Plain(net)) for step, net in train_network(two, *train, params.network_fit(), seeds))
    trained = record_curve(record, runs, test, train).net
    record(largest_cosine=cosines(trained.weights, problem.truth(seeds))[..., 0].amax(1))


@part.arm("one-step", over={"setting": COMPARED}, tolerance=0.05, working_set=lambda params: params.step_bytes)
def one_step(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str) -> None:
    """Heads on the features after one step: as they are, with the norms of step two, and standardised."""
    heads = ("raw", "rescaled", "standardised") if setting in MAIN else ("raw", "rescaled")
    _record_heads(params, seeds, record, heads, 0)


@part.arm("two-step", over={"setting": COMPARED}, tolerance=0.05, working_set=lambda params: params.step_bytes)
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
        record_curve(record, train_head(features, *train, fit, seeds), test, train, {"head": head})
