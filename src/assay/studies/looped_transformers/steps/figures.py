"""The rules of step sizes, drawn and in a table, and steps that do not fit the prompt."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements
from assay.methods.gradient_descent_rates import error_bound, required_loops

from ..figures import DASHES, LONG, powers_of_ten
from ..params import Loops
from .arms import LIMITS, RULES, part


@part.figure(
    "steps",
    caption="Parameter error (solid, geometric mean over trials) and bound (dashed) against the number of loops for "
    "three rules of step sizes on the same prompts. Every T is a run of its own, since Chebyshev steps depend on it.",
    shows=("X8a", "X8b", "X8c"),
)
def steps(m: Measurements[Loops]) -> alt.Chart:
    rows = m.rows(["parameter_error", "bound"], arm="steps").filter(pl.col("value") > 0)
    frame = (
        rows.group_by("rule", "step", "metric", maintain_order=True)
        .agg(value=pl.col("value").log().mean().exp())
        .with_columns(kind=pl.col("metric").replace_strict({"parameter_error": "measured", "bound": "bound"}))
    )
    lines = alt.Chart(frame, width=440, height=300).mark_line()
    chart: alt.Chart = lines.encode(
        x=alt.X("step:Q", title="loops T"),
        y=alt.Y("value:Q", title="parameter error", **powers_of_ten(frame["value"])),
        color=alt.Color("rule:N", title=None, sort=list(RULES)),
        strokeDash=alt.StrokeDash("kind:N", title=None, sort=["measured", "bound"], scale=DASHES, legend=LONG),
    )
    return chart


@part.table(
    "steps",
    caption="Parameter error of the three step rules at the last number of loops (geometric mean over trials), the "
    "mean bound, and the loops that each rule's bound asks for at the mean κ to bring the error below 1e-6.",
    shows=("X8a", "X8b"),
)
def step_rules(m: Measurements[Loops]) -> pl.DataFrame:
    n = m.params.compared_examples
    kappa = float(m.final("condition", arm="steps", rule="1/L").array.mean())
    rows = []
    for rule in RULES:
        error = m.final("parameter_error", arm="steps", rule=rule).array
        rows.append(
            {
                "steps": rule,
                "n": n,
                "loops": m.params.compared_loops,
                "error": float(np.exp(np.log(np.maximum(error, 1e-18)).mean())),
                "bound": float(m.final("bound", arm="steps", rule=rule).array.mean()),
                "loops for 1e-6": required_loops(kappa, 1e-6, bound=rule),
            }
        )
    theorem = {"steps": "1/L, bound of the theorem", "n": n, "loops": m.params.compared_loops, "error": None}
    theorem["bound"] = error_bound(kappa, m.params.compared_loops, bound="theorem")
    theorem["loops for 1e-6"] = required_loops(kappa, 1e-6, bound="theorem")
    return pl.DataFrame([*rows, theorem], infer_schema_length=None)


@part.figure(
    "step-knowledge",
    caption="Distance from θ*, in units of the start's, a tick per trial on a logarithmic axis, with the geometric "
    "mean as a dot. Above: one step for all prompts, fitted to Gaussian ones, after 50 loops. It converges on prompts "
    "of that size and diverges where the inputs are twice as large, so that the step is knowledge of the prompt. "
    "Below: steps set from the L of each prompt, after 200 loops; they converge below 2/L and diverge above. Dashed: "
    "the start.",
    shows=("C4g", "N5", "N8", "X8d"),
)
def step_knowledge(m: Measurements[Loops]) -> alt.LayerChart:
    scales = sorted(m.rows(arm="fixed-step")["scale"].unique())
    cases: dict[str, dict[str, Any]] = {
        f"fixed step, inputs × {scale:g}": dict(arm="fixed-step", scale=scale) for scale in scales
    }
    cases |= {f"step of {rule}": dict(arm="step-limit", rule=rule) for rule in LIMITS}
    rows = [m.rows("parameter_error", **where).select("value", case=pl.lit(case)) for case, where in cases.items()]
    frame = pl.concat(rows).with_columns(pl.col("value").clip(1e-18))  # a zero has no logarithm
    frame = frame.with_columns(
        end=pl.when(pl.col("value") < 1)
        .then(pl.lit("nearer than the start"))
        .otherwise(pl.lit("farther than the start"))
    )
    means = frame.group_by("case", maintain_order=True).agg(value=pl.col("value").log().mean().exp())
    y = alt.Y("case:N", title=None, sort=list(cases), axis=alt.Axis(labelLimit=220))
    x = alt.X("value:Q", title="distance from θ*/that of the start", **powers_of_ten(frame["value"], every=5))
    order = ["nearer than the start", "farther than the start"]
    colour = alt.Color("end:N", title=None, sort=order, scale=alt.Scale(domain=order, range=["#3366aa", "#c0392b"]))
    trials = alt.Chart(frame, width=420, height=alt.Step(44)).mark_tick(size=22, thickness=2, opacity=0.6)
    middle = alt.Chart(means).mark_point(filled=True, size=60, color="black", opacity=1).encode(x="value:Q", y=y)
    start = alt.Chart(pl.DataFrame({"value": [1.0]})).mark_rule(strokeDash=[3, 3], color="#777").encode(x="value:Q")
    return alt.LayerChart(layer=[start, trials.encode(x=x, y=y, color=colour), middle])
