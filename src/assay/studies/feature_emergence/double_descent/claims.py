"""Claims about the first minimum of test loss over width."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from assay.lab import Judgement, Measurements, Values
from assay.methods.size_curve import first_local_minimum

from .arms import Params, part


def _first_minimum(m: Measurements[Params], labelled_by: str) -> Values:
    """The width at the first local minimum of each seed's test loss; a curve without one has no value."""

    def width(curve: pl.DataFrame) -> float:
        found = first_local_minimum(curve["width"].to_list(), curve["value"].to_list()).size
        return float("nan") if found is None else float(found)

    rows = m.rows("test_loss", arm="double-descent", labelled_by=labelled_by)
    return m.per_seed(rows, width, f"first minimum, {labelled_by}", by="width")


def _teachers(*sizes: int) -> dict[str, Callable[[Params], bool]]:
    words = " and ".join(f"FC({size})" for size in sizes)
    return {f"{words} among the teachers": lambda p: set(sizes) <= set(p.descent_teachers)}


@part.claim(
    "C8j",
    "The first minimum of test loss over width, of students of a 9-unit teacher on Gaussian inputs, is within a factor "
    "2 of that on images.",
    source="Figure 26 (a, b)",
    when=_teachers(9),
)
def same_minimum(m: Measurements[Params]) -> Judgement:
    return (_first_minimum(m, "FC(9)") / _first_minimum(m, "images")).named("width ratio").between(0.5, 2)


@part.claim(
    "C8k",
    "On Gaussian inputs, students of a 50-unit teacher have their first minimum of test loss at no smaller width than "
    "students of a 9-unit one.",
    source="Figure 26 (b, c)",
    when=_teachers(9, 50),
)
def larger_teacher(m: Measurements[Params]) -> Judgement:
    return (_first_minimum(m, "FC(50)") - _first_minimum(m, "FC(9)")).named("width, FC(50) − FC(9)").at_least(0)


@part.claim(
    "C8l",
    "On Gaussian inputs, students of a 500-unit teacher have their first minimum of test loss at no smaller width than "
    "students of a 50-unit one.",
    source="Figure 26 (c, d)",
    when=_teachers(50, 500),
)
def largest_teacher(m: Measurements[Params]) -> Judgement:
    return (_first_minimum(m, "FC(500)") - _first_minimum(m, "FC(50)")).named("width, FC(500) − FC(50)").at_least(0)
