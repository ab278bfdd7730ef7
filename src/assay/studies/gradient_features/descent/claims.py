"""Claims about descent after the first step: bounds with explicit constants, none of which may be broken."""

from __future__ import annotations

import math

import polars as pl

from assay.lab import Judgement, Measurements, combine

from ..theory import log_log_slope
from .arms import CASES, Params, part


@part.claim(
    "C3c",
    "A head descending from 0 on gradient features never has a larger loss than the theorem allows with its best "
    "comparator, the least L(a) + ‖a‖²/(2ηT) over twelve heads a, in three cases.",
    source="Frozen theorem, optimisation half, which holds for every a; mixture and parity with the logistic loss, "
    "multi-index with squares",
    printed="step size 1/t in one place and 1/L in another: 1/L is the one that works",
)
def never_above(m: Measurements[Params]) -> Judgement:
    where = {"arm": "frozen", "case": list(CASES)}
    return (m.every("gap", **where) - m.every("bound", **where)).named("gap − bound").at_most(0, tolerance=1e-9)


@part.claims_over(
    {
        "C3d": {"case": "mixture", "words": "four XOR axes"},
        "C3e": {"case": "parity", "words": "a block parity"},
        "C3f": {"case": "multi-index", "words": "a polynomial of three directions"},
    },
    statement="On {words}, a head descending on gradient features closes in at least like T^(−0.8) on the best one.",
    source="Frozen theorem: rate 1/T; the log-log slope over the last two thirds of the (log-spaced) times",
    when={"1,000 steps": lambda p: p.frozen_steps >= 1000},
)
def rate(m: Measurements[Params], *, case: str) -> Judgement:
    def slope(rows: pl.DataFrame) -> float:
        late = rows[len(rows) // 3 :]
        return log_log_slope(late["step"].to_torch(), late["value"].to_torch().clamp(min=1e-12))

    return m.per_seed(m.curve("gap", arm="frozen", case=case), slope, "log-log slope of the gap").at_most(-0.8)


@part.claim(
    "C3g",
    "On four XOR axes and a block parity, the head's test loss exceeds its training loss by less than the Rademacher "
    "bound.",
    source="Frozen theorem, generalisation half; twice √(B²(‖W‖²B_x² + ‖b‖²)/n)",
)
def generalises(m: Measurements[Params]) -> Judgement:
    where = {"arm": "frozen", "case": ["mixture", "parity"]}
    return m.every("generalisation_over_bound", **where).named("gap / bound").at_most(1)


@part.claim(
    "C3h",
    "With both layers trained on four XOR axes, no neuron moves further than the envelope of the recursion allows, at "
    "any rate.",
    source="Lemma on the dynamics of both layers, iterated as a scalar recursion",
)
def envelope(m: Measurements[Params]) -> Judgement:
    return m.every("envelope_used", arm="drift").named("movement / envelope").at_most(1)


@part.claim(
    "C3i",
    "With both layers trained on four XOR axes at the largest rate tried for which T·η·B_x1 is at most 0.1, no neuron "
    "moves by a tenth of its norm.",
    source="Main theorem: while T·η·B_x1 is at most 0.1 the first layer is nearly frozen",
    when={"T·η·B_x1 of at most 0.1": lambda p: bool(_slow(p))},
)
def nearly_frozen(m: Measurements[Params]) -> Judgement:
    return m.every("drift", arm="drift", rate=max(_slow(m.params))).named("largest relative drift").at_most(0.1)


def _slow(params: Params) -> list[float]:
    """The rates η with T·η·B_x1 of at most 0.1; four XOR axes of norm 8 in 64 dimensions have B_x1 of 11.3."""
    return [rate for rate in params.drift_rates if rate * params.drift_steps * 11.3 <= 0.1]


@part.claim(
    "C3j",
    "On four XOR axes, moving the first layer changes the loss by no more than the drift bound allows, at any rate.",
    source="Lemma on the loss gap: B_x1·‖a‖·√‖a‖_0·max drift",
)
def loss_change(m: Measurements[Params]) -> Judgement:
    change, bound = m.every("loss_change", arm="drift"), m.every("loss_change_bound", arm="drift")
    return (change - bound).named("change − bound").at_most(0, tolerance=1e-6)


@part.claim(
    "C3n",
    "With both layers trained on four XOR axes the median neuron that the first step put into the cone of a feature is "
    "still in that cone at the end, at every rate up to 0.1.",
    source="Main theorem: full training stays benign, so that the network goes on competing with heads on the features",
)
def features_stay(m: Measurements[Params]) -> Judgement:
    found = [m.final("own_cosine", arm="drift", rate=rate) for rate in m.params.drift_rates if rate <= 0.1]
    return combine(min, found, "median cosine with the own feature, least over the rates").above(1 - m.params.cone)


@part.claim(
    "X27",
    "With both layers trained on four XOR axes at the largest rate, neurons that the first step put into the cone of a "
    "feature end nearer to it than at the smallest rate, by the median cosine.",
    source="derived: later gradients of a neuron are sums over the inputs that it sees, most of its own feature",
    when={"a rate of 0.1": lambda p: p.drift_rates[-1] >= 0.1, "50 steps": lambda p: p.drift_steps >= 50},
)
def training_turns_further(m: Measurements[Params]) -> Judgement:
    slow, fast = (m.final("own_cosine", arm="drift", rate=m.params.drift_rates[at]) for at in (0, -1))
    return (fast - slow).named("median cosine, largest − smallest rate").above(0)


@part.claim(
    "C3o",
    "With both layers trained on four XOR axes the share of gates that flip is at no rate and step above √(2/π)·B_x "
    "times the mean relative drift of the neurons.",
    source="derived: a gate flips only near its threshold, and with noise 1 projections have a density of at most "
    "1/√(2π)",
)
def few_flips(m: Measurements[Params]) -> Judgement:
    return m.every("flips_over_bound", arm="drift").named("share of flips / bound").at_most(1)


@part.claim(
    "N22",
    "With both layers trained on four XOR axes more gates flip at the largest rate than at the smallest.",
    source="control: the flips that are bounded can be seen",
    when={"a rate of 0.1": lambda p: p.drift_rates[-1] >= 0.1, "50 steps": lambda p: p.drift_steps >= 50},
)
def gates_do_flip(m: Measurements[Params]) -> Judgement:
    slow, fast = (m.final("flips", arm="drift", rate=m.params.drift_rates[at]) for at in (0, -1))
    return (fast - slow).named("share of flips, largest − smallest rate").above(0)


@part.claim(
    "N12",
    "At the largest rate the first layer does move: on four XOR axes the neuron that drifts most moves by over a tenth "
    "of its norm.",
    source="control: the drift that is bounded can be seen; by its logarithm, as the recursion grows by factors",
    when={"a rate of 0.1": lambda p: p.drift_rates[-1] >= 0.1, "50 steps": lambda p: p.drift_steps >= 50},
)
def does_move(m: Measurements[Params]) -> Judgement:
    rows = m.rows("drift", arm="drift", rate=m.params.drift_rates[-1])
    return m.per_seed(rows, lambda part: math.log10(part["value"].item()), "log10 of the largest drift").above(-1)
