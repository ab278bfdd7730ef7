"""Is a ticket worth more than any other choice of as many units? Train them side by side, each at its own best rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss, softplus

from assay._reports import PALETTE, Report, altair
from assay.training.seeds import stream

from ._checks import number, whole
from ._data import rows_of, whole_set
from ._layers import Layer
from ._models import answer, copied, evaluating
from ._precision import uncached_casts
from ._training import own_training
from .gradient_ticket import kept_units, masked

Loss = Callable[[Tensor, Tensor], Tensor]


def default_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy for class labels and several outputs, the logistic loss for labels and one, else squared error."""
    outputs = outputs.float()
    targets = targets.squeeze(1) if targets.ndim == 2 and targets.shape[1] == 1 else targets
    if targets.is_floating_point() and (targets.ndim > 1 or not bool((targets.abs() == 1).all())):
        if outputs.numel() != targets.numel():
            shapes = f"{tuple(targets.shape)} do not fit outputs {tuple(outputs.shape)}"
            raise ValueError(f"targets {shapes}: numbers need an output each, classes are integers")
        return mse_loss(outputs.reshape(targets.shape), targets)
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        return cross_entropy(outputs, targets.long())
    seen = torch.unique(targets).tolist()
    if not (set(seen) <= {0, 1} or set(seen) <= {-1, 1}):
        raise ValueError(f"a single output needs labels 0 and 1, or -1 and 1, or numbers of type float, not {seen[:5]}")
    return softplus(-torch.where(targets == 1, 1.0, -1.0) * outputs.reshape(len(targets))).mean()


@dataclass(frozen=True)
class RaceArm:
    """One choice of units at the rate that did best on the validation data; numbers per seed are on the test data."""

    name: str
    units: int
    learning_rate: float
    at_edge: bool  # the best rate is the smallest or largest tried: a wider grid may change the result
    losses: Tensor  # (seeds, points)
    steps_to_level: tuple[int | None, ...]  # per seed; None where the level was not reached

    @property
    def final(self) -> Tensor:
        """(seeds,)."""
        return self.losses[:, -1]


@dataclass(frozen=True, repr=False)
class TicketRace(Report):
    """Arms that train the same way on the same batches; ``level`` is the test loss that ends the race."""

    level: float
    points: tuple[int, ...]  # steps at which the loss was measured
    arms: tuple[RaceArm, ...]
    seeds: int = field(default=1)

    def arm(self, name: str) -> RaceArm:
        """An arm by its name."""
        return {each.name: each for each in self.arms}[name]

    def beats(self, name: str, other: str) -> int:
        """In how many seeds the first arm reached the level earlier; a seed in which neither did counts for none."""
        pairs = zip(self.arm(name).steps_to_level, self.arm(other).steps_to_level, strict=True)
        return sum(ours is not None and (theirs is None or ours < theirs) for ours, theirs in pairs)

    def headline(self) -> str:
        others = [arm.name for arm in self.arms if arm.name not in ("full", "ticket")]
        won = ", ".join(f"{name} in {self.beats('ticket', name)} of {self.seeds} seeds" for name in others)
        lines = [f"test loss {self.level:.3g} was reached by the ticket before {won}"]
        if edges := [arm.name for arm in self.arms if arm.at_edge]:
            lines.append(f"the best rate of {', '.join(edges)} is the smallest or largest tried: widen learning_rates")
        return "\n".join(lines)

    def table(self) -> list[dict[str, Any]]:
        """A row per arm; ``steps`` is the mean over the seeds that reached the level."""
        rows = []
        for arm in self.arms:
            reached = [steps for steps in arm.steps_to_level if steps is not None]
            rows.append(
                {
                    "arm": arm.name,
                    "units": arm.units,
                    "rate": arm.learning_rate,
                    "edge": arm.at_edge,
                    "reached": f"{len(reached)}/{self.seeds}",
                    "steps": sum(reached) / len(reached) if reached else None,
                    "final_loss": float(arm.final.mean()),
                    "final_range": f"{float(arm.final.min()):.3g}..{float(arm.final.max()):.3g}",
                }
            )
        return rows

    def figure(self) -> Any:
        """Test loss over steps, the mean over seeds, one line per arm."""
        alt = altair()
        rows = [
            {"arm": arm.name, "step": step, "loss": loss}
            for arm in self.arms
            for step, loss in zip(self.points, arm.losses.mean(0).tolist(), strict=True)
        ]
        names = [arm.name for arm in self.arms]
        lines = (
            alt.Chart(alt.Data(values=rows))
            .mark_line(point=True)
            .encode(
                x=alt.X("step:Q", scale=alt.Scale(type="symlog"), title="step"),
                y=alt.Y("loss:Q", scale=alt.Scale(type="log"), title="test loss"),
                color=alt.Color("arm:N", sort=names, scale=alt.Scale(domain=names, range=list(PALETTE)), title="units"),
            )
        )
        goal = alt.Chart(alt.Data(values=[{"loss": self.level}])).mark_rule(strokeDash=[4, 4]).encode(y="loss:Q")
        return (lines + goal).properties(width=420, height=280, title="Training with some of the units")


