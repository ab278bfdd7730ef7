"""Real images: agreement of first gradients, heads on few features, and the race of tickets."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import AT_START, LEVEL, RACERS, TASKS, Params, part


@part.table(
    "image-gradients",
    caption="First gradients on images with true and with shuffled labels: median cosine between two halves of the "
    "images, median norm, share of neurons in the largest cone, and cones that hold four fifths of the neurons.",
    shows=("X12", "N13"),
)
def gradients(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for task in TASKS:
        for labels in ("true", "shuffled"):
            where = {"arm": "image-gradients", "task": task, "labels": labels}
            names = {"agreement": "cosine of halves", "norm": "norm", "largest_cone": "largest cone", "cones": "cones"}
            cells = {title: charts.plus_minus(m.final(name, **where)) for name, title in names.items()}
            rows.append({"task": task, "labels": labels, **cells})
    return pl.DataFrame(rows)


@part.figure(
    "image-heads",
    caption="Test accuracy on images of heads on gradient features and on as many random ReLU and tangent features, by "
    "their number. All heads are tuned alike; one neuron already has more tangent features than images have pixels.",
    shows=("X13", "X14", "X15"),
)
def heads(m: Measurements[Params]) -> alt.HConcatChart:
    frame = charts.summarise(m.rows("test_accuracy", arm="image-heads"), "task", "method", "size")
    panels = []
    for task in TASKS:
        part_of = frame.filter(pl.col("task") == task)
        panel = charts.band(
            part_of,
            x="size",
            x_title="features",
            y="test accuracy",
            colour="method",
            width=250,
            title=task,
            domain=(0.5, 1),
        )
        panels.append(panel.encode(x=alt.X("size:Q", scale=alt.Scale(type="log", base=2))))
    return alt.hconcat(*panels)


@part.figure(
    "image-tickets",
    caption="Odd and even images: test hinge loss over the steps, mean over seeds, each network at the rate that "
    "validation images chose in its seed. The race is to the dashed loss.",
    shows=("X16", "X17"),
)
def tickets(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows("loss", arm="image-tickets").filter(pl.col("step") > 0)
    frame = charts.summarise(rows, "who", "step").with_columns(
        start=pl.when(pl.col("who").is_in(AT_START)).then(pl.lit("start")).otherwise(pl.lit("step 1"))
    )
    frame = frame.with_columns(pl.col("mean", "low", "high").clip(1e-3))  # a loss of 0 has no logarithm
    curves = charts.band(frame, x="step", y="hinge loss", colour="who", dash="start", scale="log", shaded=False)
    chart: alt.LayerChart = curves + charts.rules({f"loss {LEVEL:g}": LEVEL})
    return chart


@part.table(
    "image-tickets",
    caption="Odd and even images: steps until hinge loss 0.3, the first step counted where it was taken; test error at "
    "the end and the rates chosen.",
    shows=("X16", "X17"),
)
def race_table(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for who in RACERS:
        rates = m.rows("rate", arm="image-tickets", who=who)["value"].to_list()
        reached = int(m.rows("reached", arm="image-tickets", who=who)["value"].sum())
        rows.append(
            {
                "network": who,
                "steps": charts.plus_minus(m.final("steps", arm="image-tickets", who=who), 1),
                "error": charts.plus_minus(m.final("error", arm="image-tickets", who=who)),
                "rates": f"{min(rates):g} to {max(rates):g}",
                "reached": f"{reached} of {len(rates)}",
            }
        )
    return pl.DataFrame(rows)
