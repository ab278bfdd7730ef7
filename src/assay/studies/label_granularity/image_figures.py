"""Figures and tables of the experiments on real images, with the source's numbers beside ours."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from .image_arms import GRAINS
from .study import study

_WORDS = {
    "tree": "class tree",
    "clusters per class": "clusters per superclass",
    "clusters of all": "clusters of all",
    "random": "random",
    "random within": "random within superclasses",
    "rebalanced": "rebalanced clusters",
    "one per sample": "one label per image",
}
# A little to the side, so that intervals at equal numbers of classes do not hide one another.
_APART = {name: 1 + 0.06 * (i - 2) for i, name in enumerate(_WORDS.values())}
_TREE = ("coarse", "groups", "classes")


def granularity_frame(m: Measurements, single: str, many: str) -> pl.DataFrame:
    """Error and number of classes of every label function, means over seeds with intervals."""
    rows = []
    for arm in (single, many):
        found = m.rows(["error", "classes"], arm=arm)
        keys = ["scheme", "clusters"] if arm == many else ["scheme"]
        for key, part in found.group_by(keys, maintain_order=True):
            scheme = str(key[0])
            if scheme == "one pass":
                continue
            summary = charts.summarise(part.filter(metric="error"), "scheme").row(0, named=True)
            classes = float(part.filter(metric="classes")["value"].mean())  # type: ignore[arg-type]
            name = _WORDS["tree" if scheme in _TREE else scheme]
            rows.append(
                {
                    "labels": name,
                    "classes": classes,
                    "place": classes * _APART[name],
                    **{c: 100 * summary[c] for c in ("mean", "low", "high")},
                }
            )
    return pl.DataFrame(rows).sort("labels", "classes")


def _granularity_chart(m: Measurements, single: str, many: str) -> alt.LayerChart:
    frame = granularity_frame(m, single, many)
    base = alt.Chart(frame, width=480, height=320).encode(
        x=alt.X("place:Q", title="classes in pretraining", scale=alt.Scale(type="log")),
        color=alt.Color("labels:N", title=None, sort=list(_WORDS.values()), scale=alt.Scale(scheme="tableau10")),
    )
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.7).encode(
        y=alt.Y("low:Q", title="error on the superclasses, %", scale=alt.Scale(zero=False)), y2="high:Q"
    )
    lines = base.mark_line(opacity=0.8).encode(y="mean:Q")
    dots = base.mark_point(filled=True, size=60).encode(
        y="mean:Q", tooltip=["labels:N", "classes:Q", alt.Tooltip("mean:Q", format=".2f")]
    )
    levels = {
        "one pass": 100 * float(m.final("error", arm=single, scheme="one pass").array.mean()),
        "retraining": 100 * float(m.final("error", arm=single, scheme="coarse").array.mean()),
    }
    return alt.layer(bars, lines, dots, charts.rules(levels, width=480))


@study.figure(
    "granularity",
    caption="The granularity curve on real images: error on the two superclasses after pretraining with every label "
    "function and finetuning, against the number of pretraining classes (mean and interval over seeds). "
    "Dashed: one pass over the superclass labels, and retraining on them. The source's U is shallow, too: "
    "5.25 % at 11 classes, 4.79 % at 1,103 and 4.84 % at 6,485.",
)
def granularity(m: Measurements) -> alt.LayerChart:
    return _granularity_chart(m, "hierarchies", "clusters")


@study.figure(
    "resnet-granularity",
    caption="The same curve with a ResNet (an optional arm). Clusters are of features that learned to tell rotations.",
)
def resnet_granularity(m: Measurements) -> alt.LayerChart:
    return _granularity_chart(m, "resnet-hierarchies", "resnet-clusters")


@study.figure(
    "cross",
    caption="Accuracy on four classes that pretraining never saw, against the granularity of the labels of six others"
    " (2 and 3: groups of classes; 6: the classes; 12 and 24: clusters of each class). Finetuning and linear "
    "probe.",
)
def cross(m: Measurements) -> alt.LayerChart:
    frame = charts.summarise(m.rows("accuracy", arm="cross"), "readout", "grain")
    frame = frame.with_columns([(100 * pl.col(c)).alias(c) for c in ("mean", "low", "high")])
    base = alt.Chart(frame, width=400, height=270).encode(
        x=alt.X("grain:Q", title="classes in pretraining", scale=alt.Scale(type="log", base=2)),
        color=alt.Color("readout:N", title=None),
    )
    y = alt.Y("low:Q", title="accuracy, %", scale=alt.Scale(zero=False))
    return alt.layer(
        base.mark_area(opacity=0.18).encode(y=y, y2="high:Q"), base.mark_line(point=True).encode(y="mean:Q")
    )


@study.figure(
    "cluster-sizes",
    caption="Images per cluster after rebalancing, all seeds: each superclass keeps the largest number of clusters "
    "whose smallest has more images than the threshold (dashed).",
)
def cluster_sizes(m: Measurements) -> alt.LayerChart:
    sizes = m.array("cluster_sizes", arm="hierarchies", scheme="rebalanced")
    frame = pl.DataFrame({"size": sizes[sizes > 0].astype(float)})
    width = max(5, 5 * math.ceil(float(np.ptp(frame["size"].to_numpy())) / 100))
    bars = (
        alt.Chart(frame, width=400, height=230)
        .mark_bar()
        .encode(
            x=alt.X("size:Q", bin=alt.Bin(step=width), title="images in a cluster"),
            y=alt.Y("count()", title="clusters"),
        )
    )
    least = alt.Chart(pl.DataFrame({"size": [m.params.least_samples]}))
    return bars + least.mark_rule(strokeDash=[3, 3], color="#777").encode(x="size:Q")


def _paper(m: Measurements, where: str, scheme: str, classes: int | None = None) -> float | None:
    """The source's number, or the mean over its granularities."""
    rows = m.paper.filter(pl.col("where") == where, pl.col("scheme") == scheme)
    rows = rows if classes is None else rows.filter(pl.col("classes") == classes)
    return round(float(rows["value"].mean()), 2) if len(rows) else None  # type: ignore[arg-type]


