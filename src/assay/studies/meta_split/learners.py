"""FOMAML with and without a split on the two-layer CNN: a fast engine on inner products.

Every update lies in the span of the data, and noise is orthogonal to features, so the engine tracks inner products of
the filters with the data and the coefficients of the data in the weights; its cost does not depend on the dimension.
Runs (seeds × grid cells × splits) are stacked along the first axis. A split is two weight vectors over the samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from assay.training import Seeds

from . import theory
from .problem import Coupling, Products, Tasks

TT, TV = SPLITS = ("train-train", "train-validation")  # without a split, and with one
Cell = tuple[str, float, float, int, float]  # split, γ, η, J, h
Label = TypeVar("Label")


def split_weights(split: str, samples: int, support: int) -> tuple[Tensor, Tensor]:
    """Weights of a task's samples in the inner and in the outer loss. ``leaked`` adapts and validates on the same
    half: a split that is none."""
    everything = torch.full((samples,), 1 / samples, dtype=torch.float64)
    first = torch.zeros(samples, dtype=torch.float64)
    first[:support] = 1 / support
    second = torch.zeros(samples, dtype=torch.float64)
    second[support:] = 1 / (samples - support)
    pairs = {
        "train-train": (everything, everything),
        "train-validation": (first, second),
        "leaked": (first, first),
    }
    if split not in pairs:
        raise ValueError(f"unknown split '{split}' (allowed: {', '.join(pairs)})")
    return pairs[split]


@dataclass(frozen=True)
class Conditions:
    """What may differ between stacked runs, one value each: rates γ and η, inner steps J, knee h (tiny: ReLU), and
    the weights (runs, samples) of a task's samples in the inner and the outer loss."""

    inner_rate: Tensor
    outer_rate: Tensor
    inner_steps: Tensor
    knee: Tensor
    inner: Tensor
    outer: Tensor

    def __post_init__(self) -> None:
        if bool((self.inner_steps < 0).any()):
            raise ValueError("the number of inner steps must not be negative")
        if bool((self.knee <= 0).any()):
            raise ValueError("the knee h of the activation must be positive")

    @staticmethod
    def of(cells: Iterable[Cell], seeds: Seeds, samples: int, support: int) -> Conditions:
        """Cells of (split, γ, η, J, h), each repeated for all seeds; runs are ordered cell by cell."""
        rows = [cell for cell in cells for _ in seeds]
        inner, outer = zip(*(split_weights(row[0], samples, support) for row in rows), strict=True)
        columns = [torch.tensor([row[i] for row in rows], dtype=torch.float64) for i in (1, 2, 4)]
        steps = torch.tensor([row[3] for row in rows])
        parts = [columns[0], columns[1], steps, columns[2], torch.stack(inner), torch.stack(outer)]
        return Conditions(*(part.to(seeds.device) for part in parts))

    def __len__(self) -> int:
        return len(self.inner_rate)


@dataclass(frozen=True)
class _Activity:
    """Margins y f (runs, tasks, samples), and the activation's slopes on noise (runs, tasks, filters, samples) and on
    the task's feature with either sign (runs, tasks, filters)."""

    margins: Tensor
    on_noise: Tensor
    on_plus: Tensor
    on_minus: Tensor


def _activity(products: Products, knee: Tensor) -> _Activity:
    """σ(z) = σ′(z)(z − hσ′(z)/2). A signal has one of two signs, so its part is computed per sign, not per sample."""
    j = products.groups.unsqueeze(1)
    h = knee.reshape(-1, 1, 1)
    on_noise = theory.slope(products.noise, h.unsqueeze(-1))
    felt = torch.addcmul(products.noise, on_noise, h.unsqueeze(-1), value=-0.5).mul_(on_noise)
    outputs = felt.mul_(j.unsqueeze(-1)).sum(2)
    on_plus, on_minus = theory.slope(products.feature, h), theory.slope(-products.feature, h)
    plus = (j * on_plus * (products.feature - h / 2 * on_plus)).sum(-1, keepdim=True)
    minus = (j * on_minus * (-products.feature - h / 2 * on_minus)).sum(-1, keepdim=True)
    outputs = outputs + torch.where(products.signs > 0, plus, minus)
    return _Activity(products.labels * outputs, on_noise, on_plus, on_minus)


def margins(products: Products, knee: Tensor) -> Tensor:
    """y f of every sample: (runs, tasks, samples)."""
    return _activity(products, knee).margins


