"""What several parts share: how the exact kernels that gradient features are compared with were tuned."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements

from .fixed_features.arms import KERNELS
from .study import Params, study

_ARMS = {
    "xor-kernels": "XOR mixture",
    "parity-kernels": "parity of one block",
    "multi-index-kernels": "polynomial of three directions",
}


@study.table(
    "kernel-penalties",
    caption="Ridge penalties that validation chose for the exact kernels, over all seeds and sizes of each problem: "
    "the smallest and the largest choice, and how many choices lie at the first or last penalty of the grid and are "
    "better there than anywhere else, so that a wider grid might have helped the kernel.",
    shows=("N14",),
)
def kernel_penalties(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for arm, problem in _ARMS.items():
        chosen = m.rows("at_edge", arm=arm, method=list(KERNELS))
        for method in chosen["method"].unique(maintain_order=True):
            at_edge = chosen.filter(method=method)["value"].to_list()
            penalties = m.rows("penalty", arm=arm, method=method)["value"].to_list()
            rows.append(
                {
                    "problem": problem,
                    "kernel": method,
                    "penalties": f"{min(penalties):.2g} to {max(penalties):.2g}",
                    "at an edge": f"{sum(at_edge):.0f} of {len(at_edge)}",
                }
            )
    return pl.DataFrame(rows)
