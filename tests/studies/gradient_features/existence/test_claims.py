"""The control of the trade-off turns where its noise axis is none."""

from __future__ import annotations

import polars as pl

from assay import lab
from assay.lab import Measurements, discovery

study = discovery.studies()["gradient-features"]


def least_losses() -> Measurements:
    parts = [
        lab.try_arm("gradient-features", "trade-off", preset="laptop", seeds=3, pairs=pairs) for pairs in (1, 2, 3)
    ]
    return Measurements(pl.concat([part.frame for part in parts], how="diagonal"), parts[0].params)


def verdicts(found: Measurements) -> dict[str, str]:
    return {name: study.claims[name].judge(found).verdict for name in ("C8a", "C8b", "N15", "N17")}


def with_losses(found: Measurements, metric: str, pairs: int, values: pl.DataFrame) -> Measurements:
    """The measurements with other losses of one network."""
    here = (pl.col("metric") == metric) & (pl.col("pairs") == pairs)
    others = found.frame.filter(~here)
    own = values.with_columns(pl.lit(pairs).alias("pairs"), pl.lit(metric).alias("metric"))
    return Measurements(pl.concat([others, own.select(others.columns).cast(dict(others.schema))]), found.params)


def test_a_pair_of_axes_gains_and_noise_does_not():
    found = least_losses()
    assert verdicts(found) == dict.fromkeys(("C8a", "C8b", "N15", "N17"), "holds")
    # Were the axes that are called noise the lightest pair, the control would say so.
    assert verdicts(with_losses(found, "opt_with_noise", 2, found.rows("opt", pairs=3)))["N15"] == "fails"
    # A network that sees one pair and loses as little as one that sees all has looked at what it may not see.
    peeking = verdicts(with_losses(found, "opt", 1, found.rows("opt", pairs=3)))
    assert peeking["N17"] == "fails"
    # Nor is a fall shown by a network that gains nothing from its second pair.
    assert verdicts(with_losses(found, "opt", 2, found.rows("opt", pairs=1)))["C8a"] != "holds"
