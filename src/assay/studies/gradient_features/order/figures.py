"""The order of learning as curves."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from .arms import LEARNED, NEAR_OPT, PAIRS, RATIOS, WEIGHTS, Params, part


@part.figure(
    "order",
    caption="XOR axes of unequal and of equal weight: error on inputs of each axis over the steps after the first, "
    "mean over seeds. With unequal weights the two heavy axes come first; with equal ones all come together.",
    shows=("C7a", "C7b", "N8"),
)
def order(m: Measurements[Params]) -> alt.HConcatChart:
    panels = []
    for name, weights in WEIGHTS.items():
        rows = m.rows("axis_error", arm="order", weights=name)
        names = {j + 1: f"axis {j + 1}" for j in range(4)}
        frame = charts.summarise(
            rows.with_columns(which=pl.col("axis").cast(pl.Int64).replace_strict(names)), "which", "step"
        )
        title = f"{name} weights {', '.join(f'{w:g}' for w in weights)}"
        panel = charts.band(
            frame, x="step", y="error", colour="which", width=270, title=title, domain=(0, 1), shaded=False
        )
        panels.append(panel.encode(x=alt.X("step:Q", scale=alt.Scale(type="log"), title="step")))
    return alt.hconcat(*panels)


@part.figure(
    "oracles",
    caption="Correlation of the network with the oracle of all four axes minus that with the oracle of the first two, "
    "over the steps, of the outputs as they are and (dashed) clipped at the margin, beyond which the hinge loss sees "
    "no difference.",
    shows=("C7c", "C7d", "C7e", "N9", "X10"),
)
def oracles(m: Measurements[Params]) -> alt.LayerChart:
    names = {"larger_oracle_lead": "outputs", "clipped_lead": "clipped outputs"}
    rows = m.rows(list(names), arm="order").with_columns(outputs=pl.col("metric").replace_strict(names))
    frame = charts.summarise(rows, "weights", "outputs", "step")
    chart: alt.LayerChart = charts.band(
        frame, x="step", y="correlation, full − smaller oracle", colour="weights", dash="outputs"
    ) + charts.rules({"equally near": 0.0})
    return chart


@part.figure(
    "learning-times",
    caption="Four pairs of XOR axes, two axes in each, whose weights halve from pair to pair (left) or are equal "
    f"(right): the last step at which the error on inputs of an axis was above {LEARNED:.0%} (circles: seeds; ticks: "
    "geometric means); a circle at the last step of the training is an axis that was not learned. With unequal weights "
    "the times follow the weights, with equal ones they have no order.",
    shows=("C7f", "N23"),
)
def learning_times(m: Measurements[Params]) -> alt.HConcatChart:
    panels = []
    for name in RATIOS:
        # Learned before the first look is a time of 0, which a logarithm does not have.
        rows = m.rows("learning_time", arm="pairs", weights=name).with_columns(
            pair=pl.format("pair {}", (pl.col("axis").cast(pl.Int64) + 1) // 2), value=pl.col("value").clip(0.5)
        )
        middle = rows.group_by("axis", "pair").agg(pl.col("value").log().mean().exp()).sort("axis")

        def base(frame: pl.DataFrame, title: str = f"{name} weights") -> alt.Chart:
            return alt.Chart(frame, width=270, height=220, title=title).encode(
                x=alt.X("axis:O", title="axis", axis=alt.Axis(labelAngle=0)),
                y=alt.Y("value:Q", title="step", scale=alt.Scale(type="log", domain=[0.5, m.params.order_steps])),
                color=alt.Color("pair:N", title=None),
            )

        panels.append(base(rows).mark_point(opacity=0.5) + base(middle).mark_tick(thickness=3, size=24))
    return alt.hconcat(*panels)


@part.figure(
    "nearest-oracles",
    caption="Four pairs of XOR axes whose weights halve from pair to pair, over the steps after the first: the "
    "distance of the normalised network to the normalised oracle of the one to four heaviest pairs (mean over seeds "
    "with its 95 % interval), of outputs as they are and clipped at the margin, and the number of pairs of the oracle "
    "that the network correlates with most.",
    shows=("C7g", "C7h", "X28"),
)
def nearest_oracles(m: Measurements[Params]) -> alt.HConcatChart:
    names = {"whole": "outputs", "clipped": "clipped outputs"}
    where = {"arm": "pairs", "weights": "halving"}
    panels = []
    for name, words in names.items():
        rows = m.rows("oracle_distance", outputs=name, **where).with_columns(which=pl.format("{} of 4 pairs", "oracle"))
        frame = charts.summarise(rows, "which", "step")
        panels.append(
            charts.band(frame, x="step", y="distance to the oracle", colour="which", width=210, height=220, title=words)
        )
    rows = m.rows("nearest", **where).with_columns(which=pl.col("outputs").replace_strict(names))
    frame = charts.summarise(rows, "which", "step")
    panels.append(
        charts.band(
            frame,
            x="step",
            y="pairs of the nearest oracle",
            colour="which",
            domain=(0.5, PAIRS + 0.5),
            width=210,
            height=220,
        )
    )
    log = alt.X("step:Q", scale=alt.Scale(type="log"), title="step")
    chart: alt.HConcatChart = alt.hconcat(*(panel.encode(x=log) for panel in panels)).resolve_scale(color="independent")
    return chart


@part.table(
    "pairs",
    caption="Four pairs of XOR axes, by how many of the heaviest pairs an oracle knows (mean and half of the 95 % "
    f"interval over seeds): its least hinge loss, the first step at which the network's is within {NEAR_OPT:g} of it, "
    "and the distance of the clipped, normalised network to it at the end. That the levels are crossed in turn is no "
    "evidence: any falling loss does so.",
)
def opt_levels(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for name in RATIOS:
        for pair in range(1, PAIRS + 1):
            where = {"arm": "pairs", "weights": name, "oracle": pair}
            rows.append(
                {
                    "weights": name,
                    "pairs": pair,
                    "OPT": charts.plus_minus(m.final("least_loss", **where)),
                    "step near OPT": charts.plus_minus(m.final("time_near_least", **where), 0),
                    "distance at the end": charts.plus_minus(m.final("oracle_distance", outputs="clipped", **where)),
                }
            )
    return pl.DataFrame(rows)
