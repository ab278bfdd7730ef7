"""The sentence encoder beside the source's row."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, charts

from .arms import ADAPTER_WAYS, WAYS, Params, part
from .claims import adapter_gain, gain

PRINTED = {"linear head": "LP", "fine-tuning": "FT", "regularised": "ours"}
ADAPTERS = (("CLIP", ("imagenet", "svhn", "gtsrb")), ("MoCo v3", ("cifar10", "svhn", "gtsrb")))  # of Tables F.6, F.7


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


@part.table(
    "text-adapter",
    caption="Accuracy in percent of a linear head on frozen sentence embeddings and of adapters under a head, each "
    "with the setting that was best on tuning texts, and the regulariser's gain at the fewest labels, paired over "
    "seeds. Below it the source's adapters on frozen image encoders: 1 % of the labels, ten views.",
    shows=("C8r", "C8s", "C8t"),
)
def adapter_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for data in m.params.text_sets:
        for labels in m.params.text_labels:
            where = {"arm": "text-adapter", "data": data, "labels": labels}
            cells = {way: charts.plus_minus(m.final("accuracy", way=way, **where), 1, 100) for way in ADAPTER_WAYS}
            first = labels == m.params.text_labels[0]
            found = charts.plus_minus(adapter_gain(m, data), 1, 100) if first else ""
            rows.append({"data": data, "labels": str(labels), **cells, "gain": found})
    for encoder, sets in ADAPTERS:
        for data in sets:
            values = [
                m.paper_value(where="Tables F.6 and F.7", pretraining=encoder, data=data, labels="1%", method=how)
                for how in ("LP", "FT-10", "ours-10")
            ]
            cells = {way: f"{value:.2f}" for way, value in zip(ADAPTER_WAYS, values, strict=True) if value is not None}
            lead = f"{(values[2] or 0) - (values[1] or 0):+.2f}" if None not in values else ""
            rows.append({"data": f"paper, {encoder}, {data}", "labels": "1 %", **cells, "gain": lead})
    return pl.DataFrame(rows)