def compare_tickets(
    model: nn.Module,
    layer: str,
    mask: Tensor,
    train: Any,
    validation: Any,
    test: Any,
    *,
    initial: nn.Module | None = None,
    steps: int = 200,
    batch_size: int = 64,
    learning_rates: Sequence[float] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    seeds: int = 3,
    level: float | None = None,
    loss: Loss = default_loss,
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.SGD,
) -> TicketRace:
    """Train the model in full, its ticket ``mask``, and as many units chosen otherwise: at random, by the norm of their
    weights, by |weight · gradient| (SNIP); with the model ``initial``, as it was before its first step, the ticket's
    units there. Data are (inputs, targets), mappings with labels, or data loaders of either. Each arm has its own best
    rate, by the validation loss at the end, averaged over seeds; a seed is an order of batches and, for the random arm,
    a choice of units. The race is to the test loss ``level``: by default that of an output of zero less nine tenths of
    what the full network gains on it.
    """
    steps, batch_size, seeds = whole("steps", steps, 1), whole("batch_size", batch_size, 1), whole("seeds", seeds, 1)
    rates = list(learning_rates) if isinstance(learning_rates, Iterable) else [learning_rates]
    for rate in rates:
        number("each of learning_rates", rate, above=0)
    if not rates:
        raise ValueError("learning_rates must hold at least one number")
    rates.sort()
    if level is not None:
        number("level", level)
    chosen = Layer(model, layer)
    mask = kept_units(chosen, mask)
    if initial is not None:
        kept_units(Layer(initial, layer), mask)
    given = {"train": train, "validation": validation, "test": test}
    data = {name: whole_set(part, name, chosen.device) for name, part in given.items()}
    starts = _starts(model, initial, chosen, mask, data["train"], loss)
    points = tuple(sorted({0, *(round(steps ** (i / 12)) for i in range(13)), steps}))
    curves = {
        name: {
            rate: _train(start, layer, masks, data, rate, points, batch_size, seeds, loss, optimizer) for rate in rates
        }
        for name, (start, masks) in starts.items()
    }
    best = {name: _best(found) for name, found in curves.items()}
    if level is None:
        last = float(curves["full"][best["full"]][1][:, -1].mean())
        level = last + 0.1 * (_at_zero(model, data["test"], loss) - last)
    arms = []
    for name in starts:
        rate, losses = best[name], curves[name][best[name]][1]
        arms.append(
            RaceArm(
                name=name,
                units=len(mask) if name == "full" else int(mask.sum()),
                learning_rate=rate,
                at_edge=rate in (rates[0], rates[-1]),
                losses=losses,
                steps_to_level=tuple(_first(row, points, level) for row in losses),
            )
        )
    return TicketRace(level, points, tuple(arms), seeds)


def _starts(
    model: nn.Module, initial: nn.Module | None, layer: Layer, mask: Tensor, train: tuple[Any, Tensor], loss: Loss
) -> dict[str, tuple[nn.Module, Callable[[int], Tensor | None]]]:
    """Of every arm the model that it starts from, and the units that a seed trains there (all of them where none)."""
    size = int(mask.sum())
    heavy = _largest(torch.linalg.vector_norm(layer.rows(), dim=1), size)
    snip = _snip(model, layer, train, loss, size)

    def random_units(seed: int) -> Tensor:
        order = torch.randperm(len(mask), generator=stream(seed, "units"))
        return torch.zeros_like(mask, device="cpu").index_fill_(0, order[:size], True)

    starts: dict[str, tuple[nn.Module, Callable[[int], Tensor | None]]] = {
        "full": (model, lambda seed: None),
        "ticket": (model, lambda seed: mask),
        "random": (model, random_units),
        "magnitude": (model, lambda seed: heavy),
        "snip": (model, lambda seed: snip),
    }
    return starts if initial is None else {**starts, "initial": (initial, lambda seed: mask)}


