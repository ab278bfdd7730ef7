"""What the invariants of the proofs come to in networks of which nothing is left out."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, charts

from ..learners import LABELS
from .arms import Params, part

_BIASES = {"tied": "falling bias", "free": "bias that does not fall"}
_QUANTITIES = {
    "noise_fires": ("C7a, N2", "firings on patches of plain noise"),
    "unaligned_fires": ("C7b", "firings on features far from a neuron's start"),
    "near_threshold_fires": ("C7e", "firings on features missed by up to four deviations of the noise"),
    "foreign_rise": ("C7c", "largest rise of a response to another class' feature, as a share of the largest"),
    "pruned_deviation": ("C7d", "largest change of an output by leaving out neurons that cannot fire, as a share"),
}


@part.table(
    "invariants",
    caption="The invariants of the proofs in networks of which no neuron is left out, over all steps, with superclass "
    "(coarse) and subclass (fine) labels: counts, and largest changes, from the least to the largest seed. By the "
    "proofs all are 0, up to rounding, with the bias that falls as a neuron moves (tied to its norm). The control: "
    "without it some neurons fire on plain noise.",
    shows=("C7a", "C7b", "C7c", "C7d", "C7e", "N2"),
)
def invariants(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for metric, (claim, what) in _QUANTITIES.items():
        row = {"claim": claim, "quantity": what}
        for bias, name in _BIASES.items():
            for labels in LABELS:
                found = m.every(metric, arm="invariants", labels=labels, bias=bias)
                row[f"{name}, {labels}"] = charts.measured(found)
        rows.append(row)
    return pl.DataFrame(rows)
