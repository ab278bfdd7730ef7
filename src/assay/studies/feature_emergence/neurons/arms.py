"""The neurons of the trained network, one by one: how they turn towards the true direction as training goes on."""

from __future__ import annotations

import torch
from torch import Tensor

from assay import lab
from assay.training import Seeds
from assay.training.two_layer import TwoLayer

from ..network import arms as network
from .learners import looks
from .theory import disk

ALIGNED = 0.95  # the cosine from which on a neuron points at the truth
_MOST = 200  # neurons that are kept of each seed


class Params(network.Params):
    """The network's own."""


part = lab.Part("neurons", params=Params, presets={"laptop": lab.PartPreset(fewer={"neurons": 3})})


@part.arm(
    "neurons",
    over={"setting": ["parity"], "inputs": ["structured", "uniform"]},
    uses=network.WITHOUT_GRID,
    tolerance=0.05,
    working_set=lambda params: params.step_bytes,
)
def neurons(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str, inputs: str) -> None:
    """The network's neurons from the first weights to the last, on inputs with and without structure."""
    problem = params.problem(inputs)
    train, _ = params.data(problem, seeds)
    truth = problem.truth(seeds)[:, 0]
    fit = params.network_fit()
    steps, shown = [], []
    for step, net in looks(seeds, params.stages(), problem.features, train, fit):
        record.progress(step, 2 + fit.steps)
        steps.append(step)
        shown.append(_thinned(net))
    points = torch.stack([disk([net.weights[seed] for net in shown], truth[seed]) for seed in range(len(truth))])
    cosines = points[..., 0]
    record.curve(steps, aligned_share=(cosines.abs() >= ALIGNED).double().mean(-1).mT)
    ends = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).expand(len(truth), 2, 2)
    record.neurons(
        steps,
        points,
        landmarks={"true feature": ends[:, 0], "its opposite": ends[:, 1]},
        cosine=cosines,
        norm=_over_time([net.weights.norm(dim=-1) for net in shown]),
        bias=_over_time([net.biases for net in shown]),
        output=_over_time([net.output for net in shown]),
    )


def _thinned(net: TwoLayer) -> TwoLayer:
    """A part of the neurons, evenly from all, where there are more than can be looked at."""
    every = -(-net.weights.shape[1] // _MOST)
    return TwoLayer(net.weights[:, ::every], net.biases[:, ::every], net.output[:, ::every])


def _over_time(values: list[Tensor]) -> Tensor:
    return torch.stack(values, 1)
