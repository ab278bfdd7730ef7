"""Figure 1 and the synthetic columns of Tables 1 to 3 in the printed configuration."""

from __future__ import annotations

import itertools
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..learners import SPLITS
from .arms import RATES, VARIANTS, Params, part

_COLUMNS = {
    "loss": ("test_loss", 2),
    "accuracy": ("test_accuracy", 2),
    "Λ": ("feature_alignment", 2),
    "Ξ": ("noise_alignment", 1),
    "meta-loss": ("meta_loss", 3),
}


@part.figure(
    "printed",
    caption="Figure 1 in the printed synthetic configuration, both pairs of printed rates: un-adapted test loss (left) "
    "and accuracy (right). Noise alone makes logits of size 25, so the loss starts near 10. Without a split nothing "
    "moves; with one the noise-driven logits shrink or grow with the rates, and accuracy stays at chance.",
    shows=("C10c", "C10d", "C10f", "C10g", "C10k", "C10l"),
)
def printed(m: Measurements[Params]) -> alt.VConcatChart:
    rows = []
    for rates in m.rows("test_loss", arm="printed")["rates"].unique(maintain_order=True):
        title, parts = f"rates {rates} (inner/outer)", []
        for metric, y, domain in (("test_loss", "test loss", None), ("test_accuracy", "accuracy", (0.4, 0.7))):
            frame = charts.summarise(m.rows(metric, arm="printed", rates=rates, variant="huberized"), "split", "step")
            parts.append(
                charts.band(frame, x="step", y=y, colour="split", title=title, domain=domain, width=280, height=190)
            )
        rows.append(alt.hconcat(*parts))
    return alt.vconcat(*rows)


@part.table(
    "printed",
    caption="The synthetic columns of Tables 1 to 3 in the printed configuration (± 95 % over seeds; the source's ± "
    "is over test tasks): the order is all that can be compared, since T, M, n₁ and the test are not printed. "
    "Accuracy and alignments beside it show that no feature is learned.",
    shows=("C10a", "C10b", "C10c", "C10d", "C10e", "C10h", "C10i", "C10j"),
)
def printed_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for rates, variant, split in itertools.product(RATES, VARIANTS, SPLITS):
        where = {"arm": "printed", "split": split, "rates": rates, "variant": variant}
        row: dict[str, Any] = {"rates": rates, "variant": variant, "split": split}
        for name, (metric, digits) in _COLUMNS.items():
            row[name] = charts.plus_minus(m.final(metric, **where), digits)
        # The tables do not say which of the two printed pairs of rates is theirs.
        rows.append({**row, "paper loss": m.paper_value(data="synthetic", split=split, variant=variant)})
    return pl.DataFrame(rows, infer_schema_length=None)
