"""The figure of the logarithmic law."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements

from .arms import Params, part
from .theory import printed_log_law_constant


@part.figure(
    "log-law",
    caption="exp of the right class' mean output on easy samples against time, coarse labels (dots: mean over seeds "
    "and superclasses). If the output grows as log(Ct + t0), this is a line of slope C. The corrected constant, "
    "counting the neurons that fire at the end, fits; counting those of the start is off; the printed one is far too "
    "small.",
    shows=("C5g", "C8a", "C8b"),
)
def log_law(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows("own_output", arm="coarse", setting="exact").filter(pl.col("step") % 10 == 0)
    grown = rows.with_columns(value=pl.col("value").exp())
    frame = grown.group_by("step", maintain_order=True).agg(pl.col("value").mean()).sort("step")
    first, last = frame.row(len(frame) // 4), frame.row(-1)
    p = m.params
    constants = {
        "corrected, firing neurons": _mean_constant(m, "firing"),
        "corrected, initial detectors": _mean_constant(m, "initial"),
        "printed": printed_log_law_constant(p.rate, p.subclasses, p.feature_patches, p.patches),
    }
    ends = (first[0], last[0])
    points = [(name, step, first[1] + c * (step - first[0])) for name, c in constants.items() for step in ends]
    lines = alt.Chart(pl.DataFrame(points, schema=["constant", "step", "value"], orient="row"))
    dots = (
        alt.Chart(frame, width=440, height=290)
        .mark_point(filled=True, color="#444", opacity=0.7)
        .encode(x=alt.X("step:Q", title="updates t"), y=alt.Y("value:Q", title="exp of the mean output"))
    )
    color = alt.Color("constant:N", title="predicted slope", sort=list(constants))
    line = lines.mark_line(strokeWidth=2).encode(x="step:Q", y="value:Q", color=color)
    return alt.LayerChart(layer=[dots, line])


def _mean_constant(m: Measurements[Params], counted: str) -> float:
    rows = m.rows("log_law_constant", arm="coarse", setting="exact", counted=counted)
    return float(rows.select(pl.col("value").mean()).item())
