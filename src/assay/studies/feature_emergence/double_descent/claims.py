"""Claims about the first minimum of test loss over width."""

from __future__ import annotations

import polars as pl

from assay.lab import Judgement, Measurements, Values
from assay.methods.input_replacement import first_local_minimum

from .arms import Params, part


def _first_minimum(m: Measurements[Params], labelled_by: str) -> Values:
    """The width at the first local minimum of each seed's test loss; a curve without one has no value."""

    def width(curve: pl.DataFrame) -> float:
        found = first_local_minimum(curve["width"].to_list(), curve["value"].to_list()).size
        return float("nan") if found is None else float(found)

    rows = m.rows("test_loss", arm="double-descent", labelled_by=labelled_by)
    return m.per_seed(rows, width, f"first minimum, {labelled_by}", by="width")


@part.claim(
    "C8j",
    "students of FC(9) on Gaussian inputs have their first minimum of test loss within a factor 2 of the images' own",
    source="Figure 26 (a, b)",
)
def same_minimum(m: Measurements[Params]) -> Judgement:
    return (_first_minimum(m, "FC(9)") / _first_minimum(m, "images")).named("width ratio").between(0.5, 2)


@part.claim("C8k", "a larger teacher moves the minimum to no smaller width", source="Figure 26 (b, c)")
def larger_teacher(m: Measurements[Params]) -> Judgement:
    return (_first_minimum(m, "FC(50)") - _first_minimum(m, "FC(9)")).named("width, FC(50) − FC(9)").at_least(0)


@part.claim("C8l", "and so does a still larger one (FC(500) against FC(50))", source="Figure 26 (c, d)")
def largest_teacher(m: Measurements[Params]) -> Judgement:
    return (_first_minimum(m, "FC(500)") - _first_minimum(m, "FC(50)")).named("width, FC(500) − FC(50)").at_least(0)
