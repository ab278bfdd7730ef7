"""Lottery tickets on the XOR mixture and on a parity: do the neurons nearest to the features after one step learn as
fast as all?"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Self

from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds, TwoLayer

from ..block_parity.problem import BlockParity
from ..fixed_features.learners import Features, random_relu, ridge_head
from ..learners import hidden_layer, sampled_gradients, stepped, symmetric_start, wrong
from ..params import FirstStep, Testing
from ..problem import GaussianMixture, Sample
from .learners import Choice, chosen_network, race

AFTER: tuple[Choice, ...] = ("full", "ticket", "discovered", "random", "magnitude", "snip")
AT_START: tuple[Choice, ...] = ("init", "init, ticket's norms", "init, ticket's norms, outputs")
ON_PARITY_AT_START: tuple[Choice, ...] = (
    "init, both signs",
    "init, both signs, ticket's norms",
    "init, both signs, ticket's norms, outputs",
)
ON_PARITY: tuple[Choice, ...] = (
    "full",
    "ticket",
    "ticket, both signs",
    "ticket, other sign",
    "random",
    "random, one sign",
    *ON_PARITY_AT_START,
)
HEADS: tuple[Choice, ...] = ("ticket", "ticket, spread", "random", "init")
START_THRESHOLDS = {"start": 1.0, "start, thresholds 0": 0.0}  # of random neurons, in units of the start's
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
PARITY_RATES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LEVEL = 0.05
SIZES = (4, 8, 16, 32, 64, 128, 256, 512)


class Params(FirstStep, Testing):
    ticket_dim: int = Field(200, ge=16, description="dimension of the XOR mixture of the tickets")
    ticket_noise: float = Field(3.0, gt=0, description="its noise σ_B")
    ticket_neurons: int = Field(128, ge=8, description="neurons m, of which the full network has 4m")
    ticket_size: int = Field(24, ge=4, description="neurons of a ticket, spread evenly over signed features")
    first_samples: int = Field(1000, ge=50, description="samples of the first step")
    race_batch: int = Field(500, ge=10, description="samples of every later step")
    race_steps: int = Field(60, ge=4, description="steps after the first on the XOR mixture")
    parity_race: tuple[PositiveInt, PositiveInt, PositiveInt] = Field(
        (30, 3, 64), description="dimension, block size and neurons m of the parity on which tickets race"
    )
    parity_race_steps: int = Field(600, ge=4, description="steps after the first on that parity")
    head_parity: tuple[PositiveInt, PositiveInt] = Field(
        (50, 5), description="dimension and block size of the parity of heads on tickets"
    )
    ticket_samples: int = Field(4000, ge=100, description="samples of heads on tickets")

    @model_validator(mode="after")
    def _parities_exist(self) -> Self:
        for dim, size in (self.parity_race[:2], self.head_parity):
            BlockParity(dim, size)  # refuses even sizes and those that do not fit
        return self


part = lab.Part(
    "tickets",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            ticket_dim=64,
            ticket_noise=1.5,
            ticket_neurons=32,
            ticket_size=12,
            race_batch=50,
            race_steps=6,
            parity_race=(20, 3, 16),
            parity_race_steps=6,
            ticket_samples=500,
        ),
        "paper": lab.PartPreset(
            race_steps=200, race_batch=1000, parity_race_steps=1000, head_parity=(100, 9), ticket_samples=20_000
        ),
    },
)


@dataclass(frozen=True)
class Setting:
    """A problem with the spread of its noise before the threshold, the place where the median neuron is to switch on,
    and the size of the race."""

    problem: GaussianMixture | BlockParity
    spread: float
    knot: float
    neurons: int
    steps: int
    rates: tuple[float, ...]


def xor_setting(params: Params, steps: int = 0) -> Setting:
    root = math.sqrt(params.ticket_dim)
    problem = GaussianMixture.xor(params.ticket_dim, params.ticket_noise)
    return Setting(problem, params.ticket_noise * root, root / 2, params.ticket_neurons, steps, RATES)


@part.arm(
    "tickets",
    over={"who": (*AFTER, *AT_START)},
    uses=(
        *("threshold", "ticket_dim", "ticket_noise", "ticket_neurons"),
        *("ticket_size", "first_samples", "race_batch", "race_steps"),
    ),
    chunk=4,
    tolerance=0.2,
)
def tickets(params: Params, seeds: Seeds, record: lab.Recorder, *, who: Choice) -> None:
    """Train one network on fresh batches of the XOR mixture at every rate of the grid; the validated best counts."""
    _race(params, seeds, record, xor_setting(params, params.race_steps), who)


@part.arm(
    "parity-tickets",
    over={"who": ON_PARITY},
    uses=("threshold", "ticket_size", "first_samples", "race_batch", "parity_race", "parity_race_steps"),
    chunk=4,
    tolerance=0.2,
)
def parity_tickets(params: Params, seeds: Seeds, record: lab.Recorder, *, who: Choice) -> None:
    """The same race on the parity of one block."""
    problem = BlockParity(*params.parity_race[:2])
    setting = Setting(problem, problem.spread, 1.0, params.parity_race[2], params.parity_race_steps, PARITY_RATES)
    _race(params, seeds, record, setting, who)


def _stepped(params: Params, seeds: Seeds, setting: Setting) -> tuple[TwoLayer, TwoLayer, Sample]:
    """The network at its start and after the first step, and the samples of that step."""
    start = symmetric_start(seeds, setting.neurons, setting.problem.dim, params.threshold * setting.spread)
    sample = setting.problem.sample(seeds, "first step", params.first_samples)
    return start, stepped(start, sampled_gradients(start, sample), setting.knot), sample


def looks(last: int) -> list[int]:
    """The steps at which a race is looked at: each of the first twelve, then in ratios of a twentieth."""
    late = (round(12 * 1.05**k) for k in range(math.ceil(math.log(max(last, 12) / 12, 1.05))))
    return sorted({*range(min(12, last) + 1), *(step for step in late if step < last), last})


def _race(params: Params, seeds: Seeds, record: lab.Recorder, setting: Setting, who: Choice) -> None:
    start, net, sample = _stepped(params, seeds, setting)
    problem, last = setting.problem, setting.steps
    net = chosen_network(seeds, who, start, net, sample, problem.features.to(net.weights), params.ticket_size)
    batches = [problem.sample(seeds, f"batch {step}", params.race_batch) for step in range(1, last + 1)]
    moments = looks(last)
    validation = problem.sample(seeds, "validation", 2000)
    test = problem.sample(seeds, "test", 2000)
    found = race(net, lambda step: batches[step - 1], validation, test, rates=setting.rates, steps=moments, level=LEVEL)
    # The first step is counted for networks that took it, in steps and in samples.
    took = 0 if who.startswith("init") else 1
    record.curve(found.steps, loss=found.losses)
    edges = found.rates.new_tensor([setting.rates[0], setting.rates[-1]])
    record(steps=found.first + took, rate=found.rates, reached=found.reached)
    record(at_edge=found.reached & (found.rates.unsqueeze(1) == edges).any(1))
    record(samples=found.first * params.race_batch + took * params.first_samples)
    record(trials=2000, error=found.error)
    record(trials=net.biases.shape[1], always_on=(net.biases > 0).double().mean(1))


@part.arm(
    "ticket-heads",
    over={"problem": ("xor", "parity")},
    uses=("threshold", "test_samples", "ticket_dim", "ticket_noise", "ticket_neurons", "head_parity", "ticket_samples"),
    chunk=2,
    tolerance=0.05,
)
def ticket_heads(params: Params, seeds: Seeds, record: lab.Recorder, *, problem: str) -> None:
    """Convex heads on tickets of growing size, on random subsets, on the same neurons at the start, and on random
    neurons of a start, no two of them alike."""
    if problem == "xor":
        setting = xor_setting(params)
    else:
        parity = BlockParity(*params.head_parity)
        setting = Setting(parity, parity.spread, 1.0, params.ticket_neurons, 0, ())
    train = setting.problem.sample(seeds, "train", params.ticket_samples)
    start = symmetric_start(seeds, setting.neurons, setting.problem.dim, params.threshold * setting.spread)
    net = stepped(start, sampled_gradients(start, train), setting.knot)
    test = setting.problem.sample(seeds, "test", params.test_samples)
    features = setting.problem.features.to(net.weights)
    typical = float(train.inputs.square().sum(-1).mean().sqrt())
    for who, threshold in START_THRESHOLDS.items():
        level = threshold * params.threshold * setting.spread / typical
        for size in SIZES:
            random = random_relu(seeds, "random start", size, setting.problem.dim, level, typical)
            _record_head(params, record, random, train, test, who, size)
    for size, who in itertools.product(SIZES, HEADS):
        if size <= setting.neurons:  # a quarter of the network: a neuron is then near one feature alone
            chosen = chosen_network(seeds, who, start, net, train, features, size)
            _record_head(params, record, hidden_layer(chosen), train, test, who, size)


def _record_head(
    params: Params, record: lab.Recorder, features: Features, train: Sample, test: Sample, who: str, size: int
) -> None:
    accuracy = 1 - wrong(ridge_head(features, train, test.inputs).outputs, test.labels)
    record(at={"who": who, "size": size}, trials=params.test_samples, test_accuracy=accuracy)
