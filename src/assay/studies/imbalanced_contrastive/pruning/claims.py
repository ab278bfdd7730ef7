"""The claims on forward pruning over many steps: its course (C5), its end state (C6), and their controls."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values, combine

from .arms import Params, part

DECAY = 0.01
TRIED = {
    "the constructed state with ε = 0.1, 0.3, 0.5 and λ = 0.01": lambda p: (
        tuple(p.pruned_rare) == (0.1, 0.3, 0.5) and DECAY in p.pruned_decays and p.pruned_steps == 1200
    )
}


def _coefficient(
    m: Measurements[Params], gradient: str, epsilon: float, step: int | None = None, metric: str = "rare_coefficient"
) -> Values:
    """Of the training with one kind of gradient from the constructed state, at a step or at the end."""
    where = dict(arm="pruning", decay=DECAY, gradient=gradient, epsilon=epsilon)
    return m.final(metric, **where) if step is None else m.at(metric, step, **where)


@part.claims_over(
    {
        "C5g": {"epsilon": 0.1, "step": 400},
        "C5h": {"epsilon": 0.3, "step": 200},
        "C5i": {"epsilon": 0.5, "step": 100},
    },
    statement="half-way to equality (ε = {epsilon}, step {step}) the rare coefficient is 5 % larger with pruning",
    source="Theorem 3.2 (a) over many steps",
    when=TRIED,
)
def ahead(m: Measurements[Params], *, epsilon: float, step: int) -> Judgement:
    gain = _coefficient(m, "logit-masked", epsilon, step) / _coefficient(m, "plain", epsilon, step)
    return gain.named("pruned/plain rare coefficient").at_least(1.05)


@part.claim(
    "C5j", "at first all pruned neurons are the rare feature's", source="Assumption of Theorem 3.2; constructed state"
)
def pruned_are_rare(m: Measurements[Params]) -> Judgement:
    rows = m.every("pruned_rare_share", arm="pruning", gradient="logit-masked", step=0)
    return rows.named("share of rare among the pruned at step 0").at_least(1)


@part.claim(
    "C5k",
    "once magnitudes are equal the mask turns to others (ε = 0.5, last quarter)",
    source="Remark 1: self-balancing",
    when=TRIED,
)
def mask_moves_on(m: Measurements[Params]) -> Judgement:
    return _late_share(m).at_most(0.5)


@part.claim(
    "C5l",
    "once magnitudes are equal the mask is at about chance: the rare feature's share of it is within 0.1 of 1/d "
    "(ε = 0.5, last quarter)",
    source="Remark 1: self-balancing",
    when=TRIED,
)
def mask_at_chance(m: Measurements[Params]) -> Judgement:
    chance = 1 / (m.params.pruned_majority + 1)
    return _late_share(m).between(chance - 0.1, chance + 0.1)


def _late_share(m: Measurements[Params]) -> Values:
    rows = m.rows("pruned_rare_share", arm="pruning", gradient="logit-masked", decay=DECAY, epsilon=0.5)
    late = rows.filter(rows["step"] >= 0.75 * m.params.pruned_steps)
    return m.per_seed(late, lambda curve: curve["value"].mean(), "mean share of rare among the pruned")


@part.claims_over(
    {"C6a": {"epsilon": 0.1}, "C6b": {"epsilon": 0.3}, "C6c": {"epsilon": 0.5}},
    statement="with pruning the rare coefficient ends within 10 % of the frequent ones (ε = {epsilon})",
    source="Theorem 3.2 (c)",
    when=TRIED,
)
def equal(m: Measurements[Params], *, epsilon: float) -> Judgement:
    return _coefficient(m, "logit-masked", epsilon, metric="ratio").named("rare/frequent").between(0.9, 1.1)


@part.claim(
    "C6d",
    "with pruning the final ratio of rare to frequent coefficients differs by less than 0.05 between ε",
    source="Theorem 3.2 (c)",
    when=TRIED,
)
def independent(m: Measurements[Params]) -> Judgement:
    parts = [_coefficient(m, "logit-masked", e, metric="ratio") for e in m.params.pruned_rare]
    return combine(lambda v: max(v) - min(v), parts, "largest − smallest rare/frequent over ε").below(0.05)


@part.claim(
    "C6e",
    "without pruning the rarest feature (ε = 0.1) is still more than 10 % behind after the same steps",
    source="Theorem 3.2, comparison",
    when=TRIED,
)
def plain_behind(m: Measurements[Params]) -> Judgement:
    return _coefficient(m, "plain", 0.1, metric="ratio").named("rare/frequent").below(0.9)


@part.claim(
    "N4", "pruning from random weights does not help the rare feature", source="control: small neurons are not its own"
)
def random_start(m: Measurements[Params]) -> Judgement:
    where = dict(arm="pruning-random", epsilon=m.params.pruned_rare[0])
    gain = m.final("rare_energy", pruned=True, **where) / m.final("rare_energy", pruned=False, **where) - 1.0
    return gain.named("rare coefficient, pruned/plain − 1").below(0.02)


@part.claim(
    "N5",
    "differentiating the masked network instead leaves the rare coefficient below plain training",
    source="control: pruned neurons then only decay (self-competitor with whole neurons is the same)",
)
def straight_through(m: Measurements[Params]) -> Judgement:
    epsilon = m.params.pruned_rare[0]
    ratio = _coefficient(m, "straight-through", epsilon) / _coefficient(m, "plain", epsilon)
    return ratio.named("straight-through/plain rare coefficient").below(1)
