"""Linear head, fine-tuning and regularised fine-tuning by mixture."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..images.arms import PIXELS, UNTRAINED
from ..images.params import training_images
from .arms import WAYS, Params, part
from .claims import accuracy, beside, gain, separated

PAPER = ("CINIC-10", "+SVHN", "+GTSRB", "+ImageNet32")
PRINTED = {"linear head": "LP", "fine-tuning": "FT", "regularised": "ours"}
SHARES = {"1%": 0.01, "5%": 0.05, "10%": 0.1, "20%": 0.2, "100%": 1.0}  # of CIFAR-10's labels, in Table F.5


def printed_share(m: Measurements[Params], labels: int) -> str:
    """The share of the labels in the source's table that is nearest to that of these labels, by its logarithm."""
    known = training_images(m.params.image_sources[0])
    share = labels / min(m.params.image_limit, known or m.params.image_limit)
    return min(SHARES, key=lambda name: abs(math.log(share / SHARES[name])))


@part.figure(
    "fine-tuning",
    caption="Target accuracy of a linear head, of fine-tuning and of fine-tuning with a contrastive regulariser, on "
    "encoders of growing mixtures of image sets, and beside them from the untrained encoder and, for the linear head, "
    "on raw pixels (mean and 95 % interval over seeds; all get the same labels).",
    shows=("C8h", "C8i", "C8j", "C8k", "X5d"),
)
def fine_tuning(m: Measurements[Params]) -> Any:
    sources, names = m.params.image_sources, m.params.mixtures()
    shown = {name: (sources[0] if i == 0 else f"+ {sources[i]}") for i, name in enumerate(names)}
    shown |= {UNTRAINED: UNTRAINED, PIXELS: PIXELS}
    rows = pl.concat([m.rows("accuracy", arm=arm) for arm in ("fine-tuning", "fine-tuning-beside")], how="diagonal")
    frame = charts.summarise(rows, "encoder", "way", "labels").with_columns(
        name=pl.col("encoder").replace_strict(shown), part=pl.format("{} labels", "labels")
    )
    base = alt.Chart(frame, width=290, height=240).encode(
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
    "points, paired over seeds; raw pixels and the untrained encoder below. Beside it the source's numbers (Table F.5: "
    "CIFAR-10, ResNet18, at the printed share of the labels that is nearest to the share here): other sets, larger "
    "networks.",
    shows=("C8h", "C8i", "C8j", "C8k", "X5d"),
)
def fine_tuning_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for i, encoder in enumerate(m.params.mixtures()):
        for labels in m.params.tuned_labels:
            cells = {way: charts.plus_minus(accuracy(m, encoder, way, labels), 1, 100) for way in WAYS}
            share = printed_share(m, labels)
            printed = _printed(m, PAPER[i] if i < len(PAPER) else "none", share)
            rows.append(
                {"encoder": encoder, "labels": labels, **cells}
                | {"gain": charts.plus_minus(gain(m, encoder, labels), 1, 100)}
                | {"paper's labels": share, "paper, LP / FT / ours": printed}
            )
    for encoder, ways in ((UNTRAINED, WAYS), (PIXELS, WAYS[:1])):
        for labels in m.params.tuned_labels:
            cells = {way: charts.plus_minus(beside(m, encoder, way, labels), 1, 100) for way in ways}
            rows.append({"encoder": encoder, "labels": labels, **cells})
    return pl.DataFrame(rows, infer_schema_length=None)


def _printed(m: Measurements[Params], pretraining: str, share: str) -> str:
    where = {"where": "Table F.5", "pretraining": pretraining, "labels": share}
    values = [m.paper_value(method=PRINTED[way], **where) for way in WAYS]
    return " / ".join("–" if value is None else f"{value:.2f}" for value in values)


@part.table(
    "separation",
    caption="How far apart classes are in the encoder's features of the target's test images, by the variance between "
    "class means over that within classes of features of length 1: as the encoder is under a linear head, after "
    "fine-tuning and after regularised fine-tuning, and the regulariser's difference to plain fine-tuning, paired over "
    "seeds. The source shows t-SNE pictures instead (Figure F.8), on which classes are tightest with its regulariser.",
    shows=("C8l",),
)
def separation_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for encoder in m.params.mixtures():
        for labels in m.params.tuned_labels:
            found = {way: separated(m, encoder, way, labels) for way in WAYS}
            lead = found["regularised"] - found["fine-tuning"]
            cells = {name: charts.plus_minus(each, 2) for name, each in (found | {"ours − plain": lead}).items()}
            rows.append({"encoder": encoder, "labels": labels, **cells})
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