def pulls(products: Products, weights: Tensor, knee: Tensor) -> tuple[Tensor, Tensor]:
    """Coefficients of the gradient of Σ_i weights_i ℓ_i on noise (runs, tasks, filters, samples) and on the task's
    feature (runs, tasks, filters); weights (runs, samples)."""
    j = products.groups.unsqueeze(1)
    active = _activity(products, knee)
    felt = weights.unsqueeze(1) * theory.loss_slope(active.margins) * products.labels
    noise = active.on_noise * (j.unsqueeze(-1) * felt.unsqueeze(2))
    positive = products.signs > 0
    plus, minus = (torch.where(side, felt, 0).sum(-1, keepdim=True) for side in (positive, ~positive))
    return noise, j * (active.on_plus * plus - active.on_minus * minus)


def adapt(products: Products, conditions: Conditions, weights: Tensor | None = None) -> Products:
    """J inner steps on each task by itself; ``weights`` (runs, samples) default to the conditions' inner ones. Runs
    that have had their steps are left out of the later ones."""
    weights = conditions.inner if weights is None else weights
    for step in range(int(conditions.inner_steps.max())):
        rows = (conditions.inner_steps > step).nonzero().squeeze(1)
        if len(rows) == len(conditions):
            products = _inner_step(products, weights, conditions.inner_rate, conditions.knee)
            continue
        part = Products(**{name: value[rows] for name, value in vars(products).items()})
        part = _inner_step(part, weights[rows], conditions.inner_rate[rows], conditions.knee[rows])
        moved = {n: getattr(products, n).index_copy(0, rows, getattr(part, n)) for n in ("noise", "feature")}
        products = replace(products, **moved)
    return products


def _inner_step(products: Products, weights: Tensor, rate: Tensor, knee: Tensor) -> Products:
    noise, feature = pulls(products, weights, knee)
    return replace(
        products,
        noise=products.noise - rate.reshape(-1, 1, 1, 1) * (noise @ products.within),
        feature=products.feature - (rate.unsqueeze(-1) * products.norms).unsqueeze(-1) * feature,
    )


@dataclass(frozen=True)
class Look:
    """The state before outer step ``step``: products of the observed tasks before and after the inner steps, the
    coefficients of the data in W − W⁽⁰⁾, and the meta-training loss of every task (runs, tasks)."""

    step: int
    before: Products
    after: Products
    noise: Tensor
    feature: Tensor
    losses: Tensor
    least_gain: Tensor  # smallest change of any j⟨w, ν⟩ in one outer step so far: (runs,)

    @property
    def meta_loss(self) -> Tensor:
        return self.losses.mean(-1)

    def shared_after(self) -> Tensor:
        """⟨w, ν⟩ after the inner steps of each task: (runs, tasks, filters). Inner updates lie along ν_k."""
        share = self.before.shared_norm.unsqueeze(-1) / self.before.norms
        return self.before.shared.unsqueeze(1) + share.unsqueeze(-1) * (self.after.feature - self.before.feature)

    def feature_amplification(self) -> Tensor:
        """Alignment with the shared feature after over before the inner steps, mean over tasks and classes: (runs,)."""
        before = theory.feature_alignment(self.before.shared).unsqueeze(1)
        return (theory.feature_alignment(self.shared_after()) / before).mean((1, 2))


def train(
    products: Products, coupling: Coupling, conditions: Conditions, steps: int, looks: Iterable[int]
) -> Iterator[Look]:
    """FOMAML on all runs at once; yields at the steps in ``looks`` (``steps`` itself is the trained network)."""
    wanted = set(looks)
    runs, tasks, filters, samples = products.noise.shape
    noise = products.noise.new_zeros(runs, filters, tasks * samples)
    feature = products.noise.new_zeros(runs, filters, tasks)
    least = products.noise.new_full((runs,), float("inf"))
    j = products.groups
    rate = (conditions.outer_rate / tasks).reshape(-1, 1, 1)
    for step in range(steps + 1):
        after = adapt(products, conditions)
        if step in wanted:
            losses = (conditions.outer.unsqueeze(1) * theory.loss(margins(after, conditions.knee))).sum(-1)
            if not bool(losses.isfinite().all()):
                raise FloatingPointError(f"the meta-training loss is not finite at outer step {step}")
            yield Look(step, products, after, noise, feature, losses, least)
        if step == steps:
            return
        on_noise, on_feature = pulls(after, conditions.outer, conditions.knee)
        noise_step = -rate * on_noise.transpose(1, 2).flatten(2)
        feature_step = -rate * on_feature.mT
        moved = coupling.moved(products, noise_step, feature_step)
        least = torch.minimum(least, (j * (moved.shared - products.shared)).amin(-1))
        products, noise, feature = moved, noise + noise_step, feature + feature_step


