"""The sentence encoder beside the source's row."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, charts

from .arms import WAYS, Params, part
from .claims import gain

PRINTED = {"linear head": "LP", "fine-tuning": "FT", "regularised": "ours"}


@part.table(
    "text",
    caption="Accuracy in percent of a sentence encoder on few labelled texts, and the regulariser's gain over plain "
    "fine-tuning at the fewest labels, paired over seeds. Beside it the source's SimCSE row with 1 % of the labels.",
    shows=("C8m", "C8n", "C8o"),
)
def text_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for data in m.params.text_sets:
        for labels in m.params.text_labels:
            cells = {
                way: charts.plus_minus(m.final("accuracy", arm="text", data=data, labels=labels, way=way), 1, 100)
                for way in WAYS
            }
            printed = [
                m.paper_value(where="Table F.8", pretraining="SimCSE", data=data, labels="1%", method=PRINTED[way])
                for way in WAYS
            ]
            paper = " / ".join("–" if value is None else f"{value:.2f}" for value in printed)
            first = labels == m.params.text_labels[0]
            found = charts.plus_minus(gain(m, data), 1, 100) if first else ""
            rows.append({"data": data, "labels": labels, **cells, "gain": found, "paper, LP / FT / ours": paper})
    return pl.DataFrame(rows)
