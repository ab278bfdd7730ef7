"""Accuracy against flipped labels, in transformers with a prior."""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, NotMeasured, charts

from .arms import FLIPS, Params, part


@part.figure(
    "flipped-labels",
    caption="Accuracy on the prior rule against the share of flipped labels among the examples (thick: the mean, "
    "thin: each seed): transformers of two sizes trained on the same prompts, and the large one without random rules "
    "in training. The source draws such curves for Llama models on five text data sets; it prints no numbers.",
    shows=("C6b", "C6c", "C6d", "C6e", "N3"),
)
def flipped_labels(m: Measurements[Params]) -> Any:
    rows = pl.concat([rows.with_columns(network=pl.lit(name)) for name, rows in _rows(m)], how="diagonal_relaxed")
    base = alt.Chart(charts.summarise(rows, "network", "flipped"), width=380, height=280).encode(
        x=alt.X("flipped:Q", title="share of flipped labels", axis=alt.Axis(values=list(FLIPS), format="%")),
        color=alt.Color("network:N", title=None, sort=None, legend=alt.Legend(symbolOpacity=1)),
    )
    axis = alt.Y("mean:Q", title="accuracy on the prior rule", scale=alt.Scale(domain=[0, 1]))
    curves = alt.layer(
        base.properties(data=rows).mark_line(opacity=0.3, strokeWidth=1).encode(y="value:Q", detail="seed:N"),
        base.mark_line(point=True).encode(
            y=axis, tooltip=["network:N", "flipped:Q", alt.Tooltip("mean:Q", format=".3f")]
        ),
    )
    return curves + charts.rules({"chance": 0.5}, width=380)


def _rows(m: Measurements[Params]) -> list[tuple[str, pl.DataFrame]]:
    found = []
    for name, where in (
        ("small", {"arm": "prior", "size": "small"}),
        ("medium", {"arm": "medium-prior"}),
        ("large", {"arm": "prior", "size": "large"}),
        ("large, no random rules", {"arm": "no-random-rules"}),
    ):
        try:
            found.append((name, m.rows("prior_accuracy", **where)))
        except NotMeasured:
            continue
    return found


@part.table(
    "transformers",
    caption="The transformers: parameters, accuracy on random rules from unflipped examples, attention of the query in "
    "the last layer to an example over that to itself (at 1 they get the same), and accuracy on the prior rule by the "
    "share of flipped labels.",
    shows=("C6a", "C6b", "C6c", "C7c", "C7d"),
)
def transformers(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for size in ("small", "large"):
        where = {"arm": "prior", "size": size}
        parameters = m.notes(**where)[0]["parameters"]
        cells = {"random rules": charts.plus_minus(m.final("random_accuracy", **where))}
        for share, words in ((0.0, "right"), (1.0, "flipped")):
            looked = m.final("attention_to_examples", flipped=share, **where)
            cells[f"looks at examples, {words} labels"] = charts.plus_minus(looked)
        for share in FLIPS:
            cells[f"{share:.0%} flipped"] = charts.plus_minus(m.final("prior_accuracy", flipped=share, **where))
        rows.append({"transformer": size, "parameters": parameters, **cells})
    return pl.DataFrame(rows)