@dataclass(frozen=True)
class Unseen:
    """New tasks for testing: their first ``support`` samples are for adaptation, the rest for measuring."""

    products: Products
    coupling: Coupling
    support: int

    def evaluate(self, look: Look, conditions: Conditions) -> dict[str, Tensor]:
        """Loss and accuracy over tasks, before and after J inner steps on the support samples: (runs,) each."""
        now = self.coupling.moved(self.products, look.noise, look.feature)
        weights = torch.zeros(now.labels.shape[-1], dtype=now.noise.dtype, device=now.noise.device)
        weights[: self.support] = 1 / self.support
        adapted = adapt(now, conditions, weights.expand(len(conditions), -1))
        found = {}
        for name, state in (("test", now), ("adapted", adapted)):
            margin = margins(state, conditions.knee)[..., self.support :]
            found[f"{name}_loss"] = theory.loss(margin).mean((1, 2))
            found[f"{name}_accuracy"] = (margin > 0).to(margin.dtype).mean((1, 2))
        return found

    @property
    def answers(self) -> int:
        """Test samples of all tasks: what an accuracy is a share of."""
        tasks, samples = self.products.labels.shape[1:]
        return tasks * (samples - self.support)


@dataclass(frozen=True)
class Stack:
    """All runs of a unit: what they train on, how, and what they are tested on."""

    products: Products
    coupling: Coupling
    conditions: Conditions
    unseen: Unseen

    @staticmethod
    def of(tasks: Tasks, unseen: Tasks, start: Tensor, cells: Sequence[Cell], seeds: Seeds) -> Stack:
        """``cells`` × seeds, all on the same draws and from the same filters ``start`` (seeds, filters, dim)."""
        count = len(cells)
        tested = Products.of(unseen, start).stacked(count), Coupling.of(tasks, unseen).stacked(count)
        return Stack(
            Products.of(tasks, start).stacked(count),
            Coupling.of(tasks, tasks).stacked(count),
            Conditions.of(cells, seeds, tasks.labels.shape[-1], tasks.support),
            Unseen(*tested, tasks.support),
        )

    def train(self, steps: int, looks: Iterable[int]) -> Iterator[Look]:
        return train(self.products, self.coupling, self.conditions, steps, looks)

    def test(self, look: Look) -> dict[str, Tensor]:
        return self.unseen.evaluate(look, self.conditions)

    @property
    def trials(self) -> dict[str, int]:
        """What the accuracies of a test are shares of."""
        return dict.fromkeys(("test_accuracy", "adapted_accuracy"), self.unseen.answers)


def look_steps(steps: int, every: int) -> list[int]:
    return sorted({*range(0, steps + 1, every), steps})


def by_cell(labels: Sequence[Label], found: Mapping[str, Tensor]) -> Iterator[tuple[Label, dict[str, Any]]]:
    """Values (cells · seeds,) taken apart: each cell's label with its values (seeds,)."""
    parts = zip(*(values.chunk(len(labels)) for values in found.values()), strict=True)
    for label, part in zip(labels, parts, strict=True):
        yield label, dict(zip(found, part, strict=True))


def outer_samples(split: str, tasks: int, samples: int, support: int) -> int:
    """Samples of all tasks that the outer loss of a split sees."""
    return tasks * int((split_weights(split, samples, support)[1] > 0).sum())


# What is read off a look, (runs,) each


def weighted(values: Tensor, weights: Tensor) -> Tensor:
    """Mean over tasks and the samples that ``weights`` (runs, samples) counts."""
    return (values * weights.unsqueeze(1)).sum(-1).mean(-1)


def alignment_metrics(look: Look, conditions: Conditions, memorised_at: float) -> dict[str, Tensor]:
    """Feature and noise before the inner steps, and their ratio with the smaller and the larger Λ_j."""
    now = look.before
    feature = theory.feature_alignment(now.shared)
    own = now.noise_alignment()
    noise = weighted(own, conditions.outer)
    level = torch.as_tensor(memorised_at, dtype=own.dtype, device=own.device).reshape(-1, 1, 1)
    task = (now.feature - now.shared.unsqueeze(1)).abs().amax((1, 2))
    return {
        "feature_alignment": feature.amin(-1),
        "largest_feature_alignment": feature.amax(-1),
        "noise_alignment": noise,
        "feature_over_noise": feature.amin(-1) / noise,
        "largest_feature_over_noise": feature.amax(-1) / noise,
        "memorised": weighted((own >= level).to(own.dtype), conditions.outer),
        "wrong_noise_alignment": now.noise_alignment(own=False).amax((1, 2)),
        "task_over_feature": task / feature.amin(-1),
    }
