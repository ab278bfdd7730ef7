"""What the theory of gradient features promises for numbers of your own, and what it asks for.

One gradient step from a start with output 0 sends neurons to the directions of a gradient feature set; descent then
competes with the best network of r such neurons, up to a slack. The calculator says how large each term of that slack
is, and whether the whole says more than the output 0 would (loss 1). The constants are those of the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, altair, chart

from ._arrays import of_tensors
from ._checks import all_finite, check_fields, limits, number, whole

WARNING = "a law of scaling with every hidden constant set to 1, no setting for a run"


@dataclass(frozen=True)
class Assumption:
    """One line of an assumption report: the quantity, and the range in which the theory wants it."""

    name: str
    value: float
    low: float = -math.inf
    high: float = math.inf

    @property
    def met(self) -> bool:
        """Whether the value lies in the range; what is not a number does not."""
        return self.low <= self.value <= self.high


@dataclass(frozen=True, repr=False)
class AssumptionReport(Report):
    """What a theory wants of data, line by line."""

    lines: tuple[Assumption, ...]

    @property
    def met(self) -> bool:
        return all(line.met for line in self.lines)

    def headline(self) -> str:
        broken = [line.name for line in self.lines if not line.met]
        return f"not met: {', '.join(broken)}" if broken else f"all {len(self.lines)} assumptions are met"

    def table(self) -> list[dict[str, Any]]:
        return [
            {"quantity": line.name, "value": line.value, "low": line.low, "high": line.high, "met": line.met}
            for line in self.lines
        ]

    def figure(self) -> Any:
        """The lines that have a limit, by their value."""
        limited = [row for row in self.table() if math.isfinite(row["low"]) or math.isfinite(row["high"])]
        rows = [row | {"met": "met" if row["met"] else "not met"} for row in limited]
        alt = altair()
        bars = (
            chart(rows)
            .mark_bar()
            .encode(
                y=alt.Y("quantity:N", sort=None, title=None), x=alt.X("value:Q"), color=alt.Color("met:N", title=None)
            )
        )
        return bars.properties(width=380)


@of_tensors
def data_assumptions(inputs: Tensor, labels: Tensor, *, quantile: float = 0.999) -> AssumptionReport:
    """What the main theorem wants of inputs (n, dim) and labels (n,) of ±1: labels within ±1, classes of equal weight,
    and inputs of bounded norm (a high quantile stands for the bound, which Gaussian inputs lack). Where E[yx] is 0,
    neurons of both threshold signs find the features; where it is not, those with a negative one see E[yx]."""
    if inputs.ndim != 2 or labels.shape != inputs.shape[:1] or not len(inputs):
        raise ValueError(
            f"inputs are (n, dim) and labels (n,), not {tuple(inputs.shape)} and {tuple(labels.shape)}, with n above 0"
        )
    number("quantile", quantile, above=0, most=1)
    x, y = inputs.detach().double(), labels.detach().double()
    all_finite("inputs", x)
    all_finite("labels", y)
    n, norms = len(x), x.norm(dim=1)
    second = float(norms.square().mean())
    noise = math.sqrt(second / n)
    mean = float((y.unsqueeze(1) * x).mean(0).norm())
    return AssumptionReport(
        (
            Assumption("largest |y|", float(y.abs().max()), high=1.0),
            Assumption("mean label, in standard errors", float(y.mean()) * math.sqrt(n), -3.0, 3.0),
            Assumption("mean norm B_x1", float(norms.mean())),
            Assumption("mean squared norm B_x2", second),
            Assumption(f"norm B_x at quantile {quantile:g}", float(torch.quantile(norms, quantile))),
            Assumption("norm of E[yx], in units of its noise", mean / noise if noise else math.nan, high=2.0),
        )
    )


@dataclass(frozen=True)
class FeatureConstants:
    """The constants of a gradient feature set and of the small network g* that is built on it."""

    share: float = field(metadata=limits(above=0, most=1))  # p: of neurons in the cone of a feature
    floor: float = field(metadata=limits(above=0))  # B_G: of the gradients' norms
    gamma: float = field(metadata=limits(above=0, below=1))  # γ: width of the cones
    terms: int = field(metadata=limits(least=1))  # r: neurons of g*
    largest_output: float = field(metadata=limits(above=0))  # B_a1
    output_norm: float = field(metadata=limits(above=0))  # B_a2
    largest_knot: float = field(metadata=limits(above=0))  # B_b: its thresholds
    mean_norm: float = field(metadata=limits(above=0))  # B_x1 ≥ E‖x‖
    second_moment: float = field(metadata=limits(above=0))  # B_x2 ≥ E‖x‖²
    largest_norm: float = field(metadata=limits(above=0))  # B_x ≥ ‖x‖
    slope: float = field(default=1.0, metadata=limits(above=0))  # |ℓ'(0)|

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, repr=False)
class GradientBound(Report):
    """OPT and the three terms of the slack. The loss of the output 0 is 1."""

    opt: float  # of the best small network
    cones: float  # r·B_a1·B_x1·√(2γ): features are met up to an angle
    sampling: float  # what n samples in place of the law add to it
    width: float  # r·B_a1·2B_x1/(mp)^(1/4)·√(B_b/B_G): thresholds are met up to a distance

    @property
    def total(self) -> float:
        return self.opt + self.cones + self.sampling + self.width

    @property
    def vacuous(self) -> bool:
        """Whether the bound says no more than the output 0 does."""
        return not self.total < 1

    def headline(self) -> str:
        says = "vacuous: no better than the output 0" if self.vacuous else "below the loss 1 of the output 0"
        return f"loss at most {self.total:.3g}, {says} (hidden constants set to 1)"

    def table(self) -> list[dict[str, Any]]:
        parts = {"OPT": self.opt, "cones": self.cones, "sampling": self.sampling, "width": self.width}
        return [{"term": name, "value": value} for name, value in parts.items()]

    def figure(self) -> Any:
        alt = altair()
        bars = chart(self.table()).mark_bar().encode(y=alt.Y("term:N", sort=None, title=None), x=alt.X("value:Q"))
        line = chart([{"one": 1.0}]).mark_rule(strokeDash=[4, 3]).encode(x="one:Q")
        return (bars + line).properties(width=380, title="The bound, and the loss of the output 0")


def gradient_bound(constants: FeatureConstants, *, neurons: int, samples: int, opt: float = 0.0) -> GradientBound:
    """The bound on the loss of a network of ``neurons`` m trained from ``samples`` n, with OPT (or an upper bound)."""
    whole("neurons", neurons, 1)
    whole("samples", samples, 1)
    number("opt", opt, least=0)
    c = constants
    scale = c.terms * c.largest_output * c.mean_norm
    cones = scale * math.sqrt(2 * c.gamma)
    blurred = 2 * c.gamma + math.sqrt(c.second_moment) / (c.floor * c.slope * samples ** (1 / 3))
    width = scale * 2 / (neurons * c.share) ** 0.25 * math.sqrt(c.largest_knot / c.floor)
    return GradientBound(opt, cones, scale * math.sqrt(blurred) - cones, width)


@dataclass(frozen=True, repr=False)
class GradientRequirements(Report):
    """What the main theorem asks for: a law of scaling, never settings."""

    threshold: float  # b̃
    neurons: float  # m
    samples: float  # n
    rate: float  # η
    steps: float  # T
    first_rate: float  # η^(1)
    output_scale: float  # σ_a
    most_neurons: float  # e^d, beyond which the theorem says nothing

    def headline(self) -> str:
        words = f"{self.neurons:.2g} neurons and {self.samples:.2g} samples: {WARNING}"
        if self.neurons > self.most_neurons:
            words += f"; and more than e^d = {self.most_neurons:.2g} neurons, for which the theorem says nothing"
        return words

    def table(self) -> list[dict[str, Any]]:
        names = {
            "threshold b̃": self.threshold,
            "neurons m": self.neurons,
            "most neurons e^d": self.most_neurons,
            "samples n": self.samples,
            "rate η": self.rate,
            "steps T": self.steps,
            "first rate η^(1)": self.first_rate,
            "scale of outputs σ_a": self.output_scale,
        }
        return [{"quantity": name, "asked for": value} for name, value in names.items()]

    def figure(self) -> Any:
        alt = altair()
        size = alt.Scale(type="log")
        rows = [{"quantity": row["quantity"], "value": row["asked for"]} for row in self.table()]
        points = (
            chart(rows)
            .mark_point(filled=True, size=70)
            .encode(y=alt.Y("quantity:N", sort=None, title=None), x=alt.X("value:Q", scale=size, title="asked for"))
        )
        return points.properties(width=380, title=WARNING)


def gradient_requirements(
    constants: FeatureConstants, *, error: float, failure: float = 0.1, dim: int, weight_scale: float = 1.0
) -> GradientRequirements:
    """Width, samples, rates and steps for a slack of ``error`` ε with probability 1 − ``failure`` δ, as the theorem has
    them with all hidden constants set to 1. The threshold has √(r·B_a1) below its fraction (printed: √r·B_a1), which
    is what balances the final terms."""
    number("error", error, above=0)
    number("failure", failure, above=0, below=1)
    number("weight_scale", weight_scale, above=0)
    dim = whole("dim", dim, 1)
    c = constants
    p, g, r, a1, a2, b = c.share, c.floor, c.terms, c.largest_output, c.output_norm, c.largest_knot
    x1, x2, x = c.mean_norm, c.second_moment, c.largest_norm
    threshold = g**0.25 * a2 * b**0.75 / math.sqrt(r * a1)
    m = (r * a1 * x1 * math.sqrt(b / g)) ** 4 / (p * error**4)
    m += failure**-0.5 + math.log(r / failure) ** 2 / p
    mp = m * p
    pull = math.sqrt(r) * a2 * b * x1 / mp**0.25 + m * threshold
    push = math.sqrt(math.log(m)) * x1 * mp**0.25 / math.sqrt(b * g) + 1
    rate = error / (pull * push)
    steps = 1 / (rate * x1 * mp**0.25)
    first_rate = min(rate, rate * threshold) / (c.slope * (x1 * weight_scale * math.sqrt(dim) + threshold))
    output_scale = threshold * mp**0.25 / (c.slope * first_rate * x1 * math.sqrt(g * b))
    first = m * x * a2**2 * math.sqrt(b) * math.sqrt(mp) * math.log(m) / (error * r * a1 * math.sqrt(g))
    second = x / math.sqrt(x2) + math.log(steps * m / (p * failure)) + (1 + 1 / g) * math.sqrt(x2) / c.slope
    most = math.exp(dim) if dim < 700 else math.inf
    return GradientRequirements(threshold, m, first**3 + second**3, rate, steps, first_rate, output_scale, most)
