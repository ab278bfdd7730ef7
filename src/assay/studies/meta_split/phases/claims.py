"""Who wins as the conditions change: tasks, every setting and map, pooled data, inner steps and rates, activation."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from assay.lab import Every, Judgement, Measurements, Values, combine, pool

from ..learners import SPLITS, TT, TV
from ..theorems.arms import SETTINGS
from ..theorems.claims import ours
from ..theorems.theory import pooled_fails
from .arms import Params, part

LEARNED = 0.6  # test loss below which the feature counts as the winner
APART = 1.5  # rates closer than this predict no winner


# C3: the number of tasks


@part.claims_over(
    {
        "C3e": {"few": "tasks-2", "many": "tasks-5"},
        "C3f": {"few": "tasks-5", "many": "base"},
        "C3g": {"few": "base", "many": "tasks-20"},
        "C3h": {"few": "tasks-20", "many": "tasks-40"},
    },
    statement="more tasks do not hurt with a split: test loss of {many} at most 1.1 times that of {few}",
    source="Theorem 4.5: O(exp(−K^c)); at finite T the loss saturates, so only the order is asked",
)
def more_tasks(m: Measurements[Params], *, few: str, many: str) -> Judgement:
    ratio = ours(m, "test_loss", TV, many) / ours(m, "test_loss", TV, few)
    return ratio.named(f"loss of {many}/loss of {few}").at_most(1.1)


# C4: the rates tell the winner


def _misjudged(m: Measurements[Params], cells: Iterable[Values], what: str) -> Every:
    """The number of cells whose winner, by test loss, is not the predicted one, per seed; a seed counts over the cells
    that it has, since the settings have different numbers of them."""
    cells = list(cells)
    counted = m.per_seed(pool(cells, what).rows, lambda rows: rows["value"].sum(), what)
    return pool([counted], f"number wrong of {len(cells)} {what}")


def _is_wrong(loss: float, feature_wins: bool) -> float:
    return float((loss < LEARNED) != feature_wins)


def _grid_cells(m: Measurements[Params]) -> Iterable[Values]:
    """Whether each decided cell of the grid of settings is misjudged (1). Left out: ReLU and the large start, which
    have no quadratic zone, ``long``, which repeats the base setting, and ``proof``, whose outer rate moves nothing in
    600 steps."""
    for setting in SETTINGS:
        if setting in ("relu", "long", "large-start", "proof"):
            continue
        for split in SPLITS:
            rates = m.params_of(setting).rates(split)
            if rates.apart > APART + 1e-9:
                wins = rates.winner == "feature"
                yield ours(m, "test_loss", split, setting).map(partial(_is_wrong, feature_wins=wins))


def _phase_cells(m: Measurements[Params], arm: str, column: str, axis: str) -> Iterable[Values]:
    """The same for the decided cells of a phase map, whose rates were recorded."""
    rows = m.rows("test_loss", arm=arm)
    for place, at, split in rows.select(column, axis, "split").unique(maintain_order=True).iter_rows():
        where = {"arm": arm, column: place, axis: at, "split": split}
        rates = [m.final(f"{kind}_rate", **where) for kind in ("feature", "noise")]
        near = combine(lambda v: max(v) <= (APART + 1e-9) * min(v), rates, "rates close to each other")
        # A cell with a rate that is not a number is not left out: it is NaN for that seed.
        if not (near.array == 1).all():
            yield combine(lambda v: _is_wrong(v[2], v[0] > v[1]), [*rates, m.final("test_loss", **where)], "wrong")


@part.claim(
    "C4j",
    "the rates tell the winner in every setting where they differ by more than 1.5 times (test loss below 0.6)",
    source="Lemmas 6.1 to 6.3 with explicit constants",
)
def winners(m: Measurements[Params]) -> Judgement:
    return _misjudged(m, _grid_cells(m), "settings").at_most(0)


@part.claim("C4k", "so they do over inner steps J and tasks K", source="the same; phase map of J and K")
def winners_steps_tasks(m: Measurements[Params]) -> Judgement:
    return _misjudged(m, _phase_cells(m, "phase-steps-tasks", "tasks", "inner_steps"), "cells").at_most(0)


@part.claim("C4l", "and over noise energy s and inner rate γ", source="the same; phase map of s and γ")
def winners_noise_rate(m: Measurements[Params]) -> Judgement:
    return _misjudged(m, _phase_cells(m, "phase-noise-rate", "noise_energy", "inner_rate"), "cells").at_most(0)


# C5: pooled data


@part.claim(
    "C5a",
    "gradient descent on pooled data fails where s > Kn/2 (two tasks, s = 6: test loss above 0.65)",
    source="Discussion of Theorem 4.4 for J = 0",
    setting="two-tasks-pooled",
    when={"s > Kn/2": lambda p: pooled_fails(p.noise_energy, p.tasks, p.samples, p.knee)},
)
def pooled_descent_fails(m: Measurements[Params]) -> Judgement:
    return ours(m, "test_loss", TT, "two-tasks-pooled").above(0.65)


@part.claim("C5b", "there FOMAML with a split has accuracy above 0.95", source="Theorem 4.5, two tasks, s = 6")
def split_succeeds_on_two(m: Measurements[Params]) -> Judgement:
    return ours(m, "test_accuracy", TV, "two-tasks").above(0.95)


@part.claim(
    "C5c",
    "pooled gradient descent succeeds where s < Kn/2 (ten tasks, s = 8: test loss below 0.08)",
    source="Discussion of Theorem 4.4 for J = 0",
    printed="Theorem 4.4 holds for J = 0 as well: pooled supervised learning fails",
    setting="pooled",
    when={"s < Kn/2": lambda p: not pooled_fails(p.noise_energy, p.tasks, p.samples, p.knee)},
)
def pooled_descent_succeeds(m: Measurements[Params]) -> Judgement:
    return ours(m, "test_loss", TT, "pooled").below(0.08)


# C6: inner steps and rates


def _by_steps(m: Measurements[Params], split: str) -> Values:
    return (ours(m, "test_loss", split) - ours(m, "test_loss", split, "steps-1")).named("J = 5 − J = 1")


def _gap(m: Measurements[Params], setting: str) -> Values:
    return ours(m, "test_loss", TT, setting) - ours(m, "test_loss", TV, setting)


def _by_rate(m: Measurements[Params], split: str) -> Values:
    where = {"arm": "phase-noise-rate", "noise_energy": m.params.noise_energy, "split": split}
    high, low = (m.final("test_loss", inner_rate=rate, **where) for rate in (0.5, 0.1))
    return (high - low).named("γ = 0.5 − γ = 0.1")


@part.claim(
    "C6a",
    "more inner steps hurt without a split: test loss at J = 5 above that at J = 1",
    source="Table 2, synthetic",
)
def steps_hurt(m: Measurements[Params]) -> Judgement:
    return _by_steps(m, TT).above(0)


@part.claim("C6b", "they do not hurt with one (difference at most 0.01)", source="Table 2, synthetic")
def steps_do_not_hurt(m: Measurements[Params]) -> Judgement:
    return _by_steps(m, TV).at_most(0.01)


@part.claim("C6c", "the gap between the two is larger at J = 5 than at J = 1", source="Table 2, synthetic")
def steps_widen(m: Measurements[Params]) -> Judgement:
    return (_gap(m, "base") - _gap(m, "steps-1")).named("gap at J = 5 − gap at J = 1").above(0)


@part.claim(
    "C6d",
    "a larger inner rate hurts without a split: loss at γ = 0.5 above that at γ = 0.1, η fixed",
    source="Section 5.2",
)
def rate_hurts(m: Measurements[Params]) -> Judgement:
    return _by_rate(m, TT).above(0)


@part.claim("C6e", "it does not hurt with one (difference at most 0.01)", source="Section 5.2")
def rate_does_not_hurt(m: Measurements[Params]) -> Judgement:
    return _by_rate(m, TV).at_most(0.01)


@part.claim(
    "C6f",
    "with the rates swapped (outer above inner) the gap vanishes: below 0.05 either way",
    source="Table 3, synthetic",
)
def swapped_rates(m: Measurements[Params]) -> Judgement:
    return _gap(m, "swapped-rates").named("gap").between(-0.05, 0.05)


# C7: activation


@part.claim("C7a", "with ReLU, too, the test loss is lower with a split", source="Table 1, synthetic")
def relu_order(m: Measurements[Params]) -> Judgement:
    return _gap(m, "relu").named("without − with a split").above(0)


@part.claims_over(
    {"C7b": {"split": TT}, "C7c": {"split": TV}},
    statement="the activation moves the loss of {split} by less than a quarter of the gap between the splits",
    source="Table 1, synthetic; in these settings ReLU has no quadratic zone and no exponential growth",
)
def activation_matters_little(m: Measurements[Params], *, split: str) -> Judgement:
    change = (ours(m, "test_loss", split, "relu") - ours(m, "test_loss", split)).map(abs)
    return (change - _gap(m, "base") * 0.25).named("|ReLU − Huberized| − gap/4").below(0)
