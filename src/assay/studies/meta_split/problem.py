"""Tasks that share one feature: a two-patch input holds y(ν + z) in one patch and noise in the other.

``Products`` and ``Coupling`` are all that filters see of them: inner products, whose number does not grow with the
dimension.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from assay.training import Seeds

from . import theory

ORTHOGONAL = 1e-6


@dataclass(frozen=True)
class Tasks:
    """Samples of several tasks with everything that made them.

    ``shared`` ν (seeds, dim), ``own`` z_k (seeds, tasks, dim), ``noise`` ξ (seeds, tasks, samples, dim), ``labels`` ±1
    and ``signal_patch`` (seeds, tasks, samples). The first ``support`` samples of a task are its training half.
    ``sign`` is that of the signal, the label unless labels were shuffled.
    """

    shared: Tensor
    own: Tensor
    noise: Tensor
    labels: Tensor
    signal_patch: Tensor
    support: int
    sign: Tensor | None = None
    allow_degenerate: bool = False

    def __post_init__(self) -> None:
        if not bool((self.labels.abs() == 1).all()):
            raise ValueError("labels must be +1 or −1")
        if not 1 <= self.support < self.labels.shape[-1]:
            raise ValueError(f"{self.support} of {self.labels.shape[-1]} samples cannot be split off for training")
        scale = self.shared.norm(dim=-1).amax() * self.own.norm(dim=-1).amax().clamp(min=1e-30)
        if float((self.own @ self.shared.unsqueeze(-1)).abs().amax()) > ORTHOGONAL * float(scale):
            raise ValueError("the tasks' own features must be orthogonal to the shared one")
        if not self.allow_degenerate and self._one_class():
            raise ValueError("a half of a task has samples of one class only; draw again, or allow_degenerate=True")

    def _one_class(self) -> bool:
        halves = (self.labels[..., : self.support], self.labels[..., self.support :])
        return any(bool((half.sum(-1).abs() == half.shape[-1]).any()) for half in halves)

    @property
    def signs(self) -> Tensor:
        return self.labels if self.sign is None else self.sign

    @cached_property
    def features(self) -> Tensor:
        """ν_k = ν + z_k: (seeds, tasks, dim)."""
        return self.shared.unsqueeze(1) + self.own

    @cached_property
    def inputs(self) -> Tensor:
        """(seeds, tasks, samples, 2 patches, dim)."""
        signal = self.signs.unsqueeze(-1) * self.features.unsqueeze(2)
        first = torch.where(self.signal_patch.unsqueeze(-1) == 0, signal, self.noise)
        second = torch.where(self.signal_patch.unsqueeze(-1) == 0, self.noise, signal)
        return torch.stack([first, second], dim=-2)

    @property
    def linear_solution(self) -> Tensor:
        """θ* = ‖ν‖⁻²[ν; ν], which labels every sample exactly: (seeds, 2, dim)."""
        unit = self.shared / self.shared.square().sum(-1, keepdim=True)
        return torch.stack([unit, unit], dim=-2)


@dataclass(frozen=True)
class SharedFeature:
    """The task and data distributions of Definitions 3.1 and 3.2 at finite sizes.

    ``noise_energy`` is s = E‖ξ‖², spread over the directions that the dictionary leaves free; ``task_norm`` is
    σ_s√d, the norm of the z_k. With ``balanced`` labels every half has equally many of both classes (±1 when odd);
    ``iid`` labels are drawn again until both halves have both. ``distinct`` draws tasks without replacement.
    """

    dim: int
    dictionary: int
    tasks: int
    samples: int
    support: int
    noise_energy: float = 8.0
    task_norm: float = 0.3
    feature_norm: float = 1.0
    basis: Literal["gaussian", "orthogonal"] = "gaussian"
    labels: Literal["balanced", "iid"] = "balanced"
    distinct: bool = True

    def __post_init__(self) -> None:
        if self.dictionary + 1 >= self.dim:
            raise ValueError(
                f"{self.dictionary} task features and the shared one leave no room for noise in {self.dim}"
            )
        if not 1 <= self.support < self.samples:
            raise ValueError(f"support must be in 1..{self.samples - 1}, not {self.support}")
        if min(self.support, self.samples - self.support) < 2:
            raise ValueError("both halves of a task need a sample of each class, so at least 2 samples")
        if self.distinct and self.tasks > self.dictionary:
            raise ValueError(f"{self.tasks} tasks cannot be drawn without replacement from {self.dictionary} features")
        if self.tasks < 1 or min(self.noise_energy, self.task_norm, self.feature_norm) <= 0:
            raise ValueError("tasks, noise_energy, task_norm and feature_norm must be positive")

    @property
    def free(self) -> int:
        """d − rank P: the directions that noise lives in."""
        return self.dim - self.dictionary - 1

    @property
    def noise_deviation(self) -> float:
        """σ_ξ."""
        return float((self.noise_energy / self.free) ** 0.5)

    def shared(self, seeds: Seeds) -> Tensor:
        """ν along the first axis: (seeds, dim). All draws are rotation invariant, so the coordinates are chosen: ν,
        then the dictionary's span, then the directions of the noise. Orthogonality is exact, and P is never formed."""
        vector = torch.zeros(len(seeds), self.dim, device=seeds.device, dtype=seeds.dtype)
        vector[:, 0] = self.feature_norm
        return vector

    def own_features(self, seeds: Seeds) -> Tensor:
        """z_1, ..., z_M, orthogonal to ν: (seeds, dictionary, dim). Gaussian ones are drawn in all d − 1 dimensions and
        then turned into their span, which keeps all products between them."""
        own = torch.zeros(len(seeds), self.dictionary, self.dim, device=seeds.device, dtype=seeds.dtype)
        if self.basis == "orthogonal":
            turned = torch.eye(self.dictionary, device=seeds.device, dtype=seeds.dtype).expand(len(seeds), -1, -1)
        else:
            drawn = seeds.normal("dictionary", self.dictionary, self.dim - 1)
            turned = self.dim**-0.5 * torch.linalg.qr(drawn.mT, mode="r").R.mT
        own[..., 1 : self.dictionary + 1] = self.task_norm * turned
        return own

    def sample(self, seeds: Seeds) -> Tasks:
        """The observed tasks."""
        return self._sample(seeds, "training", self.tasks, self.samples, 0)

    def shuffled(self, tasks: Tasks, seeds: Seeds) -> Tasks:
        """The same patches under random labels that the signal does not tell: in each half of the samples the labels of
        one half of the tasks are kept and those of the other reversed, so that within either sign of the signal both
        labels are equally frequent. Labels drawn freely correlate with the signal by chance, and that is learned. With
        an odd number of tasks one is left over."""
        count, samples = tasks.labels.shape[1:]
        kept = seeds.draw("shuffled labels", lambda g: _balanced_pairs(count, g)).to(tasks.labels)
        halves = torch.tensor([self.support, samples - self.support], device=kept.device)
        return replace(tasks, labels=tasks.labels * kept.repeat_interleave(halves, -1), sign=tasks.labels)

    def sample_unseen(self, seeds: Seeds, tasks: int, samples: int) -> Tasks:
        """New tasks for testing; of dictionary elements that no observed task has, when tasks are distinct and
        elements are left (each may then serve several test tasks)."""
        return self._sample(seeds, "unseen", tasks, samples, self.tasks)

    def _sample(self, seeds: Seeds, name: str, tasks: int, samples: int, after: int) -> Tasks:
        chosen = self._choose(seeds, name, tasks, after)
        own = self.own_features(seeds).gather(1, chosen.unsqueeze(-1).expand(-1, -1, self.dim))
        noise = torch.zeros(len(seeds), tasks, samples, self.dim, device=seeds.device, dtype=seeds.dtype)
        noise[..., -self.free :] = self.noise_deviation * seeds.normal(f"{name} noise", tasks, samples, self.free)
        labels = seeds.draw(f"{name} labels", lambda g: self._draw_labels(g, tasks, samples)).to(own.dtype)
        patch = seeds.draw(f"{name} patches", lambda g: torch.randint(2, (tasks, samples), generator=g))
        return Tasks(self.shared(seeds), own, noise, labels, patch, self.support)

    def _choose(self, seeds: Seeds, name: str, tasks: int, after: int) -> Tensor:
        if not self.distinct:
            size = (tasks,)
            return seeds.draw(f"{name} tasks", lambda g: torch.randint(self.dictionary, size, generator=g))
        order = seeds.permutation("tasks", self.dictionary)
        left = order[:, after:] if after < self.dictionary else order
        return left[:, torch.arange(tasks, device=left.device) % left.shape[1]]

    def _draw_labels(self, generator: torch.Generator, tasks: int, samples: int) -> Tensor:
        halves = (self.support, samples - self.support)
        draw = _balanced if self.labels == "balanced" else _mixed
        return torch.stack([torch.cat([draw(half, generator) for half in halves]) for _ in range(tasks)])


