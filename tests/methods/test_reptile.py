"""Reptile: its step against gradient descent, the mean of adapted weights, the proximal pull, refusals."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from assay.methods import Reptile, Task, fomaml
from assay.methods.inner_loop import InnerLoop


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()


def task(seed=0, split=True):
    inputs = torch.randn(8, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    halves = (torch.arange(4), torch.arange(4, 8)) if split else ()
    return Task(inputs, torch.tensor([0, 1] * 4), *halves)


def test_reptile_with_one_task_and_one_step_is_gradient_descent():
    model, one = network(), task(split=False)
    slopes = torch.autograd.grad(functional.cross_entropy(model(one.inputs), one.labels), list(model.parameters()))
    before = [p.detach().clone() for p in model.parameters()]
    report = Reptile(0.3, 1, epsilon=0.4).step(model, [one], functional.cross_entropy)
    for old, new, slope in zip(before, model.parameters(), slopes, strict=True):
        torch.testing.assert_close(new.detach(), old - 0.4 * 0.3 * slope, rtol=0, atol=1e-12)
    assert report.moved == pytest.approx(0.12 * float(torch.stack([s.norm() for s in slopes]).norm()))


def test_reptile_moves_towards_the_mean_of_adapted_weights():
    model, tasks = network(), [task(1, False), task(2, False)]
    method = Reptile(0.3, 3, epsilon=1.0)
    adapted = [method.inner().adapt(model, one, functional.cross_entropy)["0.weight"].detach() for one in tasks]
    method.step(model, tasks, functional.cross_entropy)
    torch.testing.assert_close(model[0].weight.detach(), torch.stack(adapted).mean(0), rtol=0, atol=1e-12)


def test_the_proximal_pull():
    model, one = network(), task(split=False)

    def adapted(proximal):
        return InnerLoop(0.3, 3, proximal=proximal).adapt(model, one, functional.cross_entropy)["0.weight"].detach()

    assert torch.equal(adapted(0.0), InnerLoop(0.3, 3).adapt(model, one, functional.cross_entropy)["0.weight"].detach())
    distances = [float((adapted(strength) - model[0].weight.detach()).norm()) for strength in (0.0, 1.0, 10.0)]
    assert distances[0] > distances[1] > distances[2] > 0
    torch.testing.assert_close(adapted(1e12), model[0].weight.detach(), rtol=0, atol=1e-9)
    # Many steps end where the slope of L + λ‖V − W‖² is zero.
    weights = InnerLoop(0.3, 2000, proximal=0.5).adapt(model, one, functional.cross_entropy)
    value, _ = InnerLoop(0.3).loss(model, weights, one, functional.cross_entropy)
    slopes = torch.autograd.grad(value, list(weights.values()))
    pulls = [w.detach() - p.detach() for w, p in zip(weights.values(), model.parameters(), strict=True)]
    for slope, pull in zip(slopes, pulls, strict=True):
        torch.testing.assert_close(slope, -2 * 0.5 * pull, rtol=0, atol=1e-8)


@pytest.mark.parametrize("change", [dict(epsilon=0.0), dict(epsilon=1.1), dict(tasks_per_step=0), dict(inner_steps=-1)])
def test_reptile_refuses_nonsense(change):
    with pytest.raises(ValueError, match="must"):
        Reptile(**{"inner_lr": 0.1, **change})
    with pytest.raises(ValueError, match="at least one task"):
        Reptile(0.1).step(network(), [], functional.cross_entropy)


def test_reptile_draws_the_tasks_that_fomaml_draws():
    seen = {}
    for name in ("fomaml", "reptile"):
        model, drawn = network(), []

        def sampler(g, drawn=drawn):
            drawn.append(int(torch.randint(100, (1,), generator=g)))
            return task(drawn[-1])

        if name == "fomaml":
            fomaml(
                model, sampler, functional.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.1), steps=3, seed=5
            )
        else:
            list(Reptile(0.1).train(model, sampler, functional.cross_entropy, steps=3, seed=5))
        seen[name] = drawn
    assert seen["fomaml"] == seen["reptile"]
    assert len(seen["fomaml"]) == 12
