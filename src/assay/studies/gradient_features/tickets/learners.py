"""Small networks cut out of a larger one, after its first step or at its start, and how fast they learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from assay.training.seeds import Seeds
from assay.training.two_layer import TwoLayer

from ..learners import errors, hinge_loss, train_both
from ..problem import Sample
from ..theory import cosines

Choice = Literal[
    "full",
    "ticket",
    "ticket, spread",
    "ticket, both signs",
    "ticket, other sign",
    "discovered",
    "random",
    "random, one sign",
    "magnitude",
    "snip",
    "init",
    "init, ticket's norms",
    "init, ticket's norms, outputs",
    "init, both signs",
    "init, both signs, ticket's norms",
    "init, both signs, ticket's norms, outputs",
]


def chosen_network(
    seeds: Seeds, who: Choice, start: TwoLayer, net: TwoLayer, sample: Sample, features: Tensor, size: int
) -> TwoLayer:
    """The network that races: all neurons after the step, or ``size`` of them after it or at the start. A ticket is
    spread evenly over the signed features; ``discovered`` looks for as many directions without knowing them. All
    choices are among the half in which no two neurons were one neuron at the start."""
    if who == "full":
        return net
    start, net = half(start), half(net)
    each = max(1, size // (2 * features.shape[-2]))
    ticket = nearest(net, features, each)
    if "both signs" in who:
        ticket = nearest_of_both_signs(net, features, each)
    if who.startswith("init"):
        silent = replace(start, output=start.output.sign() * (0.1 if who.endswith("outputs") else 0.0))
        return rescaled(keep(silent, ticket), keep(net, ticket)) if "norms" in who else keep(silent, ticket)
    if who == "random":
        return keep(net, random_choice(seeds, net.output.shape[1], ticket.shape[1]))
    if who == "random, one sign":
        return keep(net, random_of_sign(seeds, net.biases, ticket))
    if who in ("ticket", "ticket, both signs"):
        return keep(net, ticket)
    if who == "ticket, other sign":
        return keep(net, nearest_of_sign(net, features, each, -most_signs(net.biases, ticket)))
    if who == "ticket, spread":
        return keep(net, spread_over_switches(net, nearest(net, features, 2 * each), each))
    if who == "discovered":
        return keep(net, nearest(net, discovered(net, features.shape[-2], cosine=0.7), each))
    scores = net.weights.norm(dim=-1) if who == "magnitude" else sensitivity(net, sample)
    return keep(net, scores.topk(ticket.shape[1], dim=1).indices)


def half(net: TwoLayer) -> TwoLayer:
    """The first half of a mirrored network: at the start the other half has the same weights and thresholds once more,
    and after the step their opposites, so that the nearest to a feature and to its opposite are one start neuron."""
    size = net.output.shape[1] // 2
    return TwoLayer(net.weights[:, :size], net.biases[:, :size], net.output[:, :size])


def keep(net: TwoLayer, chosen: Tensor) -> TwoLayer:
    """The network of the chosen neurons, (seeds, size) indices."""
    rows = torch.arange(len(chosen)).unsqueeze(1)
    return TwoLayer(net.weights[rows, chosen], net.biases[rows, chosen], net.output[rows, chosen])


def nearest(net: TwoLayer, features: Tensor, each: int) -> Tensor:
    """The ``each`` neurons with the largest cosine to every signed feature, given (…, features, dim) for all seeds
    or one by one: (seeds, 2·features·each) indices."""
    signed = torch.cat([features, -features], -2)
    found = cosines(net.weights, signed)  # (seeds, neurons, signed features)
    return found.topk(each, dim=1).indices.mT.flatten(1)


def nearest_of_sign(net: TwoLayer, features: Tensor, each: int, sign: Tensor | float) -> Tensor:
    """``nearest``, among the neurons alone whose thresholds have this sign, one for all seeds or (seeds, 1)."""
    signed = torch.cat([features, -features], -2)
    found = cosines(net.weights, signed)  # (seeds, neurons, signed features)
    side = found.masked_fill((net.biases.sign() != sign).unsqueeze(-1), -math.inf)
    return side.topk(each, dim=1).indices.mT.flatten(1)


def nearest_of_both_signs(net: TwoLayer, features: Tensor, each: int) -> Tensor:
    """Half of the ``each`` neurons for every signed feature among those with a threshold above 0 and half among those
    with one below: the nearest of all may have thresholds of one sign only."""
    above = nearest_of_sign(net, features, each - each // 2, 1.0)
    below = nearest_of_sign(net, features, each // 2, -1.0)
    by_feature = (len(above), 2 * features.shape[-2], -1 if below.numel() else 0)
    return torch.cat([above.reshape(*by_feature[:2], -1), below.reshape(by_feature)], -1).flatten(1)


def most_signs(biases: Tensor, chosen: Tensor) -> Tensor:
    """The sign that most of the chosen neurons' thresholds have, +1 where they are even: (seeds, 1)."""
    total = biases.gather(1, chosen).sign().sum(1, keepdim=True)
    return torch.where(total < 0, -1.0, 1.0).to(biases)


