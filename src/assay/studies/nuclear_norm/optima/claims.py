"""The claims on population optima: weight decay (C5, C7), limited rank (C6, C7) and the nuclear norm (C8)."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from assay.lab import Exact, Judgement, Measurements

from .arms import Params, part
from .theory import threshold

ROUNDING = 1e-12
NEAR = 0.01  # the threshold is a leading order, and is asked of γ that are farther from it


def _least(rows: pl.DataFrame, what: str) -> Exact:
    """The least of numbers that no seed has a part in; NaN where one of them is."""
    return Exact(float(np.min(rows["value"].to_numpy())), f"least {what}")


def _most(rows: pl.DataFrame, what: str) -> Exact:
    return Exact(float(np.max(rows["value"].to_numpy())), f"largest {what}")


@part.claim(
    "C5a",
    "In the diagonal model the optimum under weight decay gives every environmental feature a positive weight, below "
    "that of invariant ones.",
    source="Lemma 6.1 (3): 0 < β < α < 1/√r",
)
def order(m: Measurements[Params]) -> Judgement:
    return _least(m.rows("order", arm="decayed"), "of β/α, 1 − β/α and 1 − α√r").above(0)


@part.claim(
    "C5b",
    "Under weight decay invariant features weigh less than 3/(4γ) times as much as environmental ones, which agree "
    "with the label with probability ½ + γ.",
    source="Lemma 6.1 (3)",
)
def ratio_below_bound(m: Measurements[Params]) -> Judgement:
    return _most(m.rows("share_of_bound", arm="decayed"), "α/β over 3/(4γ)").below(1)


@part.claim(
    "X1",
    "Under weight decay a feature's weight is in proportion to its mean: α/β = 1/(2γ) to within 3 %, at every size and "
    "weight decay tried.",
    source="Derived: the leading order of the gradient; the source bounds the ratio by 3/(4γ)",
)
def ratio_of_means(m: Measurements[Params]) -> Judgement:
    apart = m.rows("share_of_means", arm="decayed").with_columns(value=(pl.col("value") - 1).abs())
    return _most(apart, "|2γ·α/β − 1|").at_most(0.03)


@part.claim(
    "X2",
    "In the diagonal model with one or two invariant features and weight decay 10⁻⁶, invariant features weigh more "
    "than 3/(4γ) times as much as environmental ones.",
    source="Derived: any weights on invariant features separate the data; Proposition 6.3 asks λ > Ω(√r·e^{−√r/5})",
)
def decay_is_needed(m: Measurements[Params]) -> Judgement:
    return _least(m.rows("share_of_bound", arm="vanishing", decay=1e-6), "α/β over 3/(4γ) at λ = 10⁻⁶").above(1)


@part.claim(
    "C6a",
    "A network that may use few features uses invariant ones only: exchanging an environmental for an invariant one "
    "always lowers its loss.",
    source="Lemma 6.2, with weight decay",
    printed="the optimum without weight decay, which does not exist: the loss falls to 0 as weights grow",
)
def exchange_helps(m: Measurements[Params]) -> Judgement:
    return _least(m.rows("saved_by_exchange", arm="supports"), "loss saved by an exchange").above(0)


@part.claim(
    "C6b",
    "Without weight decay the rank-limited problem has no solution: at weights of 1,000 its loss is below 0.001.",
    source="Lemma 6.2 speaks of an optimal w; derived: all margins are positive, so that the loss vanishes",
    printed="an optimal w exists",
)
def no_minimiser(m: Measurements[Params]) -> Judgement:
    return _most(m.rows("unbounded_loss", arm="supports"), "loss at weights of 1,000").below(1e-3)


@part.claim(
    "C7a",
    "At its own weights the rank-limited optimum of the diagonal model is right on every input outside the training "
    "domain, up to rounding.",
    source="Proposition 6.3",
)
def limited_is_right(m: Measurements[Params]) -> Judgement:
    wrong = m.rows("accuracy", arm="supports").with_columns(value=1 - pl.col("value"))
    return _most(wrong, "share of inputs wrong outside").at_most(ROUNDING)


@part.claim(
    "C7b",
    "Outside the training domain the optimum under weight decay is right with a probability below e^(−r/10), where r "
    "features are invariant.",
    source="Proposition 6.3; the probability is bounded by its exact cumulants (Chernoff)",
    headline=True,
)
def decayed_is_wrong(m: Measurements[Params]) -> Judgement:
    return _most(m.rows("log10_excess", arm="decayed"), "log₁₀ of (bound on the accuracy/e^(−r/10))").at_most(0)


@part.claim(
    "C7c",
    "The squared ranges in the proof of the out-of-domain bound sum to at most 5(d − r), which suffices for e^(−r/10).",
    source="Appendix E.1, Hoeffding's inequality with ranges 3/(4γ) and 2",
    printed="at most 4d, which is exceeded for γ < 3/8",
)
def ranges(m: Measurements[Params]) -> Judgement:
    return _most(m.rows("ranges_share", arm="decayed"), "Σ(b − a)²/(5(d − r))").at_most(1)


def _below_threshold(m: Measurements[Params], metric: str) -> pl.DataFrame:
    """The rows of instances whose γ is clearly below the threshold; a γ without a finite place stays in."""
    keys = ["invariant", "gamma", "strength", "seed"]
    places = m.rows("above", arm="penalised").select(*keys, place="value")
    rows = m.rows(metric, arm="penalised").join(places, on=keys)
    rows = rows.with_columns(value=pl.when(pl.col("place").is_finite()).then(pl.col("value")).otherwise(float("nan")))
    return rows.filter((pl.col("place") < -NEAR) | pl.col("value").is_nan())


@part.claim(
    "C8a",
    "In the diagonal model the nuclear norm drops environmental features: their weight is exactly 0 where γ is more "
    "than 0.01 below the derived threshold (0.469 at r = 50).",
    source="Derived from the closed form of the norm; the source proves it for limited rank only",
    when={
        "a γ more than 0.01 below the threshold": lambda p: any(
            gamma < threshold(r) - NEAR for r in p.invariants for gamma in p.legal(r)
        )
    },
    headline=True,
)
def dropped(m: Measurements[Params]) -> Judgement:
    return _most(_below_threshold(m, "beta_share"), "β/α").at_most(0)


@part.claim(
    "C8b",
    "In the diagonal model with 10 or 4 invariant features, fewer than the theory asks, the nuclear norm drops "
    "environmental features: their weight is exactly 0.",
    source="Derived; instances of the specification",
)
def dropped_outside(m: Measurements[Params]) -> Judgement:
    return _most(m.rows("beta_share", arm="penalised-outside"), "β/α").at_most(0)


@part.claim(
    "X3",
    "In the diagonal model with r = 40 and γ = 0.48 the nuclear norm keeps environmental features: its optimum is "
    "right less than half of the time outside.",
    source="Derived: near ½ an environmental feature is worth its price; accuracy bounded by exact cumulants",
    when={"r = 40 with γ = 0.48": lambda p: 0.48 in p.gammas and 40 in p.invariants},
    headline=True,
)
def kept_near_half(m: Measurements[Params]) -> Judgement:
    found = m.rows("log10_accuracy", arm="penalised", invariant=40, gamma=0.48)
    return _most(found, "log₁₀ of the bound on the accuracy").below(math.log10(0.5))