def _largest(scores: Tensor, size: int) -> Tensor:
    order = scores.cpu().argsort(descending=True, stable=True)
    return torch.zeros(len(scores), dtype=torch.bool).index_fill_(0, order[:size], True)


def _snip(model: nn.Module, layer: Layer, data: tuple[Any, Tensor], loss: Loss, size: int) -> Tensor:
    """The units with the largest |Σ weight · gradient| of the training loss at the start."""
    twin = Layer(copied(model).requires_grad_(True), layer.name)
    rows = slice(0, 2048)
    with evaluating(twin.model), uncached_casts(), torch.enable_grad():
        value = loss(answer(twin.model, rows_of(data[0], rows)), data[1][rows])
    (gradient,) = torch.autograd.grad(value, [twin.weight])
    return _largest((twin.rows() * twin.rows(gradient)).sum(1).abs(), size)


def _train(
    start: nn.Module,
    layer: str,
    masks: Callable[[int], Tensor | None],
    data: Mapping[str, tuple[Any, Tensor]],
    rate: float,
    points: tuple[int, ...],
    batch_size: int,
    seeds: int,
    loss: Loss,
    optimizer: Callable[..., torch.optim.Optimizer],
) -> tuple[float, Tensor]:
    """The final validation loss, its mean over seeds, and the test losses (seeds, points); infinite after a
    divergence."""
    inputs, targets = data["train"]
    final, curves = [], []
    for seed in range(seeds):
        with own_training(seed, "race", start):
            units = masks(seed)
            network = (copied(start) if units is None else masked(start, layer, units)).train()
            rule = optimizer([p for p in network.parameters() if p.requires_grad], lr=rate)
            draws = stream(seed, "batches")
            curve: list[float] = []
            for step in range(points[-1] + 1):
                if step in points:
                    curve.append(_held_out(network, data["test"], loss))
                if step == points[-1] or curve[-1] == float("inf"):
                    break
                index = torch.randint(len(targets), (batch_size,), generator=draws)
                rule.zero_grad()
                loss(answer(network, rows_of(inputs, index)), targets[index.to(targets.device)]).backward()  # type: ignore[no-untyped-call]
                rule.step()
            done = len(curve) == len(points)
            curves.append(curve + [float("inf")] * (len(points) - len(curve)))
            final.append(_held_out(network, data["validation"], loss) if done else float("inf"))
    return sum(final) / seeds, torch.tensor(curves)


@torch.no_grad()
def _held_out(network: nn.Module, data: tuple[Any, Tensor], loss: Loss) -> float:
    """The mean loss, in evaluation mode; infinite where it is not a number."""
    total = 0.0
    with evaluating(network):
        for begin in range(0, len(data[1]), 1024):
            rows = slice(begin, begin + 1024)
            targets = data[1][rows]
            total += float(loss(answer(network, rows_of(data[0], rows)), targets)) * len(targets)
    value = total / len(data[1])
    return value if value == value else float("inf")


@torch.no_grad()
def _at_zero(model: nn.Module, data: tuple[Any, Tensor], loss: Loss) -> float:
    """The loss of an output of zero."""
    with evaluating(model):
        few = answer(model, rows_of(data[0], slice(0, 2)))
    return float(loss(few.new_zeros(len(data[1]), *few.shape[1:]), data[1]))


def _best(found: Mapping[float, tuple[float, Tensor]]) -> float:
    rate = min(found, key=lambda each: found[each][0])
    if found[rate][0] == float("inf"):
        raise ValueError(f"training diverged at every learning rate of {sorted(found)}: try smaller ones")
    return rate


def _first(losses: Tensor, points: tuple[int, ...], level: float) -> int | None:
    reached = (losses <= level).nonzero()
    return points[int(reached[0])] if len(reached) else None
