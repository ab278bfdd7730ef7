"""The constructed head over its width, the trade-off between OPT and slack, and the calculator."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Every, Exact, Measurements, charts
from assay.methods.gradient_bounds import FeatureConstants, gradient_requirements

from .arms import WIDTHS, Params, part


@part.figure(
    "construction",
    caption="The constructed head on four XOR axes over the number of neurons: mean distance to the oracle, its "
    "explicit bound in cones of one width and in the best of five (those that leave no component without a neuron), "
    "and the size of its support.",
    shows=("C2c", "C2d", "C2e", "X7"),
)
def construction(m: Measurements[Params]) -> alt.LayerChart:
    names = {
        "gap": "distance to the oracle",
        "bound": "explicit bound",
        "least_bound": "least bound",
        "support": "support",
    }
    rows = m.rows(list(names), arm="construction").filter(pl.col("value").is_finite())
    frame = charts.summarise(rows.with_columns(which=pl.col("metric").replace_strict(names)), "which", "neurons")
    chart: alt.LayerChart = charts.band(frame, x="neurons", y="value", colour="which", scale="log")
    return chart


@part.figure(
    "trade-off",
    caption="XOR axes of unequal weight: hinge loss on new samples of a network with two neurons on each of the "
    "heaviest axes (an upper bound on OPT), with two neurons more on these axes, or on one that no component lies on "
    "as well; and the slack that the theorem charges, by cone width, the narrowest being that which holds a hundredth "
    "of all first gradients around the lightest of these axes. A slack above 1 is vacuous. Right: the share of exact "
    "first gradients that lie within a cone of each width around an axis, from the heaviest to the lightest; lighter "
    "axes need wider cones.",
    shows=("C8a", "C8b", "C8c", "N15"),
)
def trade_off(m: Measurements[Params]) -> alt.HConcatChart:
    parts = []
    lines = {
        "opt": "OPT (upper bound)",
        "opt_wider": "two neurons more",
        "opt_with_noise": "… and a noise axis",
        "least_slack": "slack, narrowest γ",
    }
    for metric, which in lines.items():
        opt = m.rows(metric, arm="trade-off").with_columns(which=pl.lit(which))
        parts.append(opt.select("which", "axes", "seed", "value"))
    for width in WIDTHS:
        slack = m.rows("slack", arm="trade-off", width=width).with_columns(which=pl.lit(f"slack, γ = {width:g}"))
        parts.append(slack.select("which", "axes", "seed", "value"))
    frame = charts.summarise(pl.concat(parts), "which", "axes")
    frame = frame.with_columns(pl.col("mean", "low", "high").clip(1e-3))
    left = charts.band(frame, x="axes", x_title="axes allowed", y="loss", colour="which", scale="log", width=260)
    caught = m.rows("caught", arm="trade-off").with_columns(cone=pl.format("γ = {}", "width"))
    right = charts.band(
        charts.summarise(caught, "cone", "axes"),
        x="axes",
        x_title="axis, heaviest first",
        y="share of gradients in its cone",
        colour="cone",
        width=260,
    )
    whole = alt.Axis(values=[1, 2, 3, 4], format="d")
    panels = [panel.encode(x=alt.X("axes:Q", axis=whole)) for panel in (left, right)]
    chart: alt.HConcatChart = alt.hconcat(*panels).resolve_scale(color="independent")
    return chart


@part.table(
    "requirements",
    caption="What the main theorem asks for on easy linear data (d = 100, ε = 0.1) with every hidden constant set to "
    "1: a law of scaling, no setting for a run.",
    shows=("X7",),
)
def requirements(m: Measurements[Params]) -> pl.DataFrame:
    # Linear case: r = 2, margin 1/2, ρ = 1, p = 1/2, B_b = 1/B_x1².
    constants = FeatureConstants(
        share=0.5,
        floor=1.0,
        gamma=0.01,
        terms=2,
        largest_output=2.0,
        output_norm=2 * 2**0.5,
        largest_knot=0.01,
        mean_norm=10.0,
        second_moment=100.0,
        largest_norm=12.0,
    )
    rows = gradient_requirements(constants, error=0.1, dim=100).table()
    return pl.DataFrame([row | {"asked for": f"{row['asked for']:.2g}"} for row in rows])


@part.table(
    "balance",
    caption="Two checks of the existence part. Above: components of four XOR axes (of eight) that no neuron serves, by "
    "the number m of neurons; 'to' parts the smallest from the largest over seeds. Below: at the sizes that the main "
    "theorem asks for, what descent pays for reaching a constructed head over what building it gives away, by the "
    "number r of features and the largest output B_a1; no seed has a part in these numbers.",
    shows=("C3l", "N11"),
)
def balance(m: Measurements[Params]) -> pl.DataFrame:
    points = m.rows("cost_over_slack", arm="balance").select("terms", "largest_output").unique(maintain_order=True)
    empty: dict[str, tuple[Every | Exact, str]] = {
        f"components without neurons, m = {neurons}": (m.every("empty", arm="construction", neurons=neurons), "0")
        for neurons in m.params.head_widths
    }
    costs = {
        f"cost / slack, r = {terms}, B_a1 = {output:g}": (
            m.exact("cost_over_slack", arm="balance", terms=terms, largest_output=output),
            f"1/2 (printed: {output / 2:g})",
        )
        for terms, output in points.iter_rows()
    }
    return charts.quantities({**empty, **costs})
