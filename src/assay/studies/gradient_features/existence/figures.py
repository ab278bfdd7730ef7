"""The constructed head over its width, the trade-off between OPT and slack, and the calculator."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Every, Exact, Measurements, charts
from assay.methods.gradient_bounds import FeatureConstants, gradient_requirements

from .arms import PAIRS, Params, part
from .theory import least_loss_without


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
    caption="Pairs of XOR axes with opposite labels, the heaviest first. Left: hinge loss on new samples of a network "
    "with two neurons an axis on the pairs allowed (an upper bound on OPT), with four neurons more on these axes, or "
    "on two that no component lies on as well, and the weight of the pairs that it lacks, which no network on these "
    "axes can stay below. Middle: the slack that the theorem charges, by the share p of first gradients that the cones "
    "hold, and its sum with OPT; above 1 (the loss of the output 0) the bound says nothing. Right: the share of exact "
    "first gradients within a cone of each width around an axis of each pair; lighter axes need wider cones.",
    shows=("C8a", "C8b", "C8c", "N15", "N17"),
)
def trade_off(m: Measurements[Params]) -> alt.HConcatChart:
    lines = {
        "opt": "OPT (upper bound)",
        "opt_wider": "four neurons more",
        "opt_with_noise": "… and two noise axes",
    }
    losses = pl.concat(
        m.rows(metric, arm="trade-off").select("pairs", "seed", "value", which=pl.lit(which))
        for metric, which in lines.items()
    )
    left = charts.band(
        charts.summarise(losses, "which", "pairs"), x="pairs", y="hinge loss on new samples", colour="which", width=200
    )
    lost = pl.DataFrame(
        {
            "pairs": list(PAIRS),
            "lost": [least_loss_without(m.params.trade_weights, pairs) for pairs in PAIRS],
        }
    )
    floor = alt.Chart(lost).mark_line(strokeDash=[4, 3], color="grey", point=True).encode(x="pairs:Q", y="lost:Q")
    slack = m.rows("least_slack", arm="trade-off").select("pairs", "seed", "share", slack=pl.col("value"))
    opt = m.rows("opt", arm="trade-off").select("pairs", "seed", opt=pl.col("value"))
    both = slack.join(opt, on=["pairs", "seed"])
    parts = pl.concat(
        both.select("pairs", "seed", value=value, which=pl.format(f"{words}, p = {{}}", "share"))
        for words, value in {"slack": pl.col("slack"), "OPT + slack": pl.col("slack") + pl.col("opt")}.items()
    )
    middle = charts.band(
        charts.summarise(parts, "which", "pairs"), x="pairs", y="loss", colour="which", scale="log", width=200
    )
    caught = m.rows("caught", arm="trade-off").with_columns(cone=pl.format("γ = {}", "width"))
    right = charts.band(
        charts.summarise(caught, "cone", "pairs"),
        x="pairs",
        x_title="pair, heaviest first",
        y="share of gradients in its cone",
        colour="cone",
        width=200,
    )
    whole = alt.X("pairs:Q", axis=alt.Axis(values=list(PAIRS), format="d"))
    panels = [panel.encode(x=whole) for panel in (left, middle)]
    titled = right.encode(x=whole.title("pair, heaviest first"))
    chart: alt.HConcatChart = alt.hconcat(panels[0] + floor, panels[1], titled).resolve_scale(color="independent")
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
