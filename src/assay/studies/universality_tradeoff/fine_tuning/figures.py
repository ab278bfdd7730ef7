"""Linear head, fine-tuning and regularised fine-tuning by mixture."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import WAYS, Params, part
from .claims import accuracy, gain

PAPER = ("CINIC-10", "+SVHN", "+GTSRB", "+ImageNet32")
PRINTED = {"linear head": "LP", "fine-tuning": "FT", "regularised": "ours"}


@part.figure(
    "fine-tuning",
    caption="Target accuracy of a linear head, of fine-tuning and of fine-tuning with a contrastive regulariser, on "
    "encoders of growing mixtures of image sets (mean and 95 % interval over seeds; all three get the same labels).",
    shows=("C8h", "C8i", "C8j", "C8k"),
)
def fine_tuning(m: Measurements[Params]) -> Any:
    sources, names = m.params.image_sources, m.params.mixtures()
    shown = {name: (sources[0] if i == 0 else f"+ {sources[i]}") for i, name in enumerate(names)}
    rows = m.rows("accuracy", arm="fine-tuning")
    frame = charts.summarise(rows, "encoder", "way", "labels").with_columns(
        name=pl.col("encoder").replace_strict(shown), part=pl.format("{} labels", "labels")
    )
    base = alt.Chart(frame, width=260, height=240).encode(
        x=alt.X("name:N", sort=list(shown.values()), title=None, axis=alt.Axis(labelAngle=-30)),
        xOffset=alt.XOffset("way:N", sort=list(WAYS)),
        color=alt.Color("way:N", title=None, sort=list(WAYS)),
    )
    bars = base.mark_rule().encode(y=alt.Y("low:Q", title="accuracy"), y2="high:Q")
    points = base.mark_point(filled=True, size=55).encode(
        y=alt.Y("mean:Q", title="accuracy", scale=alt.Scale(zero=False))
    )
    return alt.layer(bars, points).facet(
        column=alt.Column("part:N", title=None, sort=[f"{n} labels" for n in m.params.tuned_labels])
    )


@part.table(
    "fine-tuning",
    caption="Target accuracy in percent of the three ways, and what the regulariser gains over plain fine-tuning in "
    "points, paired over seeds. Beside it the source's numbers (Table F.5: CIFAR-10, ResNet18, 1 % of the labels in "
    "the first and 100 % in the other rows of each encoder): other sets, larger networks.",
    shows=("C8h", "C8i", "C8j", "C8k", "C8l"),
)
def fine_tuning_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for i, encoder in enumerate(m.params.mixtures()):
        for labels in m.params.tuned_labels:
            cells = {way: charts.plus_minus(accuracy(m, encoder, way, labels), 1, 100) for way in WAYS}
            share = "1%" if labels == m.params.tuned_labels[0] else "100%"
            printed = {
                f"paper, {PRINTED[way]} ({share})": m.paper_value(
                    where="Table F.5",
                    pretraining=PAPER[i] if i < len(PAPER) else "none",
                    labels=share,
                    method=PRINTED[way],
                )
                for way in WAYS
            }
            paper = " / ".join("–" if value is None else f"{value:.2f}" for value in printed.values())
            rows.append(
                {"encoder": encoder, "labels": labels, **cells}
                | {"gain": charts.plus_minus(gain(m, encoder, labels), 1, 100)}
                | {"paper's labels": share, "paper, LP / FT / ours": paper}
            )
    return pl.DataFrame(rows)


@part.table(
    "ft-tuning",
    caption="What rates, weight decay and λ were chosen by (arm ft-tuning, run by request): accuracy in percent on "
    "target images kept from training, on tuning seeds, mean over the first and the last mixture and all numbers of "
    "labels.",
    shows=("N11", "N12"),
)
def tuning_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = m.rows("validation_accuracy", arm="ft-tuning")
    frame = rows.group_by("way", "setting_tried", "seed", maintain_order=True).agg(pl.col("value").mean())
    found = charts.summarise(frame, "way", "setting_tried")
    return found.select("way", tried="setting_tried", accuracy=(100 * pl.col("mean")).round(1), seeds="seeds")
