"""Students' agreement with their teacher over training."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part

_PARTS = {"original": "on images", "injected": "on noise", "mixture": "on the mixture"}


@part.figure(
    "injected-inputs",
    caption="Students of a labelling teacher: agreement with it on the images, on the Gaussian inputs that "
    "replace half of them, on the mixture, and on images when nothing was replaced.",
    shows=("C8e", "C8f", "C8g", "C8r"),
)
def injected_inputs(m: Measurements[Params]) -> alt.HConcatChart:
    rows = m.rows("part_accuracy", arm="injected-inputs", fraction=[0.0, 0.5]).with_columns(
        curve=pl.when(pl.col("fraction") == 0)
        .then(pl.lit("original only"))
        .otherwise(pl.col("part").replace({"original": "original part", "injected": "injected part"}))
    )
    frame = charts.summarise(rows, "width", "curve", "step")
    parts = []
    for (width,), group in frame.group_by("width", maintain_order=True):
        title = f"student FC({width})"
        parts.append(charts.band(group, x="step", y="agreement with teacher", colour="curve", title=title, width=280))
    return alt.hconcat(*parts)


@part.table(
    "injected-inputs",
    caption="Students of a labelling teacher, by the share of the images that Gaussian inputs (noise) replace: "
    "agreement with the teacher as a mean over training, with half of its 95 % interval over seeds, on test images, on "
    "noise and on both in the proportion of training. A curve that rises sooner has the larger mean; the first row of "
    "each student is what the others are compared with.",
    shows=("C8e", "C8f", "C8g", "C8m", "C8n", "C8o", "C8p", "C8q", "C8r", "C8s"),
)
def learning_speed(m: Measurements[Params]) -> pl.DataFrame:
    widths = sorted(m.rows("part_accuracy", arm="injected-inputs")["width"].unique())
    rows = []
    for width in widths:
        for fraction in (0.0, *m.params.fractions):
            where = {"arm": "injected-inputs", "width": width, "fraction": fraction}
            cells = {
                words: charts.plus_minus(m.area("part_accuracy", part=name, **where)) if fraction or not at else "–"
                for at, (name, words) in enumerate(_PARTS.items())
            }
            rows.append({"student": f"FC({width})", "replaced": f"{fraction:.0%}", **cells})
    return pl.DataFrame(rows)
