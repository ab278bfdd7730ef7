"""Claims about the samples that the XOR mixture takes: their exponents over the dimension, and who needs fewer."""

from __future__ import annotations

import math

import polars as pl
import torch

from assay.lab import Judgement, Measurements, Values, combine, pick

from ..problem import xor_bayes_accuracy
from ..theory import log_log_slope
from .arms import RATIO, Params, part
from .theory import samples_needed

NEEDS = {"three dimensions or more at which samples are counted": lambda p: len(p.need_dims) > 2}
# Ten points below Bayes: as near as exact kernels come with the samples that they can be solved for here.
LEVEL = xor_bayes_accuracy(100, 10 / RATIO) - 0.1


def needed(m: Measurements[Params], dim: int, **where: str) -> Values:
    """The samples with which a method comes within ten points of Bayes, seed by seed."""

    def count(rows: pl.DataFrame) -> float:
        return samples_needed(rows["samples"].cast(pl.Float64).to_list(), rows["value"].to_list(), LEVEL)

    rows = m.rows("test_accuracy", dim=dim, **where)
    return m.per_seed(rows, count, "samples to 10 points below Bayes", by="samples")


def _exponent(m: Measurements[Params], **where: str) -> Values:
    """The log-log slope of these numbers over the dimension."""
    dims = torch.tensor(m.params.need_dims, dtype=torch.float64)

    def slope(counts: list[float]) -> float:
        return log_log_slope(dims, torch.tensor(counts, dtype=torch.float64))

    found = [needed(m, dim, **where) for dim in m.params.need_dims]
    return combine(slope, found, "log-log slope of the samples needed over d")


@part.claim(
    "C5y",
    "On the XOR mixture with noise √d/2.83, the samples with which a head on gradient features comes within 10 points "
    "of Bayes grow at most like d^1.7.",
    source="XOR case: n of order d^1.5; the criterion of the design",
    when=NEEDS,
)
def network_needs(m: Measurements[Params]) -> Judgement:
    return _exponent(m, arm="xor-needs", method="gradient").at_most(1.7)


@part.claims_over(
    {
        "C5z": {"arm": "xor-needs", "method": "quadratic", "words": "a ridge head on a quadratic kernel"},
        "X31": {"arm": "xor-needs-ntk", "method": "", "words": "a ridge head on the exact tangent kernel"},
    },
    statement="On the XOR mixture with noise √d/2.83, the samples with which {words} comes within 10 points of Bayes "
    "grow at least like d^1.7.",
    source="XOR case: fixed features need d² samples; the criterion of the design",
    when=NEEDS,
)
def fixed_need(m: Measurements[Params], *, arm: str, method: str) -> Judgement:
    where = {"arm": arm} | ({"method": method} if method else {})
    return _exponent(m, **where).at_least(1.7)


@part.claim(
    "X29",
    "On the XOR mixture with noise √d/2.83, the samples that a quadratic kernel needs to come within 10 points of "
    "Bayes grow by less than a factor √d faster than those of a head on gradient features.",
    source="derived: a kernel needs n ≫ 12σ⁸/d², a neuron's first gradient n ≫ 2σ⁴/φ(c)²; with σ in proportion to √d "
    "both are of order d²",
    printed="n of order d^1.5 for the network and d² for fixed features: exponents that differ by a half",
    when=NEEDS,
)
def needs_grow_alike(m: Measurements[Params]) -> Judgement:
    kernel, network = (_exponent(m, arm="xor-needs", method=name) for name in ("quadratic", "gradient"))
    return (kernel - network).named("exponent, quadratic kernel − gradient features").below(0.5)


@part.claim(
    "X30",
    "On the XOR mixture with noise √d/2.83, a quadratic kernel needs fewer samples than a head on gradient features to "
    "come within 10 points of Bayes, at every dimension tried.",
    source="derived: 12σ⁸/d² is 0.003·d², 2σ⁴/φ(c)² is 0.5·d² for a neuron and less for a head on many",
    when=NEEDS,
)
def kernel_needs_fewer(m: Measurements[Params]) -> Judgement:
    found = [
        (needed(m, dim, arm="xor-needs", method="gradient") / needed(m, dim, arm="xor-needs", method="quadratic")).map(
            math.log2
        )
        for dim in m.params.need_dims
    ]
    worst = pick(min, found)
    return worst.named("log2 of samples, gradient features / quadratic kernel, the d whose mean is least").above(0)
