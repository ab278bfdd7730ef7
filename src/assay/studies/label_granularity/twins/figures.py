"""The table of other labels on a finite set."""

from __future__ import annotations

from typing import Any

import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part
from .learners import TWINS


@part.table(
    "twins",
    caption="Labels on a finite set of hierarchical patches, read out by the maximum (a class counts for the "
    "superclass of most of its samples). Hard samples are saved as far as labels follow the true subclasses, which "
    "random classes drawn once within the superclasses of a small set do by chance, and those drawn anew do not. "
    "Mixed classes unite a subclass of either superclass, so that their read-out cannot tell these apart.",
    shows=("C9n", "C9p", "C9v", "N3", "N4"),
)
def twins(m: Measurements[Params]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for labels in TWINS:
        found = {name: m.final(name, arm="twins", labels=labels) for name in ("classes", "easy_error", "hard_error")}
        row = {"labels": labels, "classes": int(found["classes"].array[0])}
        row |= {f"{name} error": charts.plus_minus(found[f"{name}_error"]) for name in ("easy", "hard")}
        purity = m.final("purity", arm="twins", labels=labels)
        rows.append({**row, "purity": round(float(purity.array.mean()), 3)})
    return pl.DataFrame(rows)
