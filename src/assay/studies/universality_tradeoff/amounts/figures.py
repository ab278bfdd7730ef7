"""Accuracy on the target by how much of which data an encoder was pretrained on."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, Values, charts

from ..images.arms import PIXELS, UNTRAINED
from ..images.claims import accuracy, few
from .arms import SHARES, Params, part
from .claims import by_mixture, lost, related_accuracies, tenth_gap, u_shape

LABELS = ("500", "1k", "2k", "4k", "8k")  # of Tables F.2 and F.3


@part.figure(
    "scarce",
    caption="Accuracy of a linear head on the target at the fewest labels, on encoders of growing mixtures of image "
    "sets, one line for each share of the target's unlabelled images in the pretraining (mean and 95 % interval over "
    "seeds). Where these are plentiful the source's lines fall, and where they are scarce they are U-shaped (Figure "
    "F.6). Raw pixels and the untrained encoder stand beside them.",
    shows=("C6p", "C6r", "C6s"),
)
def scarce(m: Measurements[Params]) -> Any:
    sources, names = m.params.image_sources, m.params.mixtures()
    shown = {name: (sources[0] if i == 0 else f"+ {sources[i]}") for i, name in enumerate(names)}
    rows = []
    for share in (1.0, *SHARES):
        for name, found in zip(names, by_mixture(m, share), strict=True):
            words = {"name": shown[name], "share": f"{share:.0%} of the target's images"}
            rows += [{**words, "seed": seed, "value": value} for seed, value in found.by_seed.items()]
    for name in (UNTRAINED, PIXELS):
        words = {"name": name, "share": "no pretraining"}
        rows += [{**words, "seed": seed, "value": value} for seed, value in accuracy(m, name, few(m)).by_seed.items()]
    order = [*shown.values(), UNTRAINED, PIXELS]
    shares = [*(f"{share:.0%} of the target's images" for share in (1.0, *SHARES)), "no pretraining"]
    base = alt.Chart(charts.summarise(pl.DataFrame(rows), "name", "share"), width=420, height=280).encode(
        x=alt.X("name:N", sort=order, title=None, axis=alt.Axis(labelAngle=-30)),
        xOffset=alt.XOffset("share:N", sort=shares),
        color=alt.Color("share:N", title=None, sort=shares, legend=alt.Legend(labelLimit=250)),
    )
    y = alt.Y("mean:Q", title=f"accuracy, {few(m)} labels", scale=alt.Scale(zero=False))
    bars = base.mark_rule().encode(y=alt.Y("low:Q", title=f"accuracy, {few(m)} labels"), y2="high:Q")
    pretrained = alt.FieldOneOfPredicate(field="name", oneOf=list(shown.values()))
    lines = base.transform_filter(pretrained).mark_line(strokeWidth=1.5).encode(y=y)
    return alt.layer(lines, bars, base.mark_point(filled=True, size=45).encode(y=y))


def _percent(values: Values) -> str:
    return charts.plus_minus(values, 1, 100)


@part.table(
    "scarce-images",
    caption="Pretraining with a part of the target's unlabelled images (arm scarce) and all of the other sets': "
    "accuracy in percent of a linear head on the target at the fewest labels by mixture; what the target loses by all "
    "other sets, and how far its accuracy on the mixtures between lies below that at both ends (a U where both are "
    "above 0), paired over seeds, with 95 % intervals. Beside it the source's accuracy on the first set (Figure F.6, "
    "CIFAR-10 with 1 % of the labels).",
    shows=("C6p", "C6r", "C6s"),
)
def scarce_images(m: Measurements[Params]) -> pl.DataFrame:
    sources = m.params.image_sources
    rows = []
    for share in (1.0, *SHARES):
        found = by_mixture(m, share)
        names = [sources[0], *(f"+ {name}" for name in sources[1:])]
        cells = dict(zip(names, map(_percent, found), strict=True)) | {"loss": _percent(lost(m, share))}
        if len(sources) > 2:
            own, union = u_shape(m, share)
            cells |= {"own − between": _percent(own), "all − between": _percent(union)}
        printed = m.paper_value(where="Figure F.6", pretraining=f"{share:.0%} CINIC-10")
        rows.append({"target's images": f"{share:.0%}", **cells, "paper, first set": printed})
    beside = {name: accuracy(m, name, few(m)) for name in (UNTRAINED, PIXELS)}
    rows += [{"target's images": name, sources[0]: _percent(found)} for name, found in beside.items()]
    return pl.DataFrame(rows, infer_schema_length=None)


@part.table(
    "related-set",
    caption="Pretraining whose first set is related to the target's, the same images slanted, smaller, blurred and of "
    "lower contrast, in place of the target's own (arm related): accuracy in percent of a linear head on the target by "
    "mixture, and what it loses by all other sets, paired over seeds, with 95 % intervals. The source gives both as "
    "pictures that look alike (Figures 7.3 and F.7).",
    shows=("C6t",),
)
def related_set(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for labels in m.params.image_labels:
        for first, found in (
            ("target's own", by_mixture(m, labels=labels)),
            ("related set", related_accuracies(m, labels)),
        ):
            names = ["first set alone", *(f"+ {name}" for name in m.params.image_sources[1:])]
            cells = dict(zip(names, map(_percent, found), strict=True))
            rows.append({"labels": labels, "first set": first, **cells, "loss": _percent(found[0] - found[-1])})
        for name in (UNTRAINED, PIXELS):
            beside = {"first set": name, "first set alone": _percent(accuracy(m, name, labels))}
            rows.append({"labels": labels, **beside})
    return pl.DataFrame(rows, infer_schema_length=None)


@part.table(
    "tenth",
    caption="Accuracy in percent of a linear head on the target by number of labels: on the target's own encoder, on "
    "that of all image sets, and on that of a tenth of all their images (arm tenth), and the difference of the last "
    "two, paired over seeds, with 95 % intervals; raw pixels and the untrained encoder below. Beside it the source's "
    "numbers with 500, 1,000, 2,000, 4,000 and 8,000 labels (Tables F.2 and F.3), where all sets are ImageNet.",
    shows=("C6u", "C6v"),
)
def tenth(m: Measurements[Params]) -> pl.DataFrame:
    first, last = m.params.mixtures()[0], m.params.mixtures()[-1]
    conditions: dict[str, tuple[str, dict[str, Any], str | None]] = {
        "target's own set": (first, {}, "own"),
        "all sets": (last, {}, "ImageNet"),
        "a tenth of all sets": (last, {"arm": "tenth"}, "10% ImageNet"),
        UNTRAINED: (UNTRAINED, {}, None),
        PIXELS: (PIXELS, {}, None),
    }
    rows = []
    for name, (encoder, where, printed) in conditions.items():
        cells = {f"{n} labels": _percent(accuracy(m, encoder, n, **where)) for n in m.params.image_labels}
        rows.append({"pretraining": name, **cells} | _printed(m, printed))
    gaps = {f"{n} labels": _percent(tenth_gap(m, n)) for n in m.params.image_labels}
    rows.append({"pretraining": "all sets − a tenth of them", **gaps})
    return pl.DataFrame(rows, infer_schema_length=None)


def _printed(m: Measurements[Params], pretraining: str | None) -> dict[str, str]:
    """The source's accuracies by number of labels."""
    found = {}
    for table, data in (("Table F.2", "Bird"), ("Table F.3", "Vehicle")):
        where = {"where": table, "pretraining": data if pretraining == "own" else pretraining, "data": data}
        values = [m.paper_value(labels=labels, **where) for labels in LABELS] if pretraining else []
        found[f"paper, {data}"] = " / ".join("–" if value is None else f"{value:.2f}" for value in values)
    return found


@part.table(
    "other-classes",
    caption="Pretraining on the target's set with a tenth of the last set's images, all of which come from so many of "
    "its classes (arm classes): accuracy in percent of a linear head on the target at the fewest labels, and the "
    "difference to one class, paired over seeds, with 95 % intervals; raw pixels and the untrained encoder below.",
    shows=("C6q",),
)
def other_classes(m: Measurements[Params]) -> pl.DataFrame:
    where = {"arm": "classes", "task": m.params.image_sources[0], "labels": few(m)}
    counts = m.rows("accuracy", **where)["classes"].unique().sort()
    found = {count: m.final("accuracy", classes=count, **where) for count in counts}
    rows = []
    for count, values in found.items():
        more = "" if count == counts[0] else _percent(values - found[counts[0]])
        rows.append({"classes": str(count), "accuracy": _percent(values), "− one class": more})
    rows += [
        {"classes": name, "accuracy": _percent(accuracy(m, name, few(m))), "− one class": ""}
        for name in (UNTRAINED, PIXELS)
    ]
    return pl.DataFrame(rows)
