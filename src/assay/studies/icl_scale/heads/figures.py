"""Trained parity heads beside the networks that the theorem calls optimal."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, charts

from .arms import NETWORKS, Params, part


@part.table(
    "trained-heads",
    caption="Parity heads trained on the exact loss: for each seed the best of its starts. Losses are in units of the "
    "rate of rare tasks; the source's is that of the network which its theorem calls optimal. Norms are squared, in "
    "units of 1/(4γ²). The median start with four heads ends far above the best one.",
    shows=("C4i", "C4j", "C4k", "C4l"),
)
def trained_heads(m: Measurements[Params]) -> pl.DataFrame:
    columns = {
        "loss_share": "loss/rate",
        "printed_loss_share": "the source's",
        "median_loss_share": "median start",
        "norm": "norm²",
        "printed_norm": "the source's norm²",
        "important_margin": "margin, important",
        "rare_margin": "margin, rare",
        "rank": "rank",
    }
    return pl.DataFrame(
        [
            {"d": 2 ** network["bits"], "heads": network["heads"]}
            | {words: charts.plus_minus(m.final(name, arm="heads", **network), 2) for name, words in columns.items()}
            for network in NETWORKS
        ]
    )