def _balanced(count: int, generator: torch.Generator) -> Tensor:
    extra = torch.randint(2, (1,), generator=generator) * 2 - 1
    labels = torch.cat([torch.tensor([1, -1]).repeat(count // 2), extra[: count % 2]])
    return labels[torch.randperm(count, generator=generator)]


def _balanced_pairs(count: int, generator: torch.Generator) -> Tensor:
    """Pairs of signs (count, 2), each column with as many of both, and the four pairs as evenly as that allows."""
    pairs = torch.tensor([[1, 1], [-1, -1], [1, -1], [-1, 1]])
    kind, sign = torch.randint(2, (2,), generator=generator).tolist()
    rest = (1 - 2 * sign) * pairs.roll(2 * kind, 0)[: count % 4]  # opposite pairs, and one alone in an odd number
    found = torch.cat([pairs.repeat(count // 4, 1), rest])
    return found[torch.randperm(count, generator=generator)]


def _mixed(count: int, generator: torch.Generator) -> Tensor:
    while True:
        labels = torch.randint(2, (count,), generator=generator) * 2 - 1
        if abs(int(labels.sum())) < count:
            return labels


@dataclass(frozen=True)
class Products:
    """Tasks as the filters see them. Leading axis: runs.

    ``noise`` ⟨w, ξ⟩ (runs, tasks, filters, samples), ``feature`` ⟨w, ν_k⟩ (runs, tasks, filters), ``shared`` ⟨w, ν⟩
    (runs, filters), ``within`` noise products inside a task (runs, tasks, samples, samples), ``norms`` ‖ν_k‖² (runs,
    tasks).
    """

    noise: Tensor
    feature: Tensor
    shared: Tensor
    within: Tensor
    norms: Tensor
    labels: Tensor
    signs: Tensor
    shared_norm: Tensor
    groups: Tensor  # j of every filter

    @staticmethod
    def of(tasks: Tasks, start: Tensor) -> Products:
        """``start`` W⁽⁰⁾ (seeds, filters, dim)."""
        noise = torch.einsum("sknd,smd->skmn", tasks.noise, start)
        within = tasks.noise @ tasks.noise.mT
        feature = tasks.features @ start.mT
        shared = (start @ tasks.shared.unsqueeze(-1)).squeeze(-1)
        norms, square = tasks.features.square().sum(-1), tasks.shared.square().sum(-1)
        groups = theory.signs(start.shape[1] // 2, start).expand(len(start), -1)
        return Products(noise, feature, shared, within, norms, tasks.labels, tasks.signs, square, groups)

    def stacked(self, cells: int) -> Products:
        """The same draws for several cells."""
        return Products(**{name: torch.cat([value] * cells) for name, value in vars(self).items()})

    def noise_alignment(self, *, own: bool = True) -> Tensor:
        """Ξ_{k,i} = max_r ⟨w_{y,r}, ξ_{k,i}⟩ over filters of the sample's own label, or Γ_{k,i} over the others: (runs,
        tasks, samples)."""
        plus, minus = (half.amax(2) for half in self.noise.chunk(2, 2))
        return torch.where((self.labels > 0) == own, plus, minus)


@dataclass(frozen=True)
class Coupling:
    """How an outer update with the data of the observed tasks moves the products with some tasks: ``noise`` (runs,
    observed noise vectors, these noise vectors), ``feature`` (runs, observed tasks, these tasks)."""

    noise: Tensor
    feature: Tensor

    @staticmethod
    def of(observed: Tasks, others: Tasks) -> Coupling:
        noise = observed.noise.flatten(1, 2) @ others.noise.flatten(1, 2).mT
        return Coupling(noise, observed.features @ others.features.mT)

    def stacked(self, cells: int) -> Coupling:
        return Coupling(torch.cat([self.noise] * cells), torch.cat([self.feature] * cells))

    def moved(self, products: Products, noise: Tensor, feature: Tensor) -> Products:
        """``products`` after the weights gained the data with coefficients ``noise`` (runs, filters, tasks·samples)
        and ``feature`` (runs, filters, tasks)."""
        _, tasks, _, samples = products.noise.shape
        along = torch.unflatten(noise @ self.noise, -1, (tasks, samples)).transpose(1, 2)
        shared = products.shared + feature.sum(-1) * products.shared_norm.unsqueeze(-1)
        return replace(
            products,
            noise=products.noise + along,
            feature=products.feature + (feature @ self.feature).mT,
            shared=shared,
        )
