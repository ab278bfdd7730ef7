"""Will a train-validation split matter? Early growth rates of feature and noise in FOMAML on a two-layer CNN.

Small initial weights of a Huberized-ReLU network grow exponentially, the shared feature at one rate and the noise of
the samples at another. Inner steps multiply both; which of the two the outer loop then meets first decides whether
the feature is learned. Without a split the inner loop amplifies the very noise that the outer loop sees.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from assay._reports import Report, bars

from ._checks import number, whole

Winner = Literal["feature", "noise"]


@dataclass(frozen=True)
class Rates:
    """Growth per outer step and unit outer rate while all pre-activations are small, and what J inner steps do."""

    feature: float
    noise: float
    feature_gain: float
    noise_gain: float

    @property
    def winner(self) -> Winner:
        return "feature" if self.feature >= self.noise else "noise"

    @property
    def apart(self) -> float:
        """The larger rate over the smaller; below about 1.5 the formulas do not decide."""
        low, high = sorted((self.feature, self.noise))
        return high / low


@dataclass(frozen=True, repr=False)
class SplitEffect(Report):
    """Rates without a split (``train_train``) and with one (``train_val``).

    ``steps_*`` are the outer steps until feature or noise would have grown from its initial size to the size at which
    the loss notices it, None without an initial scale. The critical values are those at which the rates without a
    split are equal, everything else fixed: more tasks, fewer inner steps or weaker noise favour the feature. None where
    no value does it. ``critical_tasks_pooled`` is the same for plain training on pooled data (no inner step).
    """

    train_train: Rates
    train_val: Rates
    critical_inner_steps: float | None
    critical_tasks: float
    critical_noise_energy: float
    critical_tasks_pooled: float
    critical_noise_energy_train_val: float
    steps_train_train: tuple[float, float] | None
    steps_train_val: tuple[float, float] | None

    @property
    def first_train_train(self) -> Winner | None:
        """Which of the two the loss notices first: the smaller of log(D/x₀)/R, where an initial scale was given."""
        return _first(self.steps_train_train)

    @property
    def first_train_val(self) -> Winner | None:
        return _first(self.steps_train_val)

    @property
    def split_matters(self) -> bool:
        """The feature is predicted to win with a split and to lose without."""
        return self.train_val.winner == "feature" and self.train_train.winner == "noise"

    @property
    def advice(self) -> str:
        """``split`` where it is predicted to matter, ``no need`` where both ways learn the same, ``undecided`` where
        the rates of one of the ways lie closer than the formulas can tell."""
        if min(self.train_train.apart, self.train_val.apart) < 1.5:
            return "undecided"
        return "split" if self.split_matters else "no need"

    def headline(self) -> str:
        ways = f"without a split the {self.train_train.winner} grows faster, with one the {self.train_val.winner}"
        return f"{ways}: {self.advice}"

    def table(self) -> list[dict[str, Any]]:
        """A row per way of training."""
        ways = {"without split": self.train_train, "with split": self.train_val}
        return [
            {"training": name, "feature": each.feature, "noise": each.noise, "apart": each.apart, "winner": each.winner}
            for name, each in ways.items()
        ]

    def figure(self) -> Any:
        """Growth rates of feature and noise, with a split and without."""
        rows = [
            {"training": row["training"], "rate": row[name], "what": name}
            for row in self.table()
            for name in ("feature", "noise")
        ]
        return bars(rows, "training", "rate", "what", rate="growth per outer step")


def predict_split_effect(
    noise_energy: float,
    samples: int,
    support: int,
    tasks: float,
    inner_steps: float,
    inner_rate: float,
    *,
    outer_rate: float = 1.0,
    knee: float = 0.5,
    feature_norm: float = 1.0,
    task_norm: float = 0.0,
    class_share: float = 0.5,
    initial_scale: float | None = None,
    filters: int = 10,
) -> SplitEffect:
    """Rates, winners and critical values for s, n, n₁, K, J and γ.

    With all pre-activations in the quadratic zone of the activation (0 to ``knee``), a loss derivative of ½ and no
    products between different noise vectors, one inner step multiplies an aligned feature by
    1 + γπ‖ν_k‖²/(2h) and the noise of a sample in the inner set by 1 + γs/(2hn_in).
    """
    _check(noise_energy, samples, support, tasks, inner_steps, inner_rate, knee, feature_norm, class_share)

    def rates(energy: float, K: float, J: float, split: bool) -> Rates:
        feature_gain = feature_amplification(inner_rate, J, math.hypot(feature_norm, task_norm), knee, class_share)
        noise_gain = 1.0 if split else noise_amplification(inner_rate, J, energy, samples, knee)
        outer = samples - support if split else samples
        feature = outer_rate * class_share * feature_norm**2 / (2 * knee) * feature_gain
        return Rates(feature, outer_rate * energy / (2 * knee * K * outer) * noise_gain, feature_gain, noise_gain)

    present = rates(noise_energy, tasks, inner_steps, False)
    split = rates(noise_energy, tasks, inner_steps, True)
    pooled = rates(noise_energy, tasks, 0, False)

    def excess_noise(energy: float) -> float:
        found = rates(energy, tasks, inner_steps, False)
        return found.noise / found.feature

    times: list[tuple[float, float] | None] = [None, None]
    if initial_scale is not None:
        times = [_times(each, initial_scale, noise_energy, feature_norm, filters) for each in (present, split)]
    return SplitEffect(
        train_train=present,
        train_val=split,
        critical_inner_steps=_critical_steps(pooled, rates(noise_energy, tasks, 1, False)),
        critical_tasks=tasks * present.noise / present.feature,
        critical_noise_energy=_root(excess_noise, noise_energy),
        critical_tasks_pooled=tasks * pooled.noise / pooled.feature,
        critical_noise_energy_train_val=noise_energy * split.feature / split.noise,
        steps_train_train=times[0],
        steps_train_val=times[1],
    )


def _power(base: float, exponent: float) -> float:
    """∞ where the power is beyond all numbers: near a critical point a thousand inner steps are asked for."""
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


def feature_amplification(
    inner_rate: float, inner_steps: float, norm: float, knee: float = 0.5, class_share: float = 0.5
) -> float:
    """(1 + γπ‖ν_k‖²/(2h))^J."""
    return _power(1 + inner_rate * class_share * norm**2 / (2 * knee), inner_steps)


def noise_amplification(
    inner_rate: float, inner_steps: float, noise_energy: float, inner_samples: int, knee: float = 0.5
) -> float:
    """(1 + γs/(2hn_in))^J, of a noise vector in the inner set."""
    return _power(1 + inner_rate * noise_energy / (2 * knee * inner_samples), inner_steps)


def _critical_steps(none: Rates, one: Rates) -> float | None:
    """J at which the rates are equal: both are exponential in J. None where noise gains nothing on the feature."""
    lead, gain = none.feature / none.noise, one.noise_gain / one.feature_gain
    if gain <= 1:
        return None
    steps = math.log(lead) / math.log(gain)
    return steps if steps >= 0 else None


def _root(excess: Callable[[float], float], start: float) -> float:
    """The noise energy at which an increasing function is 1, by bisection of its logarithm."""
    low = high = start
    while excess(low) > 1:
        low /= 2
    while excess(high) < 1:
        high *= 2
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if excess(middle) < 1 else (low, middle)
    return math.sqrt(low * high)


def _first(times: tuple[float, float] | None) -> Winner | None:
    return None if times is None else "feature" if times[0] <= times[1] else "noise"


def _times(rates: Rates, scale: float, energy: float, feature_norm: float, filters: int) -> tuple[float, float]:
    """log(D/x₀)/R of feature and noise: from the largest of m Gaussian alignments to m^{-1/2} over the gain."""
    largest = math.sqrt(2 * math.log(max(filters, 2)))
    starts = (scale * feature_norm * largest, scale * math.sqrt(energy) * largest)
    found = []
    for start, rate, gain in zip(
        starts, (rates.feature, rates.noise), (rates.feature_gain, rates.noise_gain), strict=True
    ):
        found.append(max(0.0, math.log(filters**-0.5 / gain / start)) / rate)
    return found[0], found[1]


def _check(
    energy: float,
    samples: int,
    support: int,
    tasks: float,
    steps: float,
    rate: float,
    knee: float,
    norm: float,
    share: float,
) -> None:
    whole("support", support, 1, samples - 1)
    for name, value in (("noise_energy", energy), ("tasks", tasks), ("knee", knee), ("feature_norm", norm)):
        number(name, value, above=0)
    number("inner_steps", steps, least=0)
    number("inner_rate", rate, least=0)
    number("class_share", share, above=0, below=1)
