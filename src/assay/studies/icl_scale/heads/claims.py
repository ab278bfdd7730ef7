"""The claims on trained parity heads: training leaves the networks that the theorem calls optimal (C4)."""

from __future__ import annotations

from typing import Any

from assay.lab import Judgement, Measurements, Values, combine

from .arms import Params, part

STARTS = {"16 starts or more": lambda p: p.head_starts >= 16}
THEOREM = "Theorem 5.5.1, at half of the largest rate of rare tasks that it allows; the best of many starts"


def _found(m: Measurements[Params], metric: str, **network: Any) -> Values:
    return m.final(metric, arm="heads", **network)


@part.claims_over(
    {"C4i": {"bits": 2, "d": 4}, "C4j": {"bits": 3, "d": 8}},
    statement="In {d} dimensions the best of 16 or more trainings of four heads ends at a lower loss than the source's "
    "parity network for two important signs, the claimed optimum of that size.",
    source=THEOREM,
    printed="with 2(ν₁ + 1) heads the small network is the optimum",
    when=STARTS,
)
def lower_loss(m: Measurements[Params], *, bits: int) -> Judgement:
    ratio = _found(m, "loss_share", bits=bits, heads=4) / _found(m, "printed_loss_share", bits=bits, heads=4)
    return Values(ratio.by_seed, "trained loss/loss of the small network").below(1)


@part.claims_over(
    {"C4k": {"bits": 2, "heads": 6, "d": 4}, "C4l": {"bits": 3, "heads": 8, "d": 8}},
    statement="In {d} dimensions the best of 16 or more trainings of {heads} heads, rescaled to margin 1 on every "
    "task, has a smaller norm than the source's parity network for all signs.",
    source=THEOREM + ", with a loss below a twentieth of the rate of rare tasks before it is rescaled",
    printed="with 2(ν₂ + 1) heads the large network is the optimum, of least norm among those without loss",
    when=STARTS,
)
def lower_norm(m: Measurements[Params], *, bits: int, heads: int) -> Judgement:
    where = {"bits": bits, "heads": heads}
    names = ("loss_share", "norm", "printed_norm", "important_margin", "rare_margin")
    parts = [_found(m, name, **where) for name in names]
    return combine(_norm_at_margin_one, parts, "norm² of trained heads/of the large network, at margin 1").below(1)


def _norm_at_margin_one(of_seed: list[float]) -> float:
    """Outputs are linear in the size of the heads, so that norm² at margin 1 is norm²/margin²."""
    lost, norm, printed, *margins = of_seed
    margin = min(1.0, *margins)  # margins above 1 are no discount
    return norm / margin**2 / printed if lost < 0.05 and margin > 0 else 9.0