_SOURCE = {  # our label function: (the source's table, its name there, its number of classes)
    "one pass": ("Table 1", "one pass", 11),
    "coarse": ("Table 1", "manual", 11),
    "groups": ("Table 1", "manual", 51),
    "classes": ("Table 1", "manual", 1103),
    "rebalanced": ("Table 1", "rebalanced", None),
    "one per sample": ("Table 1", "random", 500000),
    "clusters per class": ("Table 1", "clusters per class", None),
    "clusters of all": ("Table 1", "clusters of all", None),
    "random": ("Table 1", "random", None),
}


@study.table(
    "granularity",
    caption="Every label function on images: classes, error in %, what the granularity report says of the labels "
    "(purity, smallest class, how far neighbours agree beyond chance) and the finetuning rate chosen on "
    "validation images. Beside it the source's error on iNaturalist with a ResNet-34 (its mean over "
    "granularities for clusters and random labels).",
)
def granularity_table(m: Measurements) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for arm in ("hierarchies", "clusters"):
        keys = ["scheme"] if arm == "hierarchies" else ["scheme", "clusters"]
        for key, part in m.rows("error", arm=arm).group_by(keys, maintain_order=True):
            where = {"arm": arm, **dict(zip(keys, key, strict=True))}
            row: dict[str, Any] = {"labels": "retraining" if key[0] == "coarse" else key[0]}
            row["classes"] = round(float(m.final("classes", **where).array.mean()))
            row["error %"] = charts.plus_minus(m.final("error", **where), 2, 100)
            for metric, digits in (("purity", 3), ("smallest", 1), ("lift", 2)):
                known = key[0] != "one pass"
                row[metric] = round(float(m.final(metric, **where).array.mean()), digits) if known else None
            row["rate"] = round(float(m.final("rate", **where).array.mean()), 3)
            row["source %"] = _paper(m, *_SOURCE[str(key[0])]) if key[0] in _SOURCE else None
            rows.append({**row, "seeds": part["seed"].n_unique()})
    return pl.DataFrame(rows, infer_schema_length=None)


@study.table(
    "other-tables",
    caption="The other tables of the source in small, errors in %: checkpoints of the backbone, a larger network, "
    "ways to read out (the source prints accuracies, shown as errors), few images per class, and classes "
    "never seen (the source: ImageNet-21k at 38 to 21,843 classes to ImageNet-1k). Sizes differ; the order "
    "within a block is what compares.",
)
def other_tables(m: Measurements) -> pl.DataFrame:
    rows = []

    def add(table: str, what: str, source: float | None, **where: Any) -> None:
        rows.append(
            {
                "table": table,
                "what": what,
                "error %": charts.plus_minus(m.final("error", **where), 2, 100),
                "source %": source,
            }
        )

    for n in (50, 70, 90):
        for scheme, classes in (("groups", 51), ("classes", 1103)):
            source = _paper(m, "Table 2", f"manual after {n} epochs", classes)
            add("Table 2", f"{scheme}, checkpoint {n} of 90", source, arm="checkpoints", scheme=scheme, epochs=n)
    for scheme, (name, classes) in {"coarse": ("manual", 11), "groups": ("manual", 51), "classes": ("manual", 1103),
                                    "random": ("random", None)}.items():  # fmt: skip
        add(
            "Table 3",
            f"twice as wide, {scheme}",
            _paper(m, "Table 3", name, classes),
            arm="larger-network",
            scheme=scheme,
        )
    for scheme in ("classes", "coarse"):
        for readout in ("finetune", "short finetune", "probe", "max"):
            printed = _paper(m, "Table 5", f"{scheme}: {readout} batch 4096")
            source = round(100 - printed, 2) if printed else None
            add("Table 5", f"{scheme}, {readout}", source, arm="read-outs", scheme=scheme, readout=readout)
    for scheme in ("one pass", "coarse"):
        add("Table 6", f"few images, {scheme}", _paper(m, "Table 6", scheme), arm="few-samples", scheme=scheme)
    for scheme, name in (("clusters per class", "clusters per class (ViT-L CLIP)"), ("random within", "random within")):
        for n in (2, 4, 8):
            source = _paper(m, "Table 6", name, 1000 * n)
            add("Table 6", f"few images, {scheme}, {n} per class", source, arm="few-samples", scheme=scheme, splits=n)
    for readout, table in (("finetune", "Table 7"), ("probe", "Table 8")):
        for grain, classes in zip(GRAINS, (38, 160, 519, 5995, 21843), strict=True):
            source = round(100 - float(_paper(m, table, readout, classes) or 0), 2)
            add(table, f"{grain} classes, {readout}", source, arm="cross", grain=grain, readout=readout)
    return pl.DataFrame(rows, infer_schema_length=None)
