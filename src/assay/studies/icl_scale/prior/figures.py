"""Accuracy against flipped labels, in transformers with a prior."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import altair as alt
import polars as pl

from assay.lab import Measurements, NotMeasured, charts

from .arms import FLIPS, Params, part


@part.figure(
    "flipped-labels",
    caption="Accuracy on the prior rule against the share of flipped labels among the examples (thick: the mean with "
    "its 95 % interval over seeds, thin: each seed; networks stand side by side at each share): transformers trained "
    "on the same prompts, and the large one without random rules in training. The source draws such curves for Llama "
    "models on five text data sets; it prints no numbers.",
    shows=("C6b", "C6c", "C6d", "C6e", "N3"),
)
def flipped_labels(m: Measurements[Params]) -> Any:
    found = _networks(m)
    # Intervals of networks that agree would cover one another: each network is a little to the right of the last.
    aside = {name: 0.012 * (at - (len(found) - 1) / 2) for at, name in enumerate(found)}
    means = pl.DataFrame([{"network": n, **_interval(m, flipped, found[n])} for n in found for flipped in FLIPS])
    seeds = pl.concat(
        [
            m.rows("prior_accuracy", **where).select("seed", "flipped", "value", network=pl.lit(n))
            for n, where in found.items()
        ]
    )
    placed = pl.col("flipped") + pl.col("network").replace_strict(aside)
    base = alt.Chart(means.with_columns(at=placed), width=380, height=280).encode(
        x=alt.X(
            "at:Q",
            title="share of flipped labels",
            scale=alt.Scale(domain=[-0.03, 1.03], nice=False),
            axis=alt.Axis(values=list(FLIPS), format="%", labelFlush=False),
        ),
        color=alt.Color("network:N", title=None, sort=list(found), legend=alt.Legend(symbolOpacity=1)),
    )
    axis = alt.Y("mean:Q", title="accuracy on the prior rule", scale=alt.Scale(domain=[0, 1]))
    tips = ["network:N", "flipped:Q", *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("mean", "low", "high"))]
    thin = base.properties(data=seeds.with_columns(at=placed))
    curves = alt.layer(
        thin.mark_line(opacity=0.2, strokeWidth=1).encode(y="value:Q", detail="seed:N"),
        base.mark_rule(strokeWidth=2).encode(y="low:Q", y2="high:Q"),
        base.mark_line(point=True).encode(y=axis, tooltip=tips),
    )
    return curves + charts.rules({"chance": 0.5}, width=380)


def _networks(m: Measurements[Params]) -> dict[str, dict[str, str]]:
    """Where the rows of each network are, of those that ran; NotMeasured where none did."""
    every = {
        "small": {"arm": "prior", "size": "small"},
        "medium": {"arm": "medium-prior"},
        "large": {"arm": "prior", "size": "large"},
        "large, no random rules": {"arm": "no-random-rules"},
    }
    m.rows("prior_accuracy", arm=sorted({where["arm"] for where in every.values()}))
    found = {}
    for name, where in every.items():
        with suppress(NotMeasured):
            m.rows("prior_accuracy", **where)
            found[name] = where
    return found


def _interval(m: Measurements[Params], flipped: float, where: dict[str, str]) -> dict[str, float]:
    """The mean and the interval that the claims have: that of a share, which never leaves [0, 1]."""
    judged = m.final("prior_accuracy", flipped=flipped, **where).at_least(0)
    return {"flipped": flipped, "mean": judged.estimate, "low": judged.low, "high": judged.high}


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
