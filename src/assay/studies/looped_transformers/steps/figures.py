"""The rules of step sizes, drawn and in a table."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements
from assay.methods.gradient_descent_rates import error_bound, required_loops

from ..figures import DASHES, LONG, powers_of_ten
from ..params import Loops
from .arms import RULES, part


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
