"""The claims on forward pruning over many steps: its course (C5), its end state (C6), and their controls."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from assay.lab import Judgement, Measurements, Values, combine

from ..claims import AN_ORDER, power
from ..theory import pair_correlations, printed_rates
from .arms import Params, part
from .theory import pruning_horizon

DECAY, STRONG = 0.01, 0.05
LEVEL = 0.9  # of the frequent coefficients, from which on the rare one counts as level with them
WEAK_DECAY = {"λ = 0.01 among the weight decays": lambda p: DECAY in p.pruned_decays}
STRONG_DECAY = {"λ = 0.05 among the weight decays": lambda p: STRONG in p.pruned_decays}
SIZE = {
    "ε = 0.1, 0.3 and 0.5": lambda p: tuple(p.pruned_rare) == (0.1, 0.3, 0.5),
    "1200 steps of pruning": lambda p: p.pruned_steps == 1200,
}
TRIED = SIZE | WEAK_DECAY


def _coefficient(
    m: Measurements[Params],
    gradient: str,
    epsilon: float,
    step: int | None = None,
    metric: str = "rare_coefficient",
    decay: float = DECAY,
) -> Values:
    """Of the training with one kind of gradient from the constructed state, at a step or at the end."""
    where = dict(arm="pruning", decay=decay, gradient=gradient, epsilon=epsilon)
    return m.final(metric, **where) if step is None else m.at(metric, step, **where)


@part.claims_over(
    {
        "C5g": {"epsilon": 0.1, "step": 400},
        "C5h": {"epsilon": 0.3, "step": 200},
        "C5i": {"epsilon": 0.5, "step": 100},
    },
    statement="From a state in which rare neurons are small, pruning puts the rare coefficient (ε = {epsilon}) 5 % "
    "ahead of plain training by step {step}.",
    source="Theorem 3.2 (a) over many steps, half-way to equality; λ = 0.01",
    when=TRIED,
)
def ahead(m: Measurements[Params], *, epsilon: float, step: int) -> Judgement:
    gain = _coefficient(m, "logit-masked", epsilon, step) / _coefficient(m, "plain", epsilon, step)
    return gain.named("pruned/plain rare coefficient").at_least(1.05)


@part.claim(
    "C5l",
    "Once coefficients are level the mask hides the rare feature's neurons at chance: their share of it is 1/d, within "
    "0.1 (ε = 0.5).",
    source="Remark 1: self-balancing; last quarter of the steps, λ = 0.01",
    when=TRIED,
)
def mask_at_chance(m: Measurements[Params]) -> Judgement:
    rows = m.rows("pruned_rare_share", arm="pruning", gradient="logit-masked", decay=DECAY, epsilon=0.5)
    late = rows.filter(rows["step"] >= 0.75 * m.params.pruned_steps)
    share = m.per_seed(late, lambda curve: curve["value"].mean(), "mean share of rare among the pruned")
    because = "about twice the chance deviation of a seed's mean over 16 masks of 3 among 24 neurons"
    return share.equals(1 / (m.params.pruned_majority + 1), within=0.1, because=because)


@part.claims_over(
    {"C6a": {"epsilon": 0.1, "headline": True}, "C6b": {"epsilon": 0.3}, "C6c": {"epsilon": 0.5}},
    statement="With pruning from a state in which rare neurons are small, the rare coefficient (ε = {epsilon}) ends "
    "within 10 % of the frequent ones.",
    source="Theorem 3.2 (c); λ = 0.01",
    when=TRIED,
)
def equal(m: Measurements[Params], *, epsilon: float) -> Judgement:
    return _level(_coefficient(m, "logit-masked", epsilon, metric="ratio"))


@part.claim(
    "C6j",
    "Under stronger weight decay (λ = 0.05) pruning ends with the rare coefficient (ε = 0.1) level with the frequent "
    "ones, within 10 %.",
    source="Theorem 3.2 (c), whose end state does not depend on λ",
    when=SIZE | STRONG_DECAY,
)
def equal_under_decay(m: Measurements[Params]) -> Judgement:
    return _level(_coefficient(m, "logit-masked", 0.1, metric="ratio", decay=STRONG))


def _level(ratio: Values) -> Judgement:
    return ratio.named("rare/frequent").equals(1, within=0.1, because="10 %, the specification's")


@part.claim(
    "C6d",
    "With pruning, the final ratio of rare to frequent coefficients differs by less than 0.05 between frequencies (ε).",
    source="Theorem 3.2 (c); λ = 0.01",
    when=TRIED,
)
def independent(m: Measurements[Params]) -> Judgement:
    parts = [_coefficient(m, "logit-masked", e, metric="ratio") for e in m.params.pruned_rare]
    return combine(lambda v: max(v) - min(v), parts, "largest − smallest rare/frequent over ε").below(0.05)


@part.claim(
    "C6e",
    "Without pruning, the rare coefficient (ε = 0.1) is still more than 10 % behind the frequent ones after as many "
    "steps.",
    source="Theorem 3.2, comparison; λ = 0.01",
    when=TRIED,
)
def plain_behind(m: Measurements[Params]) -> Judgement:
    return _coefficient(m, "plain", 0.1, metric="ratio").named("rare/frequent").below(0.9)


@part.claim(
    "C6f",
    "With pruning, the rare coefficient is level with the frequent ones within the printed pruning horizon, at every "
    "frequency (ε).",
    source="Proof of Theorem 3.2: T₅ − T₄ at the rate ηε²αC_z log log d/d, its constant 1, εC_z log log d/d read as κ, "
    "η as ours/τ; from the state's own gap to 90 %",
    when=TRIED,
)
def within_horizon(m: Measurements[Params]) -> Judgement:
    shares = [_steps_to_level(m, epsilon) / _horizon(m, epsilon) for epsilon in m.params.pruned_rare]
    return combine(max, shares, "steps to equality/horizon, worst ε").at_most(1)


def _horizon(m: Measurements[Params], epsilon: float) -> Values:
    """The steps from each seed's first ratio to a level one at the printed rate."""
    params, problem = m.params, m.params.pruned_problem
    strength = problem.features * float(pair_correlations(problem, 1.0).max())
    rate, _ = printed_rates(epsilon, params.alpha, problem.features, params.rate / params.temperature, strength)
    start = _coefficient(m, "logit-masked", epsilon, 0, metric="ratio")
    return start.map(lambda ratio: pruning_horizon(LEVEL / ratio, rate))


