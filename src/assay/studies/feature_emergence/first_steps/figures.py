"""The first steps drawn: where the neurons point, the gradient's components, and the alignment in every setting."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, Values, charts

from ..params import SETTINGS
from .arms import Params, part
from .claims import ON_PARITY

Layers = alt.LayerChart | alt.FacetChart
_STAR = "M0,-1L0.25,-0.3L1,-0.3L0.4,0.15L0.6,0.9L0,0.45L-0.6,0.9L-0.4,0.15L-1,-0.3L-0.25,-0.3Z"


def _map_frame(m: Measurements[Params], step: int) -> pl.DataFrame:
    points = m.array("map", step=step, **ON_PARITY)[0]
    kinds = ["neuron"] * (len(points) - 2) + ["truth"] * 2
    return pl.DataFrame({"x": points[:, 0], "y": points[:, 1], "kind": kinds, "step": [step] * len(points)})


def _map_chart(frame: pl.DataFrame, size: int, title: str = "", only: str | None = None) -> Layers:
    """Neurons as dots over the two stars of the truth."""
    scale = alt.Scale(domain=[-1.15, 1.15])
    base = alt.Chart(frame, width=size, height=size, title=title).encode(
        x=alt.X("x:Q", scale=scale, title=None), y=alt.Y("y:Q", scale=scale, title=None)
    )
    base = base.transform_filter(only) if only else base
    stars = base.transform_filter("datum.kind == 'truth'").mark_point(
        shape=_STAR, size=500, filled=True, color="#e0a030", opacity=0.9
    )
    return alt.layer(stars, base.transform_filter("datum.kind == 'neuron'").mark_circle(size=28, opacity=0.55))


@part.figure(
    "neurons",
    caption="Where the neurons point (one plane for all steps: classical multidimensional scaling of 2 − 2 cos, seed "
    "0). Move the slider: at initialisation they point everywhere; after one step, and tighter after two, they sit on "
    "the stars, ± the sum of the relevant patterns.",
    shows=("C3b",),
)
def neurons(m: Measurements[Params]) -> Layers:
    slider = alt.param("shown", value=0, bind=alt.binding_range(min=0, max=2, step=1, name="step "))
    frame = pl.concat([_map_frame(m, step) for step in range(3)])
    return _map_chart(frame, 380, only="datum.step == shown").add_params(slider)


@part.figure(
    "neurons-by-step",
    caption="The same map at initialisation, after one and after two steps, side by side.",
    shows=("C3b",),
)
def neurons_by_step(m: Measurements[Params]) -> alt.HConcatChart:
    titles = ("initialisation", "after one step", "after two steps")
    return alt.hconcat(*(_map_chart(_map_frame(m, step), 220, title) for step, title in enumerate(titles)))


@part.figure(
    "components",
    caption="The gradient's component on relevant patterns for every neuron of seed 0, against the prediction βγ/σ̃ "
    "(line). Step one: β is the chance that the background leaves the gate open; step two: only the bias counts.",
    shows=("C2a", "C2b"),
)
def components(m: Measurements[Params]) -> alt.HConcatChart:
    problem = m.params_of("parity").problem()
    factor = problem.class_gap / problem.scale
    parts = []
    for step in (1, 2):
        gate, signal = m.array("gate", step=step, **ON_PARITY)[0], m.array("signal", step=step, **ON_PARITY)[0]
        frame = pl.DataFrame({"predicted": gate * factor, "measured": signal})
        line = pl.DataFrame({"predicted": [frame["predicted"].min(), frame["predicted"].max()]})
        axis = alt.Scale(zero=False)
        dots = (
            alt.Chart(frame, width=300, height=260, title=f"step {step}")
            .mark_circle(opacity=0.6)
            .encode(
                x=alt.X("predicted:Q", scale=axis, title="predicted"),
                y=alt.Y("measured:Q", scale=axis, title="measured"),
            )
        )
        parts.append(dots + alt.Chart(line).mark_line(color="#777").encode(x="predicted:Q", y="predicted:Q"))
    return alt.hconcat(*parts)


@part.figure(
    "alignment",
    caption="Median |cos| of the neurons with the sum of the relevant patterns at initialisation, after one and after "
    "two steps, in every setting (mean and interval over seeds). Shuffled labels and uniform inputs find nothing.",
    shows=("C3a", "C4h", "C4o", "C4p", "N1"),
)
def alignment(m: Measurements[Params]) -> Layers:
    rows = m.rows("median_cosine", arm="emergence").with_columns(
        case=pl.when(pl.col("inputs") == "structured")
        .then(pl.col("setting"))
        .otherwise(pl.col("setting") + ", " + pl.col("inputs")),
        after=pl.col("step").replace_strict({0: "initialisation", 1: "one step", 2: "two steps"}),
    )
    frame = charts.summarise(rows, "case", "after")
    order = [*SETTINGS, "parity, uniform", "parity, shuffled"]
    base = alt.Chart(frame, width=420, height=300).encode(
        y=alt.Y("case:N", sort=order, title=None), color=alt.Color("after:N", title=None)
    )
    bars = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title="median |cos|", scale=alt.Scale(domain=[0, 1], clamp=True)), x2="high:Q"
    )
    return alt.layer(bars, base.mark_point(filled=True, size=60).encode(x="mean:Q"))


@part.table(
    "first-gradients",
    caption="The first two gradients on parity in numbers: means over seeds with 95 % intervals in brackets. "
    "Components are those of a gradient along single patterns, relevant ones and others (the background); β is how "
    "often a neuron's gate is open. Angles are those between neurons and the sum of the relevant patterns, by their "
    "tangent (root mean square), over what sampling noise alone predicts.",
    shows=("C2a", "C2b", "C2c", "C3c", "C3d", "C6k"),
)
def first_gradients(m: Measurements[Params]) -> pl.DataFrame:
    def first(metric: str) -> Values:
        return m.at(metric, 1, **ON_PARITY)

    def angle(step: int) -> Values:
        return m.at("tangent", step, **ON_PARITY) / m.at("expected_tangent", step, **ON_PARITY)

    unstructured = m.at("relevant_over_background", 1, arm="emergence", setting="parity", inputs="uniform")
    return charts.quantities(
        {
            "relevant components / predicted βγ/σ̃": (first("signal_ratio"), "1"),
            "their correlation with β over neurons": (first("component_correlation"), "at least 0.99"),
            "background components / sampling noise": (first("background_over_noise"), "at most 1"),
            "relevant / background components": (first("relevant_over_background"), "large"),
            "the same on inputs without structure": (unstructured, "1 by noise alone, at most 2"),
            "angle after one step / predicted": (angle(1), "1"),
            "angle after two steps / predicted": (angle(2), "1"),
        }
    )


@part.figure(
    "codes",
    caption="Labels of hidden codes, where no count of patterns tells the label, from the start to the second step: "
    "the mean |cos| between two neurons, which come nearer to each other, and the |cos| of the nearest neuron with the "
    "mean of label times input (mean and 95 % interval over seeds).",
    shows=("C3h", "C3i"),
)
def codes(m: Measurements[Params]) -> alt.LayerChart:
    names = {"pairwise_cosine": "between neurons (mean)", "largest_cosine": "with label × input (nearest)"}
    rows = m.rows(list(names), arm="codes").with_columns(what=pl.col("metric").replace_strict(names))
    frame = charts.summarise(rows, "what", "step")
    curves = charts.band(frame, x="step", x_title="gradient steps", y="|cos|", colour="what", domain=(0, 1))
    chart: alt.LayerChart = curves.encode(x=alt.X("step:Q", axis=alt.Axis(values=[0, 1, 2], format="d")))
    return chart
