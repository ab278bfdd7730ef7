"""The figure of detectors before training, and the table of the source's regime."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..theory import expected_detectors
from .arms import Params, part
from .theory import regime_report


@part.figure(
    "initial",
    caption="How unequal the numbers of detectors of different dictionary vectors are before training, against "
    "neurons m per class. They are independent draws, so that their relative spread is 1/√λ (line) with λ the "
    "expected number; the source's 1 ± O(log⁻⁵d) needs far more neurons.",
    shows=("C4b",),
)
def initial(m: Measurements[Params]) -> alt.LayerChart:
    frame = charts.summarise(m.rows("relative_spread", arm="initial"), "m")
    p = m.params
    expected = [(n, expected_detectors(n, p.threshold, p.dim) ** -0.5) for n in p.initial_neurons]
    line = pl.DataFrame(expected, schema=["m", "mean"], orient="row")
    axis = alt.X("m:Q", title="neurons m per class", scale=alt.Scale(type="log"))
    y = alt.Y("mean:Q", title="relative spread of the counts", scale=alt.Scale(type="log"))
    predicted = alt.Chart(line, width=360, height=240).mark_line(color="#999").encode(x=axis, y=y)
    counted = alt.Chart(frame).mark_point(filled=True, size=70).encode(x=axis, y=y)
    return alt.LayerChart(layer=[predicted, counted])


@part.table(
    "regime",
    caption="The source's asymptotic regime with unit constants and polylog d = log d, against this run: out of reach "
    "at any size that can be simulated, which is why thresholds and widths are set directly.",
)
def regime(m: Measurements[Params]) -> pl.DataFrame:
    p = m.params
    found = regime_report(p.problem(), eta=p.rate, sigma0=p.scale, batch=2 * p.subclasses * p.per_subclass)
    return pl.DataFrame(
        [{"condition": c.condition, "asked": c.asked, "here": c.here, "met": str(c.met)} for c in found]
    )
