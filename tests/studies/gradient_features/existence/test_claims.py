"""The control of the trade-off turns where its noise axis is none."""

from __future__ import annotations

import polars as pl

from assay import lab
from assay.lab import Measurements, discovery

study = discovery.studies()["gradient-features"]


def least_losses() -> Measurements:
    parts = [
        lab.try_arm("gradient-features", "trade-off", preset="laptop", seeds=6, axes=axes) for axes in (1, 2, 3, 4)
    ]
    return Measurements(pl.concat([part.frame for part in parts], how="diagonal"), parts[0].params)


def test_an_axis_of_the_labels_gains_and_one_of_noise_does_not():
    found = least_losses()
    assert [study.claims[name].judge(found).verdict for name in ("C8a", "C8b", "N15")] == ["holds"] * 3
    # Were the axis that is called noise the lightest one of the labels, the control would say so.
    others = found.frame.filter((pl.col("metric") != "opt_with_noise") | (pl.col("axes") != 3))
    lightest = found.rows("opt", axes=4).with_columns(pl.lit(3).alias("axes"), pl.lit("opt_with_noise").alias("metric"))
    swapped = pl.concat([others, lightest.select(others.columns).cast(dict(others.schema))])
    assert study.claims["N15"].judge(Measurements(swapped, found.params)).verdict == "fails"
