"""The granularity curve on real images, its table with the source's numbers beside ours, and rebalanced clusters."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part

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
        for key, own in found.group_by(keys, maintain_order=True):
            scheme = str(key[0])
            if scheme == "one pass":
                continue
            summary = charts.summarise(own.filter(metric="error"), "scheme").row(0, named=True)
            classes = float(own.filter(metric="classes").select(pl.col("value").mean()).item())
            name = _WORDS["tree" if scheme in _TREE else scheme]
            row = {"labels": name, "classes": classes, "place": classes * _APART[name]}
            rows.append({**row, **{c: 100 * summary[c] for c in ("mean", "low", "high")}})
    return pl.DataFrame(rows).sort("labels", "classes")


def granularity_chart(m: Measurements, single: str, many: str) -> alt.LayerChart:
    """The curve over the arms with one granularity and with several, and both baselines."""
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
    return alt.LayerChart(layer=[bars, lines, dots, charts.rules(levels, width=480)])


@part.figure(
    "granularity",
    caption="The granularity curve on real images: error on the two superclasses after pretraining with every label "
    "function and finetuning, against the number of pretraining classes (mean and interval over seeds). Dashed: one "
    "pass over the superclass labels, and retraining on them. The source's U is shallow, too: 5.25 % at 11 classes, "
    "4.79 % at 1,103 and 4.84 % at 6,485.",
    shows=("C9a", "C9b", "C9c", "C9d", "C9e", "C9f", "C9g", "C9h", "C11a"),
)
def granularity(m: Measurements[Params]) -> alt.LayerChart:
    return granularity_chart(m, "hierarchies", "clusters")


@part.figure(
    "cluster-sizes",
    caption="Images per cluster after rebalancing, all seeds: each superclass keeps the largest number of clusters "
    "whose smallest has more images than the threshold (dashed).",
)
def cluster_sizes(m: Measurements[Params]) -> alt.LayerChart:
    sizes = m.array("cluster_sizes", arm="hierarchies", scheme="rebalanced")
    frame = pl.DataFrame({"size": sizes[sizes > 0].astype(float)})
    width = max(5, 5 * math.ceil(float(np.ptp(frame["size"].to_numpy())) / 100))
    x = alt.X("size:Q", bin=alt.Bin(step=width), title="images in a cluster")
    bars = alt.Chart(frame, width=400, height=230).mark_bar().encode(x=x, y=alt.Y("count()", title="clusters"))
    least = alt.Chart(pl.DataFrame({"size": [m.params.least_samples]}))
    return alt.LayerChart(layer=[bars, least.mark_rule(strokeDash=[3, 3], color="#777").encode(x="size:Q")])


def printed(m: Measurements, where: str, scheme: str, classes: int | None = None) -> float | None:
    """The source's number, or the mean over its granularities."""
    rows = m.paper.filter(pl.col("where") == where, pl.col("scheme") == scheme)
    rows = rows if classes is None else rows.filter(pl.col("classes") == classes)
    return round(float(rows.select(pl.col("value").mean()).item()), 2) if len(rows) else None


_SOURCE: dict[Any, tuple[str, str, int | None]] = {
    # our label function: (the source's table, its name there, its number of classes)
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


@part.table(
    "granularity",
    caption="Every label function on images: classes, error in %, what the granularity report says of the labels "
    "(purity, smallest class, how far neighbours agree beyond chance) and the finetuning rate chosen on validation "
    "images. Beside it the source's error on iNaturalist with a ResNet-34 (its mean over granularities for clusters "
    "and random labels).",
    shows=("C9a", "C9b", "C9c", "C9d", "C9e", "C9h", "C11a"),
)
def granularity_table(m: Measurements[Params]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for arm in ("hierarchies", "clusters"):
        keys = ["scheme"] if arm == "hierarchies" else ["scheme", "clusters"]
        for key, own in m.rows("error", arm=arm).group_by(keys, maintain_order=True):
            where = {"arm": arm, **dict(zip(keys, key, strict=True))}
            row: dict[str, Any] = {"labels": "retraining" if key[0] == "coarse" else key[0]}
            row["classes"] = round(float(m.final("classes", **where).array.mean()))
            row["error %"] = charts.plus_minus(m.final("error", **where), 2, 100)
            for metric, digits in (("purity", 3), ("smallest", 1), ("lift", 2)):
                known = key[0] != "one pass"
                row[metric] = round(float(m.final(metric, **where).array.mean()), digits) if known else None
            row["rate"] = round(float(m.final("rate", **where).array.mean()), 3)
            row["source %"] = printed(m, *_SOURCE[key[0]]) if key[0] in _SOURCE else None
            rows.append({**row, "seeds": own["seed"].n_unique()})
    return pl.DataFrame(rows, infer_schema_length=None)
