"""How far the construction is from gradient descent, and what is left when one part of it is changed."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Every, Measurements, charts

from ..figures import powers_of_ten
from .arms import BROKEN, CASES, Params, part
from .claims import ROUNDING

SMALLEST = 1e-17  # what is drawn of a zero, which has no logarithm


@part.table(
    "broken",
    caption="How far the output is from gradient descent when one part of the construction is changed (mean and "
    "largest over trials), and the largest share of a loop's movement that the probe finds off the gradient.",
    shows=("N1", "N2", "N3", "N7"),
)
def broken(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for change in BROKEN:
        apart = m.final("deviation", arm="broken", change=change).array
        residual = m.final("probe_residual", arm="broken", change=change).array
        rows.append(
            {"change": change, "mean": apart.mean(), "largest": apart.max(), "probe residual": float(residual.mean())}
        )
    return pl.DataFrame(rows)


@part.figure(
    "identity",
    caption="Distance between the query row of the hand-set transformer, over −α, and the iterate of gradient descent "
    "on the examples in its prompt, on a logarithmic axis: median (dot) and range over trials. Blue: the construction "
    "for three shapes n × d from zero and from a random start, the largest entry over all loops; it is descent up to "
    "rounding (dashed: what the claim tolerates). Red, for comparison: one part of the construction changed, the "
    "length of the difference after the last loop.",
    shows=("C2a", "N1", "N2", "N3"),
)
def identity(m: Measurements[Params]) -> alt.LayerChart:
    names = {(case, start): f"{case}, {start} start" for case in CASES for start in ("zero", "random")}
    rows = [
        m.rows("loop_deviation", arm="identity", case=case, start=start).select(
            "value", name=pl.lit(name), kind=pl.lit("hand-set")
        )
        for (case, start), name in names.items()
    ]
    changes = [change for change in BROKEN if change != "none"]
    rows += [
        m.rows("deviation", arm="broken", change=change).select("value", name=pl.lit(change), kind=pl.lit("changed"))
        for change in changes
    ]
    value = pl.col("value").clip(SMALLEST)
    frame = (
        pl.concat(rows)
        .group_by("name", "kind", maintain_order=True)
        .agg(low=value.min(), median=value.median(), high=value.max())
    )
    colours = alt.Scale(domain=["hand-set", "changed"], range=["#3366aa", "#c0392b"])
    base = alt.Chart(frame, width=400, height=alt.Step(24)).encode(
        y=alt.Y("name:N", title=None, sort=[*names.values(), *changes], axis=alt.Axis(labelLimit=220)),
        color=alt.Color("kind:N", title=None, sort=["hand-set", "changed"], scale=colours),
    )
    ends = pl.Series([SMALLEST, ROUNDING, *frame["high"]])
    span = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", title="distance from gradient descent", **powers_of_ten(ends, every=3)), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(x="median:Q")
    tolerated = alt.Chart(pl.DataFrame({"x": [ROUNDING]})).mark_rule(strokeDash=[3, 3], color="#777").encode(x="x:Q")
    return alt.LayerChart(layer=[tolerated, span, dots])


@part.table(
    "identities",
    caption="What the hand-set transformer is held to beside gradient descent itself: deviations from exact "
    "statements, the smallest and the largest over all shapes, starts and trials ('to'), and two controls with the "
    "mean over trials and its 95 % interval in brackets. θ* is the vector behind the targets, of length 1; with noisy "
    "targets the loop ends at the least-squares solution, which is not θ*.",
    shows=("C1", "C2b", "C2c", "C2d", "N4", "N6"),
)
def identities(m: Measurements[Params]) -> pl.DataFrame:
    def found(metric: str, arm: str = "identity") -> Every:
        return m.every(metric, arm=arm)

    unnegated = m.final("unnegated", arm="broken", change="none")
    return charts.quantities(
        {
            "one layer − its closed form, over the largest entry": (found("layer_deviation"), "0 up to rounding"),
            "change of examples and α in 50 loops": (found("rest_moved"), "0"),
            "steps that the probe fits / steps set, − 1": (found("probe_step_deviation"), "0 up to rounding"),
            "movement off the gradient that the probe finds": (found("probe_residual"), "0 up to rounding"),
            "noisy targets: |θ − least squares|": (found("from_least_squares", "noise"), "0 up to rounding"),
            "noisy targets: distance from θ*": (
                m.final("from_truth", arm="noise"),
                f"at least {0.02 * m.params.noise:g}",
            ),
            "prediction/α without the final minus sign": (unnegated, "near −1, below −0.5"),
        }
    )
