"""The claims on trained parity heads: training leaves the networks that the theorem calls optimal (C4)."""

from __future__ import annotations

from typing import Any

from assay.lab import Judgement, Measurements, Values, combine

from .arms import Params, part

THEOREM = "Theorem 5.5.1, at half of the largest rate of rare tasks that it allows; the best of many starts"


def _found(m: Measurements[Params], metric: str, **network: Any) -> Values:
    return m.final(metric, arm="heads", **network)


@part.claims_over(
    {"C4i": {"bits": 2, "d": 4}, "C4j": {"bits": 3, "d": 8}},
    statement="Four heads trained on parity in {d} dimensions end at a lower loss than the small network, the claimed "
    "optimum of that size.",
    source=THEOREM,
    printed="with 2(ν₁ + 1) heads the small network is the optimum",
)
def lower_loss(m: Measurements[Params], *, bits: int) -> Judgement:
    ratio = _found(m, "loss_share", bits=bits, heads=4) / _found(m, "printed_loss_share", bits=bits, heads=4)
    return Values(ratio.by_seed, "trained loss/loss of the small network").below(1)


@part.claims_over(
    {"C4k": {"bits": 2, "heads": 6, "d": 4}, "C4l": {"bits": 3, "heads": 8, "d": 8}},
    statement="The {heads} heads of the large network's size, trained on parity in {d} dimensions, solve all tasks "
    "with a smaller norm than the large network.",
    source=THEOREM + "; solved: a loss below a twentieth of the rate of rare tasks",
    printed="with 2(ν₂ + 1) heads the large network is the optimum, of least norm among those without loss",
)
def lower_norm(m: Measurements[Params], *, bits: int, heads: int) -> Judgement:
    where = {"bits": bits, "heads": heads}
    parts = [_found(m, name, **where) for name in ("loss_share", "norm", "printed_norm")]

    def share(of_seed: list[float]) -> float:
        lost, norm, printed = of_seed
        return norm / printed if lost < 0.05 else 9.0

    return combine(share, parts, "norm² of trained heads/of the large network").below(1)
