"""The filters of a ResNet by stage: whether their early gradients agree, and when they turn."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part

_COLUMNS = {
    "smallest_chunk_cosine": "smallest cosine of early gradients",
    "early_turn": "turn, first seventh",
    "late_turn": "turn, later",
}


@part.table(
    "resnet",
    caption="A ResNet on two image classes with true and with shuffled labels, by stage from the input to the output: "
    "how far the gradients of early training agree (mean over the filters of the cosine between the gradients of two "
    "chunks of it, the smallest of all pairs), and how far the filters turn in the first seventh of training and after "
    "it (1 − cos, mean over the filters). Mean and half of the 95 % interval over seeds.",
    shows=("C8h", "C8i", "N7"),
)
def resnet(m: Measurements[Params]) -> pl.DataFrame:
    found = m.rows("smallest_chunk_cosine", arm="resnet").select("labels", "stage")
    rows = []
    for labels, stage in found.unique(maintain_order=True).iter_rows():
        where = {"arm": "resnet", "labels": labels, "stage": stage}
        cells = {words: charts.plus_minus(m.final(metric, **where)) for metric, words in _COLUMNS.items()}
        rows.append({"labels": labels, "stage": int(stage), **cells})
    return pl.DataFrame(rows)
