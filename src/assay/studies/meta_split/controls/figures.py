"""The controls on the planted problem, side by side."""

from __future__ import annotations

import polars as pl

from assay.lab import Every, Measurements, Values, charts, pool

from ..learners import SPLITS, TV
from ..params import Planted
from .arms import part


@part.table(
    "controls",
    caption="Cases that must come out the other way if the code is right: labels that have nothing to do with the "
    "feature, a split whose halves are the same samples (test losses near log 2 = 0.693 mean that nothing is learned; "
    "means over seeds with 95 % intervals), inner steps at the rate 0 against none, with and without a split, and the "
    "weights of the engine on inner products against those of a direct computation on inputs, over their movement "
    "(from the least to the largest seed).",
    shows=("N1", "N2", "N3", "N4", "N8"),
)
def controls(m: Measurements[Planted]) -> pl.DataFrame:
    shuffled = {"arm": "control", "case": "shuffled labels", "split": TV, "adapts": True}
    leaked = {"arm": "control", "case": "leaked split", "split": "leaked", "adapts": True}
    apart = []
    for split in SPLITS:
        idle = {"arm": "control", "case": "no inner rate", "split": split}
        apart.append((m.final("test_loss", adapts=True, **idle) - m.final("test_loss", adapts=False, **idle)).map(abs))
    rows: list[tuple[str, str, Values | Every, str]] = [
        ("N1", "random labels: test loss", m.final("test_loss", **shuffled), "0.65 at least"),
        ("N8", "random labels: accuracy", m.final("test_accuracy", **shuffled), "½"),
        ("N2", "halves that are the same: test loss", m.final("test_loss", **leaked), "0.65 at least"),
        ("N3", "inner rate 0: |difference of test losses|", pool(apart, "difference"), "0"),
        ("N4", "engine: |difference of weights|/movement", m.every("deviation", arm="engines"), "0"),
    ]
    return charts.by_claim(rows)
