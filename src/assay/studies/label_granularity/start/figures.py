"""Detectors before training, what the first updates do to them, and the table of the source's regime."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Every, Measurements, Values, charts

from ..theory import expected_detectors
from .arms import Params, part
from .theory import regime_report


@part.figure(
    "initial",
    caption="How unequal the numbers of detectors of different dictionary vectors are before training, against neurons "
    "m per class. They are independent draws, so that their relative spread is 1/√λ (line) with λ the expected number; "
    "the source's 1 ± O(log⁻⁵d) needs far more neurons.",
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


@part.table(
    "first-updates",
    caption="The start against its formulas (means over seeds with 95 % intervals): detectors per feature before "
    "training and the network's response to common over subclass features, with the most neurons tried; how far the "
    "first update moves detectors with superclass (coarse) and subclass (fine) labels on nearly noiseless samples, and "
    "the deviation of its noise in directions that no data show, all over what is predicted; last, by how much the "
    "updates of detectors of one feature and class differ in the first three steps, over the largest update (from the "
    "least to the largest seed).",
    shows=("C4a", "C4c", "C5d", "C5e", "C6a", "C6b", "C5i", "C5j", "C5f"),
)
def first_updates(m: Measurements[Params]) -> pl.DataFrame:
    most = {"arm": "initial", "m": m.params.initial_neurons[-1]}
    counted = m.final("mean_count", **most) / m.final("expected_count", **most)
    rows: list[tuple[str, str, Values | Every, str]] = [
        ("C4a", "detectors per feature/expected", counted, "1"),
        ("C4c", "response to common/subclass features", m.final("response_ratio", **most), "1"),
    ]
    for labels, kind, claim in (
        ("coarse", "common", "C5d"),
        ("coarse", "subclass", "C5e"),
        ("fine", "common", "C6a"),
        ("fine", "subclass", "C6b"),
    ):
        moved = m.final(f"{kind}_over_predicted", arm="first-step", labels=labels)
        rows.append((claim, f"{labels} labels, update of {kind} detectors/predicted", moved, "1"))
    if 2 * m.params.subclasses + 2 < m.params.dim:  # else there is no direction that no data show
        for kind, claim in (("common", "C5i"), ("subclass", "C5j")):
            noise = m.final(f"{kind}_noise_over_predicted", arm="first-step", labels="coarse")
            rows.append((claim, f"coarse labels, noise in the update of {kind} detectors/predicted", noise, "1"))
    rows.append(("C5f", "updates within a set, difference", m.every("spread_within_sets", arm="first-step"), "0"))
    return charts.by_claim(rows)
