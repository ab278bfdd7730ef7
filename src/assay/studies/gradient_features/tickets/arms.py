"""Lottery tickets on the XOR mixture: do the neurons nearest to the features after one step learn as fast as all?"""

from __future__ import annotations

import math
from dataclasses import replace

from pydantic import Field

from assay import lab
from assay.training import Seeds, TwoLayer

from ..learners import sampled_gradients, stepped, symmetric_start
from ..params import FirstStep
from ..problem import GaussianMixture, Sample
from .learners import discovered, keep, nearest, race, random_choice, rescaled, sensitivity

AFTER = ("full", "ticket", "discovered", "random", "magnitude", "snip")
AT_START = ("init", "init, ticket's norms", "init, ticket's norms, outputs")
RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LEVEL = 0.05


class Params(FirstStep):
    ticket_dim: int = Field(200, ge=16, description="dimension of the XOR mixture of the tickets")
    ticket_noise: float = Field(3.0, gt=0, description="its noise σ_B")
    ticket_neurons: int = Field(128, ge=8, description="neurons m, of which the full network has 4m")
    ticket_each: int = Field(6, ge=1, description="ticket neurons per signed feature, of which there are four")
    first_samples: int = Field(1000, ge=50, description="samples of the first step")
    race_batch: int = Field(500, ge=10, description="samples of every later step")
    race_steps: int = Field(60, ge=4, description="steps after the first")


part = lab.Part(
    "tickets",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            ticket_dim=64, ticket_noise=1.5, ticket_neurons=32, ticket_each=3, race_batch=50, race_steps=6
        ),
        "paper": lab.PartPreset(race_steps=200),
    },
)


def _networks(params: Params, seeds: Seeds, problem: GaussianMixture, who: str) -> TwoLayer:
    """The network that races: all neurons, or a choice of them after the step or at the start."""
    root = math.sqrt(problem.dim)
    start = symmetric_start(seeds, params.ticket_neurons, problem.dim, params.threshold * problem.deviation * root)
    sample = problem.sample(seeds, "first step", params.first_samples)
    net = stepped(start, sampled_gradients(start, sample), knot=root / 2)
    if who == "full":
        return net
    features = problem.features.to(net.weights)
    ticket = nearest(net, features, params.ticket_each)
    size = ticket.shape[1]
    if who in AT_START:
        silent = replace(start, output=start.output.sign() * (0.1 if who.endswith("outputs") else 0.0))
        chosen = keep(silent, ticket)
        return chosen if who == "init" else rescaled(chosen, keep(net, ticket))
    if who == "random":
        return keep(net, random_choice(seeds, net.output.shape[1], size))
    if who == "ticket":
        return keep(net, ticket)
    if who == "discovered":
        return keep(net, nearest(net, discovered(net, len(features), cosine=0.7), params.ticket_each))
    scores = net.weights.norm(dim=-1) if who == "magnitude" else sensitivity(net, sample)
    return keep(net, scores.topk(size, dim=1).indices)


@part.arm("tickets", over={"who": (*AFTER, *AT_START)}, chunk=4, tolerance=0.2)
def tickets(params: Params, seeds: Seeds, record: lab.Recorder, *, who: str) -> None:
    """Train one network on fresh batches at every rate of the grid; the validated best counts."""
    problem = GaussianMixture.xor(params.ticket_dim, params.ticket_noise)
    net = _networks(params, seeds, problem, who)

    def batch(step: int) -> Sample:
        return problem.sample(seeds, f"batch {step}", params.race_batch)

    last = params.race_steps
    moments = sorted({*range(min(12, last) + 1), *range(12, last + 1, 3), last} & set(range(last + 1)))
    validation = problem.sample(seeds, "validation", 500)
    test = problem.sample(seeds, "test", 2000)
    found = race(net, batch, validation, test, rates=RATES, steps=moments, level=LEVEL)
    # The first step is counted for networks that took it, in steps and in samples.
    took = 0 if who in AT_START else 1
    record.curve(found.steps, loss=found.losses)
    record(steps=found.first + took, rate=found.rates, reached=found.reached)
    record(samples=found.first * params.race_batch + took * params.first_samples)
    record(trials=2000, error=found.error)
