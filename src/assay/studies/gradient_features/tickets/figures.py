"""How well tickets do, and how fast they learn."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import AFTER, AT_START, LEVEL, ON_PARITY, Params, part


def _race_curves(m: Measurements[Params], arm: str) -> alt.LayerChart:
    rows = m.rows("loss", arm=arm).filter(pl.col("step") > 0)
    frame = charts.summarise(rows, "who", "step").with_columns(
        start=pl.when(pl.col("who").str.starts_with("init")).then(pl.lit("start")).otherwise(pl.lit("step 1"))
    )
    frame = frame.with_columns(pl.col("mean", "low", "high").clip(1e-3))  # a loss of 0 has no logarithm
    curves = charts.band(frame, x="step", y="hinge loss", colour="who", dash="start", scale="log", shaded=False)
    chart: alt.LayerChart = curves + charts.rules({f"loss {LEVEL:g}": LEVEL})
    return chart


def _race_rows(m: Measurements[Params], arm: str, networks: Sequence[str]) -> pl.DataFrame:
    rows = []
    for who in networks:
        rates = m.rows("rate", arm=arm, who=who)["value"].to_list()
        rows.append(
            {
                "network": who,
                "steps": charts.plus_minus(m.final("steps", arm=arm, who=who), 1),
                "samples": charts.plus_minus(m.final("samples", arm=arm, who=who), 0),
                "error": charts.plus_minus(m.final("error", arm=arm, who=who), 4),
                "always on": charts.plus_minus(m.final("always_on", arm=arm, who=who), 2),
                "rates": f"{min(rates):g} to {max(rates):g}",
                "reached": f"{int(m.rows('reached', arm=arm, who=who)['value'].sum())} of {len(rates)}",
            }
        )
    return pl.DataFrame(rows)


@part.figure(
    "ticket-heads",
    caption="Test accuracy of heads on the neurons nearest to features after one step (and of those spread over their "
    "switches), on random ones after it, on the nearest ones as they were at the start ('init'), and on random neurons "
    "at the start, no two alike, with thresholds as there and without any, by their number.",
    shows=("C6h", "C6i"),
)
def ticket_heads(m: Measurements[Params]) -> alt.HConcatChart:
    titles = {"xor": "XOR mixture", "parity": "parity of {1} of {0}".format(*m.params.head_parity)}
    frame = charts.summarise(m.rows("test_accuracy", arm="ticket-heads"), "problem", "who", "size")
    panels = []
    for problem, title in titles.items():
        part_of = frame.filter(pl.col("problem") == problem)
        panel = charts.band(
            part_of,
            x="size",
            x_title="neurons",
            y="test accuracy",
            colour="who",
            width=260,
            title=title,
            domain=(0.5, 1),
        )
        panels.append(panel.encode(x=alt.X("size:Q", scale=alt.Scale(type="log", base=2), title="neurons")))
    return alt.hconcat(*panels)


@part.figure(
    "tickets",
    caption="XOR mixture: test hinge loss over the steps after the first, mean over seeds, each network at the rate "
    "that validation inputs chose in its seed. Subsets have 24 neurons; the race is to the dashed loss.",
    shows=("C6a", "C6b", "C6c", "C6d", "C6e", "X6"),
)
def tickets(m: Measurements[Params]) -> alt.LayerChart:
    return _race_curves(m, "tickets")


@part.figure(
    "parity-tickets",
    caption="Parity of 3 of 30 coordinates: the same race. Thresholds of the 24 nearest neurons after the step have "
    "one sign (table parity-tickets); 'ticket, both signs' takes half of its neurons from either sign, and 'init, both "
    "signs' the same ones at the start; 'ticket, other sign' takes the nearest of the sign that the nearest lack, "
    "'random, one sign' random ones of the sign of the nearest.",
    shows=("C6j", "C6k", "C6l", "X18", "X21", "X22", "X23", "X24"),
)
def parity_tickets(m: Measurements[Params]) -> alt.LayerChart:
    return _race_curves(m, "parity-tickets")


@part.table(
    "tickets",
    caption="XOR mixture: steps and samples until hinge loss stays below 0.05, the first step counted where it was "
    "taken; test error at the end and the rates chosen, of a grid from 0.001 to 3.",
    shows=("C6a", "C6b", "C6c", "C6d", "C6e", "C6f", "C6g", "N18", "X8"),
)
def race_table(m: Measurements[Params]) -> pl.DataFrame:
    return _race_rows(m, "tickets", (*AFTER, *AT_START))


@part.table(
    "parity-tickets",
    caption="Parity of 3 of 30 coordinates: steps and samples until hinge loss stays below 0.05, the last step where "
    "it does not; test error at the end, the share of neurons whose threshold lets them fire at the input 0, and the "
    "rates chosen, of a grid from 0.03 to 10.",
    shows=("C6j", "C6k", "C6l", "N18", "X18", "X20", "X21", "X22", "X23", "X24"),
)
def parity_race_table(m: Measurements[Params]) -> pl.DataFrame:
    return _race_rows(m, "parity-tickets", ON_PARITY)