@part.claim(
    "C6g",
    "The steps that pruning takes to make coefficients level fall with the square of the rare feature's frequency (ε).",
    source="Proof of Theorem 3.2: T₅ − T₄ ∝ 1/(αε²) for a given gap; a power fitted over ε, λ = 0.01",
    when=TRIED,
)
def horizon_exponent(m: Measurements[Params]) -> Judgement:
    rare = m.params.pruned_rare
    steps = [_steps_to_level(m, epsilon) for epsilon in rare]
    exponent = combine(lambda v: power(np.array(rare), np.array(v)), steps, "exponent of ε in the steps to equality")
    return exponent.equals(-2, **AN_ORDER)


def _steps_to_level(m: Measurements[Params], epsilon: float) -> Values:
    """The first step looked at in which the rare coefficient is level with the frequent ones; NaN where none is."""

    def first(curve: pl.DataFrame) -> float:
        reached = curve.filter(pl.col("value") >= LEVEL)["step"]
        return float(reached[0]) if len(reached) else math.nan

    rows = m.curve("ratio", arm="pruning", gradient="logit-masked", decay=DECAY, epsilon=epsilon)
    return m.per_seed(rows, first, "steps to equality")


@part.claim(
    "C6h",
    "From a state with m/d neurons that have the rare feature and no other, pruning ends with as many or more, at "
    "every frequency (ε).",
    source="Theorem 3.2, end: Ω(m/d) neurons with 𝓝_i = {j*}, its constant 1; lucky by the probe for trained networks",
)
def keeps_own_neurons(m: Measurements[Params]) -> Judgement:
    rows = m.every("own_neurons", arm="pruning", gradient="logit-masked")
    return rows.named("neurons of the rare feature alone").at_least(m.params.per_feature)


@part.claim(
    "C6i",
    "Pruning from random weights on ends with at least m/d neurons (of m, for d features) that have the rarest "
    "feature and no other.",
    source="Algorithm 1; Theorem 3.2, end: Ω(m/d) neurons with 𝓝_i = {j*}, its constant 1; lucky by the probe for "
    "trained networks, smallest ε",
    headline=True,
)
def random_own_neurons(m: Measurements[Params]) -> Judgement:
    own = m.final("own_neurons", arm="pruning-random", epsilon=m.params.pruned_rare[0], pruned=True)
    return own.named("neurons of the rare feature alone").at_least(m.params.per_feature)


@part.claim(
    "N4",
    "Pruning from random weights on, where small neurons are nobody's, raises the rarest feature's coefficient by less "
    "than 2 %.",
    source="control: small neurons are not the rare feature's; smallest ε",
)
def random_start(m: Measurements[Params]) -> Judgement:
    where = dict(arm="pruning-random", epsilon=m.params.pruned_rare[0])
    gain = m.final("rare_energy", pruned=True, **where) / m.final("rare_energy", pruned=False, **where) - 1.0
    return gain.named("rare coefficient, pruned/plain − 1").below(0.02)


@part.claim(
    "N5",
    "Differentiating the masked network, so that pruned neurons get no gradient, leaves the rare coefficient below "
    "plain training's.",
    source="control: pruned neurons then only decay (self-competitor with whole neurons is the same); smallest ε, "
    "λ = 0.01",
    when=WEAK_DECAY,
)
def straight_through(m: Measurements[Params]) -> Judgement:
    epsilon = m.params.pruned_rare[0]
    ratio = _coefficient(m, "straight-through", epsilon) / _coefficient(m, "plain", epsilon)
    return ratio.named("straight-through/plain rare coefficient").below(1)
