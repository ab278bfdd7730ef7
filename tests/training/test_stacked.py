"""Networks stacked over seeds: the same as one at a time, whatever company they have."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from assay.training import KeepBest, Seeds, Stacked, clip_by_seed
from assay.training.seeds import stream


def mlp():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def convolution():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4, track_running_stats=False), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 9, 3)
    )


KINDS = {"mlp": (mlp, (6,)), "convolution": (convolution, (1, 5, 5))}


def alone(make, seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream(seed, "initial weights").initial_seed())
        return make().double()


def data(seeds, shape):
    inputs = seeds.draw("inputs", lambda g: torch.randn(16, *shape, generator=g))
    return inputs, seeds.draw("labels", lambda g: torch.randint(3, (16,), generator=g))


def losses(outputs, labels):
    return torch.stack([functional.cross_entropy(o, y) for o, y in zip(outputs, labels, strict=True)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_training_together_is_training_one_at_a_time(kind, optimiser):
    make, shape = KINDS[kind]
    rules = {"sgd": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), "adam": lambda p: torch.optim.Adam(p, 0.01)}
    seeds = Seeds((3, 5, 8), dtype=torch.float64)
    stacked, (inputs, labels) = Stacked(make, seeds), data(seeds, shape)
    rule = rules[optimiser](stacked.parameters())
    for _ in range(5):
        rule.zero_grad()
        losses(stacked(inputs), labels).sum().backward()
        clip_by_seed(stacked.parameters(), 0.5)
        rule.step()
    for at, seed in enumerate(seeds):
        single = alone(make, seed)
        rule = rules[optimiser](single.parameters())
        for _ in range(5):
            rule.zero_grad()
            functional.cross_entropy(single(inputs[at]), labels[at]).backward()
            nn.utils.clip_grad_norm_(single.parameters(), 0.5)
            rule.step()
        for name, value in single.named_parameters():
            # torch's own clipping adds 1e-6 to the norm that it divides by.
            torch.testing.assert_close(stacked.weights[name][at], value.data, rtol=0, atol=1e-5)


def test_a_seeds_network_does_not_depend_on_its_company():
    few, many = Stacked(mlp, Seeds((5,))), Stacked(mlp, Seeds((1, 5, 9)))
    for name, value in few.weights.items():
        assert torch.equal(value[0], many.weights[name][1])
    assert not torch.equal(many.weights["0.weight"][0], many.weights["0.weight"][1])


def test_torchs_own_generator_is_left_as_it_was():
    before = torch.get_rng_state()
    Stacked(mlp, Seeds((0, 1)))
    assert torch.equal(torch.get_rng_state(), before)


def test_one_batch_for_all():
    stacked = Stacked(mlp, Seeds((0, 1)))
    batch = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(stacked(batch, shared=True), stacked(batch.expand(2, 4, 6)))


def test_running_statistics_are_refused():
    with pytest.raises(ValueError, match="track_running_stats=False"):
        Stacked(lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), Seeds((0, 1)))


def test_clipping_goes_by_the_seed():
    weights = nn.Parameter(torch.zeros(2, 3))
    other = nn.Parameter(torch.zeros(2))
    weights.grad, other.grad = torch.tensor([[3.0, 0, 0], [0.1, 0, 0]]), torch.tensor([4.0, 0.0])
    norms = clip_by_seed([weights, other], 1.0)
    torch.testing.assert_close(norms, torch.tensor([5.0, 0.1]))
    torch.testing.assert_close(weights.grad, torch.tensor([[0.6, 0, 0], [0.1, 0, 0]]))
    torch.testing.assert_close(other.grad, torch.tensor([0.8, 0.0]))
    weights.grad = torch.zeros(2, 3)
    clip_by_seed([weights], 1.0)
    assert torch.equal(weights.grad, torch.zeros(2, 3))
    with pytest.raises(ValueError, match="positive"):
        clip_by_seed([weights], 0)


def test_each_seed_keeps_its_own_best_moment():
    stacked = Stacked(mlp, Seeds((0, 1, 2)))
    best = KeepBest(stacked)
    moments = []
    for scores in ([0.1, 0.9, 0.5], [0.7, 0.2, float("nan")], [0.3, 0.9, 0.4]):
        with torch.no_grad():
            for value in stacked.values:
                value.add_(1)
        moments.append({name: value.detach().clone() for name, value in stacked.weights.items()})
        best.offer(torch.tensor(scores))
    best.restore()
    torch.testing.assert_close(best.scores, torch.tensor([0.7, 0.9, 0.5]))
    for name, value in stacked.weights.items():
        for seed, moment in enumerate((1, 0, 0)):
            assert torch.equal(value[seed], moments[moment][name][seed])
