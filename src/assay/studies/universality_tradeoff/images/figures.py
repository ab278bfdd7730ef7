"""Accuracy against mixture and labels, CKA heat maps, and the contrastive update."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..similarity.figures import heat_map
from .arms import PIXELS, UNTRAINED, Params, part
from .claims import accuracy, average, cka, directions, drop, few, gain, gain_slope, many

PAPER = ("CINIC-10", "+SVHN", "+GTSRB", "+ImageNet32")


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
    "image-spectra",
    caption="How many directions the features of the target's test images use, by encoder: the participation ratio "
    "(Σλ)²/Σλ² of their covariance's eigenvalues λ, with its 95 % interval over seeds, beside the number of features "
    "and the accuracy in percent of a linear head on the target at the fewest labels.",
    shows=("X5c",),
)
def spectra(m: Measurements[Params]) -> pl.DataFrame:
    shown = _short(m)
    rows = []
    for encoder in (*m.params.mixtures(), *m.params.image_sources[1:], UNTRAINED, PIXELS):
        cells = {
            "directions used": charts.plus_minus(directions(m, encoder), 1),
            "features": int(m.array("features", arm="images", encoder=encoder).shape[-1]),
            f"{few(m)} labels": charts.plus_minus(accuracy(m, encoder, few(m)), 1, 100),
        }
        rows.append({"encoder": shown[encoder], **cells})
    return pl.DataFrame(rows)


@part.table(
    "images",
    caption="Accuracy in percent on the target's test images by encoder and number of labels, with 95 % intervals over "
    "seeds, and the average over the tasks of all sets. Drop: the target's own encoder minus that of all sets, paired. "
    "Beside it the source's numbers with all labels, on CIFAR-10 and on average over four sets (Figure 7.1; between "
    "its ends Table F.5), whose mixtures have other sets.",
    shows=("C6l", "C6m", "C6n", "C6o", "X5a", "X5b", "N9", "N10"),
)
def images_table(m: Measurements[Params]) -> pl.DataFrame:
    shown = _short(m)
    rows = []
    for encoder in (*m.params.mixtures(), *m.params.image_sources[1:], UNTRAINED, PIXELS):
        cells = {f"{n} labels": charts.plus_minus(accuracy(m, encoder, n), 1, 100) for n in m.params.image_labels}
        rows.append({"encoder": shown[encoder], **cells} | _averages(m, encoder) | _printed(m, encoder))
    for arm, name in (("images", "drop, own − all sets"), ("moco", "the same with MoCo")):
        cells = {f"{n} labels": charts.plus_minus(drop(m, n, arm), 1, 100) for n in m.params.image_labels}
        rows.append({"encoder": name, **cells})
    return pl.DataFrame(rows, infer_schema_length=None)


def _printed(m: Measurements[Params], encoder: str) -> dict[str, Any]:
    """The source's target and average accuracy beside a mixture of as many sets."""
    names = m.params.mixtures()
    place = names.index(encoder) if encoder in names else len(PAPER)
    if place >= len(PAPER):
        return {}
    pretraining = PAPER[place]
    ends, between = {"where": "Figure 7.1"}, {"where": "Table F.5", "labels": "100%", "method": "LP"}
    target = m.paper_value(pretraining=pretraining, data="cifar10", **ends)
    target = m.paper_value(pretraining=pretraining, **between) if target is None else target
    average_ = m.paper_value(pretraining=pretraining, data="average of four", **ends)
    return {"paper's pretraining": pretraining, "paper, target": target, "paper, average": average_}


def _averages(m: Measurements[Params], encoder: str) -> dict[str, str]:
    ends = {few(m): "fewest", many(m): "most"}
    return {f"average, {word}": charts.plus_minus(average(m, encoder, n), 1, 100) for n, word in ends.items()}


@part.table(
    "image-update",
    caption="Contrastive update on target images, then a linear head: gain in accuracy, in points, on encoders of "
    "growing mixtures, paired over seeds, and its slope per added set; beside it the source's gains on CIFAR-10 with "
    "all labels (Table F.9), whose mixtures have other sets.",
    shows=("C8e", "C8f", "C8p", "C8q"),
)
def update_table(m: Measurements[Params]) -> pl.DataFrame:
    shown = _short(m)
    rows = []
    for i, encoder in enumerate(m.params.mixtures()):
        cells = {f"{n} labels": charts.plus_minus(gain(m, encoder, n), 1, 100) for n in m.params.image_labels}
        printed = PAPER[i] if i < len(PAPER) else "none"
        values = [m.paper_value(where="Table F.9", pretraining=printed, method=how) for how in ("LP", "update, LP")]
        paper = None if None in values else round(float(values[1] or 0) - float(values[0] or 0), 2)
        rows.append({"encoder": shown[encoder], **cells, "paper's pretraining": printed, "paper": paper})
    slopes = {f"{n} labels": charts.plus_minus(gain_slope(m, n), 1, 100) for n in m.params.image_labels}
    rows.append({"encoder": "slope per added set", **slopes})
    return pl.DataFrame(rows, infer_schema_length=None)


@part.table(
    "after-update",
    caption="Accuracy in percent of a linear head on the target's test images: on the target's own encoder, on that of "
    "all image sets before and after a contrastive update on target images, and what is still missing then, paired "
    "over seeds. Beside it the source's numbers with 1,000 labels (Tables F.10 and F.11), where all sets are ImageNet.",
    shows=("C8g",),
)
def after_update(m: Measurements[Params]) -> pl.DataFrame:
    first, last = m.params.mixtures()[0], m.params.mixtures()[-1]
    ways = {
        "target's own set": (first, "accuracy", "LP"),
        "all sets": (last, "accuracy", "LP"),
        "all sets, after the update": (last, "updated_accuracy", "update, LP"),
    }
    rows = []
    for name, (encoder, metric, method) in ways.items():
        found = {n: accuracy(m, encoder, n, metric=metric) for n in m.params.image_labels}
        cells: dict[str, Any] = {f"{n} labels": charts.plus_minus(each, 1, 100) for n, each in found.items()}
        for table, data in (("Table F.10", "Bird"), ("Table F.11", "Vehicle")):
            printed = data if encoder == first else "ImageNet"
            cells[f"paper, {data}"] = m.paper_value(where=table, pretraining=printed, method=method)
        rows.append({"encoder": name, **cells})
    missing: dict[str, Any] = {"encoder": "own − all sets after the update"}
    for n in m.params.image_labels:
        left = accuracy(m, first, n) - accuracy(m, last, n, metric="updated_accuracy")
        missing[f"{n} labels"] = charts.plus_minus(left, 1, 100)
    for data in ("Bird", "Vehicle"):
        own, after = rows[0][f"paper, {data}"], rows[2][f"paper, {data}"]
        missing[f"paper, {data}"] = None if None in (own, after) else round(own - after, 2)
    return pl.DataFrame([*rows, missing], infer_schema_length=None)


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
