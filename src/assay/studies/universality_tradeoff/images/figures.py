"""Accuracy against mixture and labels, CKA heat maps, and the contrastive update."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..similarity.figures import heat_map
from .arms import PIXELS, UNTRAINED, Params, part
from .claims import accuracy, average, cka, drop, few, gain, gain_slope, many

PAPER_UPDATE = ("CINIC-10", "+SVHN", "+GTSRB", "+ImageNet32")


@part.figure(
    "tradeoff",
    caption="Linear heads on encoders of growing mixtures of image sets, one line per number of labels (mean and 95 % "
    "interval over seeds). Left: accuracy on the target, the first set; right: average over the tasks of all sets. Raw "
    "pixels and the untrained encoder stand beside them.",
    shows=("C6l", "C6m", "C6n", "X5a", "X5b", "N9"),
)
def tradeoff(m: Measurements[Params]) -> Any:
    order = [*m.params.mixtures(), UNTRAINED, PIXELS]
    shown = _short(m)
    rows = m.rows("accuracy", arm="images", encoder=order)
    target = charts.summarise(rows.filter(task=m.params.image_sources[0]), "encoder", "labels")
    both = rows.group_by("encoder", "labels", "seed").agg(pl.col("value").mean())
    parts = []
    for frame, title in (
        (target, f"target: {m.params.image_sources[0]}"),
        (charts.summarise(both, "encoder", "labels"), "average over tasks"),
    ):
        frame = frame.with_columns(name=pl.col("encoder").replace_strict(shown), part=pl.format("{} labels", "labels"))
        names = [shown[name] for name in order]
        base = alt.Chart(frame, width=300, height=260, title=title).encode(
            x=alt.X("name:N", sort=names, title=None, axis=alt.Axis(labelAngle=-40, labelLimit=200)),
            color=alt.Color("part:N", title=None, sort=[f"{n} labels" for n in m.params.image_labels]),
        )
        y = alt.Y("mean:Q", title="accuracy", scale=alt.Scale(zero=False))
        mixed = alt.FieldOneOfPredicate(field="encoder", oneOf=list(m.params.mixtures()))
        parts.append(
            alt.layer(
                base.mark_rule().encode(y=alt.Y("low:Q", title="accuracy"), y2="high:Q"),
                base.mark_point(filled=True, size=50).encode(y=y),
                base.transform_filter(mixed).mark_line().encode(y=y),
            )
        )
    return alt.hconcat(*parts)


def _short(m: Measurements[Params]) -> dict[str, str]:
    """Mixtures as the sets that are added."""
    sources, names = m.params.image_sources, m.params.mixtures()
    grown = {name: (sources[0] if i == 0 else f"+ {sources[i]}") for i, name in enumerate(names)}
    return {**{name: f"{name} alone" for name in sources[1:]}, **grown, UNTRAINED: UNTRAINED, PIXELS: PIXELS}


@part.figure(
    "image-cka",
    caption="Similarity (unbiased linear CKA, mean over seeds) of encoders on the target's test images. Left: encoders "
    "of single image sets and of all together; right: of growing mixtures.",
    shows=("C7e", "C7f"),
)
def similarity(m: Measurements[Params]) -> Any:
    shown = _short(m)
    maps = []
    for title, names in (
        ("single sets and all together", (*m.params.image_sources, m.params.mixtures()[-1])),
        ("growing mixtures", m.params.mixtures()),
    ):
        words = {name: "all sets" if name == m.params.mixtures()[-1] else name for name in names}
        words = words if title.startswith("single") else {name: shown[name] for name in names}
        rows = []
        for i, row in enumerate(names):
            for j, column in enumerate(names):
                where = [{"arm": "images", "encoder": each} for each in (row, column)]
                value = 1.0 if i == j else float(cka(m, where[0], where[1], "").array.mean())
                rows.append({"row": words[row], "column": words[column], "value": value})
        maps.append(heat_map(pl.DataFrame(rows), list(words.values()), title))
    return alt.hconcat(*maps)


@part.table(
    "images",
    caption="Accuracy in percent on the target's test images by encoder and number of labels, with 95 % intervals over "
    "seeds, and the average over the tasks of all sets. Drop: the target's own encoder minus that of all sets, paired.",
    shows=("C6l", "C6m", "C6n", "C6o", "X5a", "X5b", "N9", "N10"),
)
def images_table(m: Measurements[Params]) -> pl.DataFrame:
    shown = _short(m)
    rows = []
    for encoder in (*m.params.mixtures(), *m.params.image_sources[1:], UNTRAINED, PIXELS):
        cells = {f"{n} labels": charts.plus_minus(accuracy(m, encoder, n), 1, 100) for n in m.params.image_labels}
        rows.append({"encoder": shown[encoder], **cells} | _averages(m, encoder))
    for arm, name in (("images", "drop, own − all sets"), ("moco", "the same with MoCo")):
        cells = {f"{n} labels": charts.plus_minus(drop(m, n, arm), 1, 100) for n in m.params.image_labels}
        rows.append({"encoder": name, **cells})
    return pl.DataFrame(rows, infer_schema_length=None)


def _averages(m: Measurements[Params], encoder: str) -> dict[str, str]:
    ends = {few(m): "fewest", many(m): "most"}
    return {f"average, {word}": charts.plus_minus(average(m, encoder, n), 1, 100) for n, word in ends.items()}


@part.table(
    "image-update",
    caption="Contrastive update on target images, then a linear head: gain in accuracy, in points, on encoders of "
    "growing mixtures, paired over seeds, and its slope per added set; beside it the source's gains on CIFAR-10 with "
    "all labels (Table F.9), whose mixtures have other sets.",
    shows=("C8e", "C8f", "C8g", "C8p", "C8q"),
)
def update_table(m: Measurements[Params]) -> pl.DataFrame:
    shown = _short(m)
    rows = []
    for i, encoder in enumerate(m.params.mixtures()):
        cells = {f"{n} labels": charts.plus_minus(gain(m, encoder, n), 1, 100) for n in m.params.image_labels}
        printed = PAPER_UPDATE[i] if i < len(PAPER_UPDATE) else "none"
        values = [m.paper_value(where="Table F.9", pretraining=printed, method=how) for how in ("LP", "update, LP")]
        paper = None if None in values else round(float(values[1] or 0) - float(values[0] or 0), 2)
        rows.append({"encoder": shown[encoder], **cells, "paper's pretraining": printed, "paper": paper})
    slopes = {f"{n} labels": charts.plus_minus(gain_slope(m, n), 1, 100) for n in m.params.image_labels}
    rows.append({"encoder": "slope per added set", **slopes})
    return pl.DataFrame(rows, infer_schema_length=None)


@part.table(
    "image-decay",
    caption="Encoders of the target's set with different weight decay: similarity (CKA) to the one without, and "
    "accuracy in percent of a linear head at the fewest and the most labels.",
    shows=("C7g",),
)
def decay_table(m: Measurements[Params]) -> pl.DataFrame:
    first = {"arm": "image-decay", "decay": m.params.image_decays[0]}
    rows = []
    for decay in m.params.image_decays:
        where = {"arm": "image-decay", "decay": decay}
        same = decay == m.params.image_decays[0]
        task = m.params.image_sources[0]
        heads = {
            f"{n} labels": charts.plus_minus(m.final("accuracy", task=task, labels=n, **where), 1, 100)
            for n in (few(m), many(m))
        }
        similar = "1" if same else charts.plus_minus(cka(m, first, where, "CKA"))
        rows.append({"weight decay": decay, "CKA": similar, **heads})
    return pl.DataFrame(rows)


@part.table(
    "scarce-images",
    caption="Pretraining with a part of the target's unlabelled images (arm scarce, run by request) and all of the "
    "other sets': accuracy in percent of a linear head on the target at the fewest labels on the target's own encoder "
    "and on that of all sets, and what the target loses by the others, paired over seeds, with 95 % intervals.",
    shows=("C6p",),
)
def scarce_images(m: Measurements[Params]) -> pl.DataFrame:
    first, last = m.params.mixtures()[0], m.params.mixtures()[-1]
    conditions: dict[str, dict[str, Any]] = {"all": {"arm": "images"}}
    for share in m.rows("accuracy", arm="scarce")["share"].unique().sort(descending=True):
        conditions[f"{share:.0%}"] = {"arm": "scarce", "share": share}
    rows = []
    for name, where in conditions.items():
        own, union = (accuracy(m, encoder, few(m), **where) for encoder in (first, last))
        cells = {"own set": own, "all sets": union, "loss": own - union}
        rows.append({"target's images": name} | {key: charts.plus_minus(each, 1, 100) for key, each in cells.items()})
    return pl.DataFrame(rows)


@part.table(
    "other-classes",
    caption="Pretraining on the target's set with a tenth of the last set's images, all of which come from so many of "
    "its classes (arm classes, run by request): accuracy in percent of a linear head on the target at the fewest "
    "labels, and the difference to one class, paired over seeds, with 95 % intervals.",
    shows=("C6q",),
)
def other_classes(m: Measurements[Params]) -> pl.DataFrame:
    where = {"arm": "classes", "task": m.params.image_sources[0], "labels": few(m)}
    counts = m.rows("accuracy", **where)["classes"].unique().sort()
    found = {count: m.final("accuracy", classes=count, **where) for count in counts}
    rows = []
    for count, values in found.items():
        more = "" if count == counts[0] else charts.plus_minus(values - found[counts[0]], 1, 100)
        rows.append({"classes": count, "accuracy": charts.plus_minus(values, 1, 100), "− one class": more})
    return pl.DataFrame(rows)
