"""The stacked learners against the methods for any module."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from assay.methods.fomaml import Fomaml
from assay.methods.meta_tasks import Task
from assay.methods.reptile import Reptile
from assay.studies.meta_split.rainbow.learners import ConvNet, MetaTraining, accuracies, adapt
from assay.training import Seeds

SEEDS = Seeds((0, 1))
NET = ConvNet(8, 10, blocks=2, channels=3)


class Slow(nn.Module):
    """The same network, one at a time, with modules; activation before pooling, as the source has it."""

    def __init__(self, weights, seed):
        super().__init__()
        names = [name for name in weights if name not in ("head", "bias")]
        self.parts = nn.ParameterDict(
            {name: nn.Parameter(weights[name][seed].clone()) for name in [*names, "head", "bias"]}
        )

    def forward(self, x):
        for block in range(2):
            x = functional.conv2d(x, self.parts[f"conv{block}"], padding=1)
            x = functional.batch_norm(x, None, None, self.parts[f"scale{block}"], self.parts[f"shift{block}"], True)
            bent = x.clamp(0, 0.5)
            x = functional.max_pool2d(x.clamp(min=0) - bent + bent.square(), 2)
        return x.flatten(1) @ self.parts["head"].mT + self.parts["bias"]


def as_double(weights):
    return {name: value.double() for name, value in weights.items()}


def episodes_of(rainbow, steps):
    for episodes in rainbow.training(SEEDS, steps, 2, 1, 1):
        yield type(episodes)(episodes.images.double(), episodes.labels, episodes.support)


@pytest.mark.parametrize("split", ["train-train", "train-validation", "reptile"])
def test_stacked_learners_are_the_methods_for_any_module(rainbow, split):
    start = as_double(NET.initial(SEEDS))
    rate = 0.5 if split == "reptile" else 0.01
    *_, (ours, losses) = MetaTraining(split, 0.1, rate, 3).train(NET, start, episodes_of(rainbow, 3))
    for seed in range(2):
        model = Slow(start, seed)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for episodes in episodes_of(rainbow, 3):
            halves = (torch.arange(10), torch.arange(10, 20))
            tasks = [Task(episodes.images[seed, k], episodes.labels[seed, k], *halves) for k in range(2)]
            if split == "reptile":
                report = Reptile(0.1, 3, epsilon=0.5).step(model, tasks, functional.cross_entropy)
            else:
                chosen = "train-train" if split == "train-train" else "train-val"
                method = Fomaml(0.1, 3, split=chosen)
                report = method.step(model, tasks, functional.cross_entropy, optimizer, generator=torch.Generator())
        for name, value in model.parts.items():
            torch.testing.assert_close(ours[name][seed].detach(), value.detach(), rtol=1e-6, atol=1e-8)
        assert float(losses[seed]) == pytest.approx(report.loss, rel=1e-6)


def test_accuracy_is_that_of_networks_one_by_one(rainbow):
    weights = as_double(NET.initial(SEEDS))
    episodes = rainbow.testing(SEEDS, 1, 1, 2)
    episodes = type(episodes)(episodes.images.double(), episodes.labels, episodes.support)
    after, before = accuracies(NET, weights, episodes, 0.1, 2)
    assert after.shape == before.shape == (2, 16)
    (images, labels), (query, truth) = episodes.parts()
    alone = {name: value[1:] for name, value in weights.items()}
    adapted = adapt(NET, alone, images[1:, 9], labels[1:, 9], 0.1, 2)
    guess = NET.outputs(adapted, query[1:, 9]).argmax(-1)
    assert float(after[1, 9]) == pytest.approx(float((guess == truth[1:, 9]).double().mean()))


def test_relu_is_a_knee_of_zero():
    x = torch.linspace(-2, 2, 9)
    assert torch.equal(ConvNet(8, 10, 2, 3, knee=0.0)._activate(x), torch.relu(x))


def test_impossible_networks_and_learners_are_refused():
    with pytest.raises(ValueError, match="halved"):
        ConvNet(8, 10, blocks=4)
    with pytest.raises(ValueError, match="unknown split"):
        MetaTraining("pooled")
    with pytest.raises(ValueError, match="share"):
        MetaTraining("reptile", outer_rate=2.0)