def spread_over_switches(net: TwoLayer, candidates: Tensor, each: int) -> Tensor:
    """Of every 2·each candidates in a row, which stand for one signed feature, the ``each`` that lie evenly by the rank
    of their switch |b|/‖w‖: (seeds, size) indices of half as many."""
    rows = torch.arange(len(candidates)).unsqueeze(1)
    switches = net.biases.abs() / net.weights.norm(dim=-1).clamp(min=1e-12)
    groups = candidates.reshape(len(candidates), -1, 2 * each)
    order = switches[rows, candidates].reshape(groups.shape).argsort(-1)
    return groups.gather(-1, order[..., ::2]).flatten(1)


def discovered(net: TwoLayer, count: int, cosine: float) -> Tensor:
    """Directions found without knowing the features: again and again the weight with the most others within the cone
    (of either sign), whose cone is then left out: (seeds, count, dim)."""
    unit = net.weights / net.weights.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    near = (unit @ unit.mT).abs() > cosine  # (seeds, neurons, neurons)
    free, rows, found = near.new_ones(near.shape[:2]), torch.arange(len(unit)), []
    for _ in range(count):
        crowd = (near & free.unsqueeze(1)).sum(-1) * free
        centre = crowd.argmax(1)
        found.append(unit[rows, centre])
        free = free & ~near[rows, centre]
    return torch.stack(found, 1)


def sensitivity(net: TwoLayer, sample: Sample) -> Tensor:
    """|∂L/∂a_i| at outputs 0: how much the loss would feel a neuron's connection (the score of SNIP in that limit)."""
    z = net.preactivation(sample.inputs).clamp(min=0)
    return (z * sample.labels.unsqueeze(-1)).mean(1).abs()


def rescaled(net: TwoLayer, like: TwoLayer) -> TwoLayer:
    """The same neurons with the weight norms of another network; thresholds are scaled along, so gates stay."""
    factor = like.weights.norm(dim=-1) / net.weights.norm(dim=-1)
    return TwoLayer(net.weights * factor.unsqueeze(-1), net.biases * factor, net.output)


@dataclass(frozen=True)
class Race:
    """How fast a network learned at the rate that was best for it on validation inputs, seed by seed."""

    steps: tuple[int, ...]
    losses: Tensor  # (times, seeds): test hinge loss at those steps
    rates: Tensor  # (seeds,)
    first: Tensor  # (seeds,): the step from which the test loss stays below the level, the last where it does not
    reached: Tensor  # (seeds,) booleans
    error: Tensor  # (seeds,): test error at the end


def race(
    net: TwoLayer,
    batch: Callable[[int], Sample],
    validation: Sample,
    test: Sample,
    *,
    rates: Sequence[float],
    steps: Sequence[int],
    level: float,
) -> Race:
    """Train at every rate; each seed takes the rate at which its validation loss is soonest below the level for good
    (among equals, or when none is, the one with the least loss at the end). A dip that does not last counts for
    nothing: at a high rate it comes by chance, and test inputs do not see it."""
    moments = set(steps)
    curves, checks, ends = [], [], []
    for rate in rates:
        seen, checked, last = [], [], net
        for step, last in train_both(net, batch, rate, max(steps)):
            if step in moments:
                seen.append(hinge_loss(last, test))
                checked.append(hinge_loss(last, validation))
        curves.append(torch.stack(seen))
        checks.append(torch.stack(checked))
        ends.append(errors(last, test))
    checked_all = torch.stack(checks)  # (rates, times, seeds)
    device = checked_all.device
    times = torch.tensor(sorted(steps), device=device)
    quality = times[_settled(checked_all, level)] + checked_all[:, -1].nan_to_num(1e3).clamp(max=1e3) / 1e4
    chosen = quality.argmin(0)
    seeds = torch.arange(len(chosen), device=device)
    losses = torch.stack(curves)[chosen, :, seeds].T  # (times, seeds)
    return Race(
        tuple(sorted(steps)),
        losses,
        torch.tensor(rates, dtype=torch.float64, device=device)[chosen],
        times[_settled(losses, level)],
        losses[-1] < level,
        torch.stack(ends)[chosen, seeds],
    )


def _settled(losses: Tensor, level: float) -> Tensor:
    """Index of the time from which on all are below the level, the last index where there is none: (…, times, seeds)
    -> (…, seeds)."""
    stays = (losses < level).int().flip(-2).cumprod(-2).flip(-2)
    stays[..., -1, :] = 1
    return stays.argmax(-2)


def random_choice(seeds: Seeds, neurons: int, size: int) -> Tensor:
    return seeds.permutation("random ticket", neurons)[:, :size]


def random_of_sign(seeds: Seeds, biases: Tensor, like: Tensor) -> Tensor:
    """As many random neurons as are in ``like``, all with thresholds of the sign that most of those have."""
    order = seeds.permutation("random ticket", biases.shape[1])
    others = biases.gather(1, order).sign() != most_signs(biases, like)
    first = others.int().argsort(dim=1, stable=True)[:, : like.shape[1]]
    return order.gather(1, first)
