"""How near every cluster centre has a neuron."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part


@part.figure(
    "mixture",
    caption="Gaussian clusters on the vertices of a cube: the cosine of every cluster centre with its nearest neuron "
    "before and after ordinary training (all seeds).",
    shows=("C4i", "C4j", "C4k", "C4l", "C4m"),
)
def mixture(m: Measurements[Params]) -> alt.Chart:
    frames = []
    for (name,), rows in m.rows("worst_centre_cosine", arm="mixture").group_by("mixture", maintain_order=True):
        for step in (0, max(rows["step"].to_list())):
            values = m.array("centre_cosines", step=step, arm="mixture", mixture=name).reshape(-1)
            label = f"d = {str(name).split('-')[0]}, k = {str(name).split('-')[1]}"
            when = "initialisation" if step == 0 else "trained"
            frames.append(pl.DataFrame({"mixture": [label] * len(values), "when": [when] * len(values), "cos": values}))
    chart: alt.Chart = (
        alt.Chart(pl.concat(frames), width=150, height=240)
        .mark_tick(thickness=1.5, opacity=0.5)
        .encode(
            x=alt.X("when:N", title=None),
            y=alt.Y("cos:Q", title="cos of centre and nearest neuron", scale=alt.Scale(zero=False)),
            color=alt.Color("when:N", legend=None),
            column=alt.Column("mixture:N", title=None),
        )
    )
    return chart


@part.table(
    "mixture",
    caption="Gaussian clusters on the vertices of a cube, by dimension d and number k of factors (2^k clusters): after "
    "ordinary training, the test accuracy on the clusters' labels, the cosine of the centre that is worst served with "
    "its nearest neuron, and the smallest rise of a centre's cosine since the start (mean and half of the 95 % "
    "interval over seeds).",
    shows=("C4i", "C4j", "C4k", "C4l", "C4m", "C4n"),
)
def mixture_table(m: Measurements[Params]) -> pl.DataFrame:
    columns = {
        "test_accuracy": "test accuracy",
        "worst_centre_cosine": "worst centre",
        "smallest_rise": "smallest rise",
    }
    rows = []
    for name in m.params.mixtures:
        dim, factors = name.split("-")
        found = {
            words: charts.plus_minus(m.final(metric, arm="mixture", mixture=name)) for metric, words in columns.items()
        }
        rows.append({"d": dim, "k": factors, **found})
    return pl.DataFrame(rows)
