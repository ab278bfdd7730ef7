"""Numbers over seeds, and what can be made of them on the way to a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import verdicts
from .errors import AmbiguousQuery
from .finite import ratio, whole
from .intervals import Counted, Scale
from .regions import Region
from .verdicts import Judgement


@dataclass(frozen=True)
class Values:
    """One number per seed. Arithmetic between two of them pairs equal seeds; a seed without a finite number has no
    finite result."""

    by_seed: Mapping[int, float]
    what: str = ""
    scale: Scale = "plain"
    counted: Counted | None = None

    @classmethod
    def measured(cls, by_seed: Mapping[int, float], what: str, trials: Mapping[int, int] | None = None) -> Values:
        """Numbers as they were recorded: shares of so many trials, or answers that are right (1) or wrong (0)."""
        if trials and all(math.isfinite(value) for value in by_seed.values()):
            successes = sum(value * trials[seed] for seed, value in by_seed.items())
            return cls(by_seed, what, "share", Counted(((1.0, successes, float(sum(trials.values()))),)))
        # All of one kind may as well be a number that is 1 in every seed; recorded as booleans they have trials.
        return cls(by_seed, what, "share" if set(by_seed.values()) == {0.0, 1.0} else "plain")

    @property
    def array(self) -> np.ndarray[Any, Any]:
        return np.array([self.by_seed[seed] for seed in sorted(self.by_seed)])

    def map(self, function: Callable[[float], float], what: str | None = None) -> Values:
        return Values({seed: whole(function, value) for seed, value in self.by_seed.items()}, what or self.what)

    def named(self, what: str) -> Values:
        """The same values under another name in the criterion."""
        return replace(self, what=what)

    def as_share(self) -> Values:
        """The same values, said to be shares: their interval stays in [0, 1], and seeds that are all right or all wrong
        are counted. For what arithmetic made of shares, such as their mean."""
        return replace(self, scale="share")

    def as_correlation(self) -> Values:
        """The same values, said to lie between −1 and 1, as their interval then does."""
        return replace(self, scale="signed")

    def _pair(self, other: Values | float, operation: Callable[[float, float], float], sign: str) -> Values:
        if not isinstance(other, Values):
            return self.map(lambda value: whole(operation, value, other), f"{self.what} {sign} {other:g}")
        shared = _shared_seeds([self, other], f"{self.what} and {other.what}")
        paired = {seed: whole(operation, self.by_seed[seed], other.by_seed[seed]) for seed in shared}
        return Values(paired, f"{self.what} {sign} {other.what}")

    def _moved(self, made: Values, own: float, other: Values | float = 0.0, theirs: float = 0.0) -> Values:
        """The result of an operation whose derivatives are ``own`` and ``theirs``, as unsure as its counted shares."""
        parts = [self.counted.times(own)] if self.counted is not None else []
        if isinstance(other, Values) and other.counted is not None:
            parts.append(other.counted.times(theirs))
        known = all(map(math.isfinite, (own, theirs))) and bool(parts)
        return replace(made, counted=sum(parts[1:], parts[0]) if known else None)

    def __sub__(self, other: Values | float) -> Values:
        made = self._moved(self._pair(other, lambda a, b: a - b, "−"), 1.0, other, -1.0)
        shares = isinstance(other, Values) and self.scale == other.scale == "share"
        return replace(made, scale="signed") if shares else made

    def __add__(self, other: Values | float) -> Values:
        return self._moved(self._pair(other, lambda a, b: a + b, "+"), 1.0, other, 1.0)

    def __mul__(self, other: Values | float) -> Values:
        made = self._pair(other, lambda a, b: a * b, "×")
        if isinstance(other, Values):
            return self._moved(made, _mean(other), other, _mean(self))
        return replace(self._moved(made, other), scale=self.scale if other > 0 and self.scale == "ratio" else "plain")

    def __truediv__(self, other: Values | float) -> Values:
        made = self._pair(other, ratio, "/")
        if isinstance(other, Values):
            slopes = (ratio(1.0, _mean(other)), -ratio(_mean(self), _mean(other) ** 2))
            return replace(self._moved(made, slopes[0], other, slopes[1]), scale="ratio")
        kept = self.scale if other > 0 and self.scale == "ratio" else "plain"
        return replace(self._moved(made, ratio(1.0, other)), scale=kept)

    def __rsub__(self, other: float) -> Values:
        made = self._moved(self.map(lambda value: other - value, f"{other:g} − {self.what}"), -1.0)
        return replace(made, scale="share" if self.scale == "share" and other == 1 else "plain")

    def __radd__(self, other: float) -> Values:
        return self._moved(self.map(lambda value: other + value, f"{other:g} + {self.what}"), 1.0)

    def __rmul__(self, other: float) -> Values:
        return replace(self * other, what=f"{other:g} × {self.what}")

    def __rtruediv__(self, other: float) -> Values:
        made = self.map(lambda value: ratio(other, value), f"{other:g} / {self.what}")
        return replace(self._moved(made, -ratio(other, _mean(self) ** 2)), scale="ratio")

    def judge(self, region: Region, *, target: float | None = None) -> Judgement:
        return verdicts.over_seeds(
            self.array, region, what=self.what, scale=self.scale, counted=self.counted, target=target
        )

    def at_least(self, level: float) -> Judgement:
        return self.judge(Region(low=level))

    def at_most(self, level: float) -> Judgement:
        return self.judge(Region(high=level))

    def above(self, level: float) -> Judgement:
        return self.judge(Region(low=level, open=True))

    def below(self, level: float) -> Judgement:
        return self.judge(Region(high=level, open=True))

    def between(self, low: float, high: float) -> Judgement:
        return self.judge(Region(low, high))

    def equals(self, target: float, *, within: float, because: str) -> Judgement:
        """A claim of equality: no farther than a margin from the target. ``because`` says where the margin comes from,
        and the finding says when the two differ all the same."""
        judged = self.judge(Region(target - within, target + within), target=target)
        return replace(judged, criterion=f"{judged.criterion} (margin: {because})")


@dataclass(frozen=True)
class Exact:
    """A number that no seed has a part in."""

    value: float
    what: str = ""

    def named(self, what: str) -> Exact:
        return Exact(self.value, what)

    def at_least(self, level: float) -> Judgement:
        return verdicts.exact(self.value, Region(low=level), what=self.what)

    def at_most(self, level: float) -> Judgement:
        return verdicts.exact(self.value, Region(high=level), what=self.what)

    def above(self, level: float) -> Judgement:
        return verdicts.exact(self.value, Region(low=level, open=True), what=self.what)

    def below(self, level: float) -> Judgement:
        return verdicts.exact(self.value, Region(high=level, open=True), what=self.what)

    def between(self, low: float, high: float) -> Judgement:
        return verdicts.exact(self.value, Region(low, high), what=self.what)


def combine(choose: Callable[[list[float]], Any], parts: Iterable[Values], what: str) -> Values:
    """One value per seed, chosen among the parts' values or made of them: ``combine(max, parts, "worst ε")``. A seed
    that some part does not have is left out, as in a difference; one in which some part is not finite is NaN."""
    parts = list(parts)
    shared = _shared_seeds(parts, what)
    chosen = {seed: whole(lambda *v: choose(list(v)), *(p.by_seed[seed] for p in parts)) for seed in shared}
    if not all(part.scale == "share" for part in parts):
        return Values(chosen, what)
    widest = max((p.counted for p in parts if p.counted is not None), key=lambda c: max(c.reach(0.95)), default=None)
    return Values(chosen, what, "share", widest)


def farthest_from(level: float) -> Callable[[Iterable[float]], float]:
    """For ``combine``: the value that is farthest from ``level`` in each seed. Extremes of several seeds may lie on
    both sides and cancel in the mean: ``farthest`` takes the part whose mean is the farthest."""
    return lambda values: max(values, key=lambda value: abs(value - level))


def pick(choose: Callable[[Iterable[float]], float], parts: Iterable[Values]) -> Values:
    """The part with the largest (``max``) or smallest (``min``) mean over the seeds, under its own name. A seed in
    which some part is not finite is NaN: it might have made another the choice."""
    return _picked(lambda means: means.index(choose(means)), list(parts), "a choice")


def farthest(level: float, parts: Iterable[Values], what: str) -> Values:
    """The part whose mean over the seeds is farthest from ``level``, the worst where all should be there. Extremes that
    every seed chose for itself would lie on both sides, and cancel in the mean."""

    def worst(means: list[float]) -> int:
        return max(range(len(means)), key=lambda at: abs(means[at] - level))

    return _picked(worst, list(parts), what).named(what)


def rise(values: Sequence[float] | np.ndarray[Any, Any]) -> float:
    """Spearman's correlation of a curve with its position: 1 where every value is above the one before, 0 where they
    never change; ties have the mean of their ranks. NaN where a value is."""
    found = np.asarray(values, dtype=float)
    if np.isnan(found).any():
        return math.nan
    if np.ptp(found) == 0:
        return 0.0
    ranks = (found[:, None] > found).sum(1) + 0.5 * (found[:, None] == found).sum(1)
    return float(np.corrcoef(ranks, np.arange(len(found)))[0, 1])


def _picked(choose: Callable[[list[float]], int], parts: list[Values], what: str) -> Values:
    shared = _shared_seeds(parts, what)
    sound = [seed for seed in shared if all(math.isfinite(part.by_seed[seed]) for part in parts)]
    means = [sum(part.by_seed[seed] for seed in sound) / max(1, len(sound)) for part in parts]  # over the same seeds
    chosen = parts[choose(means)]
    return replace(chosen, by_seed={seed: chosen.by_seed[seed] if seed in sound else math.nan for seed in shared})


def _mean(values: Values) -> float:
    return float(values.array.mean())


def _shared_seeds(parts: list[Values], what: str) -> list[int]:
    if not parts:
        raise AmbiguousQuery(f"there is nothing to make {what} of")
    shared = sorted(set.intersection(*(set(part.by_seed) for part in parts)))
    if not shared:
        raise AmbiguousQuery(f"{what}: the parts share no seed, so they cannot be paired")
    return shared
