"""The parity networks side by side."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, charts

from ..params import Parity
from .arms import RARE, SIZES, part


@part.table(
    "parity-networks",
    caption="Parity networks on long prompts, over every task and pattern: heads, squared norm in units of 1/(4γ²), "
    "rank of the stacked diagonals, least margin on important tasks and mean hinge loss on rare ones. Four heads solve "
    "all tasks at any dimension, by large weights.",
    shows=("C4a", "C4b", "C4c", "C4d", "C4g", "X4a"),
)
def parity_networks(m: Measurements[Parity]) -> pl.DataFrame:
    rows = []
    for size in SIZES:
        for network in ("large", "small", "small, rescaled", "four heads"):
            where = {"arm": "construction", "network": network, **size}
            rows.append(
                {
                    "d": 2 ** size["bits"],
                    "k": 2 ** size["important_bits"],
                    "network": network,
                    "heads": int(m.exact("heads", **where).value),
                    "norm²": round(m.exact("squared_norm", **where).value, 3),
                    "rank": int(m.exact("rank", **where).value),
                    "margin, important": round(float(m.final("margin", tasks="important", **where).array.min()), 6),
                    "loss, rare": round(float(m.final("loss", tasks="rare", **where).array.mean()), 4),
                }
            )
    return pl.DataFrame(rows)


@part.table(
    "counterexamples",
    caption="Networks at margin 1 with a smaller norm than the source's, which its theorem says is the optimum.",
    shows=("C4e", "C4f"),
)
def counterexamples(m: Measurements[Parity]) -> pl.DataFrame:
    names = m.rows("margin", arm="counterexamples")["network"].unique(maintain_order=True).to_list()
    return pl.DataFrame(
        [
            {"network": name}
            | {
                column: round(m.exact(metric, arm="counterexamples", network=name).value, 4)
                for metric, column in (("heads", "heads"), ("margin", "least margin"), ("squared_norm", "norm²"))
            }
            for name in names
        ]
    )


@part.table(
    "constant-heads",
    caption="Four heads of constant magnitude, V = c·diag(±1), in 4 dimensions: the lowest mean hinge loss that any "
    "scales and any signs on the two rare directions reach, over the rate of rare tasks, by a linear programme for "
    "each of 256 choices of signs. Below: the rate of rare tasks up to which the source's theorem is about this size, "
    "beside the rate taken here. No seed has a part in these numbers.",
    shows=("C4h",),
)
def constant_heads(m: Measurements[Parity]) -> pl.DataFrame:
    where = {"arm": "counterexamples"}
    return charts.quantities(
        {
            "lowest loss / rate of rare tasks": (m.exact("sign_class_loss", **where), "1/5 (printed: 2/5)"),
            "largest rate of rare tasks": (m.exact("largest_rare_rate", **where), f"above {RARE:g}, taken here"),
        }
    )
