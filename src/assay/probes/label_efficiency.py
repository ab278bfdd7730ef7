"""How many labels does a representation need? Accuracy of a linear head against the number of labels.

Every seed draws labelled samples, balanced over classes, more of them by adding to the fewer; all representations get
the same ones, so that their differences are paired.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, get_args

import torch
from torch import Tensor

from assay._reports import Report, altair, plain
from assay.methods._checks import one_of, seed_list, whole
from assay.methods._data import labelled
from assay.methods._features import Pool
from assay.methods._progress import progress
from assay.training.seeds import stream

from ._reading import Representation, features_over
from ._words import coded
from .heads import ridge_head
from .intervals import Interval, mean_interval

Head = Callable[[Tensor, Tensor], Any]


@dataclass(frozen=True)
class Crossing:
    """From how many ``labels`` on ``second`` is ahead of ``first``, interpolated on a logarithmic axis: 0 when from the
    smallest budget on, infinity when not even at the largest, as where both are equal. ``low`` to ``high`` has 95 % of
    the resampled seeds; below three seeds they are NaN."""

    first: str
    second: str
    labels: float
    low: float
    high: float
    budgets: tuple[int, ...]

    @property
    def decided(self) -> bool:
        """Whether the whole interval lies inside the budgets, so that the lines do cross."""
        return self.low >= self.budgets[0] and self.high <= self.budgets[-1]

    def __str__(self) -> str:
        if self.decided:
            return f"{self.second} overtakes {self.first} at {self.labels:.0f} labels [{self.low:.0f}, {self.high:.0f}]"
        if self.low == math.inf:
            return f"{self.second} is not ahead of {self.first} at {self.budgets[-1]} labels"
        if self.high == 0:
            return f"{self.second} is ahead from {self.budgets[0]} labels on"
        return f"undecided: whether and where {self.second} overtakes {self.first}"


@dataclass(frozen=True, repr=False)
class LabelEfficiency(Report):
    """Test accuracy by representation, number of labels and seed. Intervals are over the seeds' draws of labels (and
    over pretrainings where each seed had its own), for this test set."""

    names: tuple[str, ...]
    budgets: tuple[int, ...]
    seeds: tuple[int, ...]
    accuracy: Tensor  # (representations, budgets, seeds)
    majority: float  # accuracy of the best constant answer

    def curve(self, name: str) -> list[Interval]:
        """Mean accuracy at each budget, with its interval, cut at 0 and 1."""
        found = [mean_interval(each.tolist()) for each in self._of(name)]
        return [replace(at, low=_share(at.low), high=_share(at.high)) for at in found]

    def gap(self, first: str, second: str) -> list[Interval]:
        """Accuracy of ``first`` minus that of ``second`` at each budget, paired by seed."""
        return [mean_interval(each.tolist()) for each in self._of(first) - self._of(second)]

    def crossing(self, first: str, second: str, *, resamples: int = 2000) -> Crossing:
        """Where ``second`` overtakes ``first``; seeds are resampled for its interval."""
        whole("resamples", resamples, 100)
        ahead = self._of(first) - self._of(second)
        found = overtaking(self.budgets, ahead.mean(1).tolist())
        if len(self.seeds) < 3 or math.isnan(found):
            return Crossing(first, second, found, math.nan, math.nan, self.budgets)
        generator = torch.Generator().manual_seed(0)
        draws = torch.randint(len(self.seeds), (resamples, len(self.seeds)), generator=generator)
        again = sorted(overtaking(self.budgets, gaps.tolist()) for gaps in ahead[:, draws].mean(-1).T)
        low, high = again[int(0.025 * resamples)], again[math.ceil(0.975 * resamples) - 1]
        return Crossing(first, second, found, low, high, self.budgets)

    def _of(self, name: str) -> Tensor:
        if name not in self.names:
            raise ValueError(f"there is no representation {name!r}; there are {', '.join(self.names)}")
        return self.accuracy[self.names.index(name)]

    def table(self) -> list[dict[str, Any]]:
        return [
            {"representation": name, "labels": budget, "accuracy": at.estimate, "low": at.low, "high": at.high}
            for name in self.names
            for budget, at in zip(self.budgets, self.curve(name), strict=True)
        ]

    def headline(self) -> str:
        return (
            f"LabelEfficiency: accuracy of a linear head over {len(self.seeds)} seeds "
            f"(best constant answer {self.majority:.3f})"
        )

    def figure(self) -> Any:
        alt = altair()
        data = alt.Data(values=plain(self.table()))
        axis = alt.X("labels:Q", title="labels", scale=alt.Scale(type="log", nice=False))
        axis = axis.axis(values=list(self.budgets), grid=False)
        legend = alt.Legend(title=None, symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=3)
        colour = alt.Color("representation:N", sort=list(self.names), legend=legend)
        base = alt.Chart(data).encode(x=axis, color=colour)
        y = alt.Y("accuracy:Q", title="test accuracy", scale=alt.Scale(zero=False))
        ends = {"y": alt.Y("low:Q", title="test accuracy"), "y2": "high:Q"}
        band = base.mark_area(opacity=0.2).encode(**ends)
        line = base.mark_line(point=True).encode(y=y)
        return (band + line).properties(width=380, height=260)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def overtaking(budgets: Sequence[int], gaps: Sequence[float]) -> float:
    """The number of labels after which gaps (of the first over the second) stay below zero; 0 where they all are,
    infinity where the last is not, NaN where one is."""
    if any(map(math.isnan, gaps)):
        return math.nan
    last = next((k for k in reversed(range(len(gaps))) if gaps[k] >= 0), None)
    if last is None:
        return 0.0
    if last == len(gaps) - 1:
        return math.inf
    share = gaps[last] / (gaps[last] - gaps[last + 1])
    ends = math.log(budgets[last]), math.log(budgets[last + 1])
    found = math.exp(ends[0] + share * (ends[1] - ends[0]))
    return float(min(max(found, budgets[last]), budgets[last + 1]))  # rounding must not lead out


def label_efficiency(
    representations: Mapping[str, Representation | Sequence[Representation]],
    train: Any,
    test: Any,
    *,
    budgets: int | Sequence[int],
    seeds: int | Sequence[int] = 8,
    head: Head = ridge_head,
    pool: Pool = "mean",
    batch_size: int = 256,
    show: bool | None = None,
) -> LabelEfficiency:
    """Fit a linear head on so many labelled training samples, for every representation, budget and seed.

    A representation is a model, a function from inputs to features, or a list of as many of them as there are seeds
    (pretrained anew for each). ``train`` and ``test`` are (inputs, labels), mappings with labels, or data loaders of
    either; labels are whole numbers, or words, of which a head gets the places in order. ``budgets`` are numbers of
    labels, or one alone. ``head(features, labels)`` gives something that can ``predict(features)``; the default tunes
    its penalty on the labels that it gets, so that every representation is tuned alike.
    """
    chosen = seed_list(seeds)
    if not isinstance(representations, Mapping):
        raise ValueError(f"representations must be a mapping from names, not a {type(representations).__name__}")
    if not chosen or not representations:
        raise ValueError("a curve needs at least one representation and one seed")
    one_of("pool", pool, get_args(Pool))
    (batches, labels), (test_batches, test_labels) = (
        labelled(each, batch_size, name) for each, name in zip(coded(train, test), ("train", "test"), strict=True)
    )
    if not len(test_labels):
        raise ValueError("test has no samples")
    sizes = _budgets(budgets, labels)
    drawn = {seed: balanced_order(labels, stream(seed, "labelled samples"))[: sizes[-1]] for seed in chosen}
    found = torch.empty(len(representations), len(sizes), len(chosen), dtype=torch.float64)
    for row, (name, given) in enumerate(representations.items()):
        versions: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
        if any(isinstance(each, Tensor) for each in versions):
            raise ValueError(
                f"{name!r} is a tensor, which cannot be both of train and of test: give features as the inputs of "
                "both, and functions that take them"
            )
        if len(versions) not in (1, len(chosen)):
            raise ValueError(
                f"{name!r} has {len(versions)} versions for {len(chosen)} seeds: give one, or one for each"
            )
        read = [[features_over(each, part, pool) for part in (batches, test_batches)] for each in versions]
        for pair in read:
            if [len(each) for each in pair] != [len(labels), len(test_labels)]:
                raise ValueError(
                    f"{name!r} must give features of every sample, and gives {len(pair[0])} and {len(pair[1])}"
                )
            if 0 in (pair[0].shape[1], pair[1].shape[1]):
                raise ValueError(f"{name!r} gives features of no width, in which nothing can be read")
        for column, seed in progress(list(enumerate(chosen)), f"{name}: seed", show):
            features, unseen = read[column % len(read)]
            for place, size in enumerate(sizes):
                index = drawn[seed][:size]
                found[row, place, column] = _accuracy(head(features[index], labels[index]).predict(unseen), test_labels)
    majority = int(torch.unique(test_labels, return_counts=True)[1].max()) / len(test_labels)
    return LabelEfficiency(tuple(map(str, representations)), sizes, chosen, found, majority)


def _accuracy(guessed: Any, labels: Tensor) -> float:
    found = torch.as_tensor(guessed).cpu()
    if found.shape != labels.shape or bool(found.isnan().any()):
        raise ValueError(f"a head must predict {len(labels)} labels, and it gives {tuple(found.shape)} values or NaN")
    return float((found == labels).double().mean())


def _budgets(budgets: int | Sequence[int], labels: Tensor) -> tuple[int, ...]:
    classes = len(torch.unique(labels))
    several: Any = [budgets] if isinstance(budgets, Integral) else budgets
    sizes = tuple(sorted({whole("each of budgets", size, classes, len(labels)) for size in several}))
    if not sizes:
        raise ValueError("budgets must name at least one number of labels")
    return sizes


def balanced_order(labels: Tensor, generator: torch.Generator) -> Tensor:
    """Indices of all samples in an order whose every beginning is balanced over classes, as far as classes last."""
    order = torch.randperm(len(labels), generator=generator)
    classes = torch.unique(labels)
    turn = torch.empty(len(labels), dtype=torch.long)
    rank = torch.empty(len(labels), dtype=torch.long)
    for place, label in enumerate(classes[torch.randperm(len(classes), generator=generator)]):
        own = order[labels[order] == label]
        turn[own], rank[own] = torch.arange(len(own)), place
    return torch.argsort(turn * len(classes) + rank)
