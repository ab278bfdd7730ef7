"""The claims on the parity networks: what the constructions solve (C4), and that they are not the optima."""

from __future__ import annotations

import math

from assay.lab import Exact, Judgement, Measurements, Values, combine, pool

from ..params import Parity
from .arms import SIZES, part

ROUNDING = 1e-9
OPTIMAL = "Theorem 5.5.1, whose proof lets a head fire only where the signs of both features match"


def _norm(m: Measurements[Parity], network: str) -> float:
    """The squared norm of a network that has margin 1 on every task, and no number for others."""
    margin, norm = (m.exact(name, arm="counterexamples", network=network).value for name in ("margin", "squared_norm"))
    return norm if margin >= 1 - ROUNDING else math.nan


@part.claim(
    "C4a",
    "The explicit attention network with two heads per bit of the dimension, and two more, solves every 2-sparse "
    "parity task with margin 1 on long prompts.",
    source="Theorem 5.5.1, the network g₂; every task and pattern at four sizes",
)
def large_solves_all(m: Measurements[Parity]) -> Judgement:
    least = m.every("margin", arm="construction", network="large", tasks=["important", "rare"])
    return least.named("least margin of the large network").at_least(1, tolerance=ROUNDING)


@part.claim(
    "C4b",
    "The explicit attention network for the important signs alone, with two heads per bit of their number and two "
    "more, solves every 2-sparse parity task of theirs with margin 1 on long prompts.",
    source="Theorem 5.5.1, the network g₁",
)
def small_solves_important(m: Measurements[Parity]) -> Judgement:
    least = m.every("margin", arm="construction", network="small", tasks="important")
    return least.named("least margin of the small network").at_least(1, tolerance=ROUNDING)


@part.claim(
    "C4c",
    "The explicit parity network for the important signs alone answers exactly 0 on every rare task whose indices "
    "agree in the bits that it uses.",
    source="Derived: its output is y times the number of those bits that differ",
)
def small_is_blind(m: Measurements[Parity]) -> Judgement:
    where = {"arm": "construction", "network": "small", "tasks": "alike"}
    return (
        m.every(["margin", "largest_margin"], **where).named("margins on those tasks").between(0, 0, tolerance=ROUNDING)
    )


@part.claim(
    "X4a",
    "Both explicit parity networks answer y times the number of differing bits among those they use, for every task "
    "and pattern.",
    source="Derived from Theorem 5.5.1",
)
def formula(m: Measurements[Parity]) -> Judgement:
    errors = m.every("formula_error", arm="construction", network=["large", "small"])
    return errors.named("|margin − differing bits|").at_most(0, tolerance=ROUNDING)


@part.claim(
    "C4d",
    "Four attention heads solve every 2-sparse parity task with margin 1 on long prompts, at every dimension tried.",
    source=OPTIMAL + "; heads ±diag(i − (d+1)/2) and ±(d−1)/2 · I",
    printed="fewer than 2(ν₂ + 1) heads cannot reach zero loss, and with 2(ν₁ + 1) heads the small network is optimal",
    headline=True,
)
def four_suffice(m: Measurements[Parity]) -> Judgement:
    least = m.every("margin", arm="construction", network="four heads", tasks=["important", "rare"])
    return least.named("least margin of four heads").at_least(1, tolerance=ROUNDING)


@part.claim(
    "C4e",
    "In 4 dimensions six other heads reach margin 1 on every task with a smaller norm than the source's large parity "
    "network.",
    source=OPTIMAL + "; heads eₙ − 1/4 and ±I",
    printed="the large network is the optimum, of least norm among those without loss",
)
def smaller_norm(m: Measurements[Parity]) -> Judgement:
    saved = _norm(m, "printed, d = 4") - _norm(m, "centred, d = 4")
    return Exact(saved, "norm² of the source's network − of ours, at margin 1").above(0)


@part.claim(
    "C4f",
    "In 2 dimensions heads that are not diagonal reach margin 1 with half of the squared norm of the source's parity "
    "network.",
    source=OPTIMAL + "; each diagonal shared by both rows",
    printed="optimal heads are diagonal in the basis of the features",
)
def not_diagonal(m: Measurements[Parity]) -> Judgement:
    share = _norm(m, "not diagonal, d = 2") / _norm(m, "printed, d = 2")
    return Exact(share, "norm²/that of the source's network, at margin 1").between(0.5 - ROUNDING, 0.5 + ROUNDING)


@part.claim(
    "C4g",
    "A larger positive head (scale ν + 1 in place of ν) at least halves the loss of the explicit parity network for "
    "the important signs alone on rare tasks, at no loss on important ones.",
    source=OPTIMAL + "; positive patterns of tasks with equal bits then have margin 1",
    printed="the small network has the scale ν₁/(4γ) on its positive heads",
)
def better_scale(m: Measurements[Parity]) -> Judgement:
    def share(size: dict[str, int]) -> Values:
        rare, lost, printed = (
            m.final("loss", arm="construction", network=network, tasks=tasks, **size)
            for network, tasks in (("small, rescaled", "rare"), ("small, rescaled", "important"), ("small", "rare"))
        )
        return combine(lambda of: of[0] / of[2] if of[1] <= ROUNDING else 9.0, [rare, lost, printed], "share")

    shares = pool([share(size) for size in SIZES], "rare loss/that of the source's scale")
    return shares.at_most(0.5, tolerance=ROUNDING)


@part.claim(
    "C4h",
    "Among four heads of constant magnitude in 4 dimensions the lowest loss is a fifth of the rate of rare tasks, half "
    "of the source's.",
    source="Theorem 5.5.1 restricted to V = c·diag(±1); a linear programme for each of 256 choices of signs",
    printed="the small network, with a loss of two fifths of that rate",
)
def sign_class(m: Measurements[Parity]) -> Judgement:
    best = m.exact("sign_class_loss", arm="counterexamples").named("lowest loss/rate of rare tasks")
    return best.between(0.2 - 1e-6, 0.2 + 1e-6)
