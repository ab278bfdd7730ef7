"""Descent on frozen features beside its bound, and the drift of the first layer."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Every, Measurements, Values, charts

from .arms import CASES, Params, part


@part.figure(
    "frozen",
    caption="Head on frozen gradient features: distance of its loss to the best head's over the steps, and what the "
    "theorem allows with its best comparator, the least L(a) − L(a*) + ‖a‖²/(2ηT) over twelve heads a (dashed).",
    shows=("C3c", "C3d", "C3e", "C3f"),
)
def frozen(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows(["gap", "bound"], arm="frozen", case=list(CASES))
    frame = charts.summarise(rows, "case", "metric", "step")
    frame = frame.with_columns(pl.col("mean", "low", "high").clip(1e-6))
    curves = charts.band(frame, x="step", y="loss − best", colour="case", dash="metric", scale="log")
    chart: alt.LayerChart = curves.encode(x=alt.X("step:Q", scale=alt.Scale(type="log"), title="step"))
    return chart


@part.table(
    "drift",
    caption="Both layers trained on four XOR axes: largest relative drift of a neuron, share of gates that flip, and "
    "the change of the loss by the moved first layer with its bound.",
    shows=("C3h", "C3i", "C3j", "N12"),
)
def drift(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for rate in m.params.drift_rates:
        found = {name: m.final(name, arm="drift", rate=rate) for name in ("drift", "flips", "loss_change")}
        bound = m.final("loss_change_bound", arm="drift", rate=rate)
        cells = {name: charts.plus_minus(value, 4) for name, value in found.items()}
        rows.append({"rate": f"{rate:g}", **cells, "bound on the change": charts.plus_minus(bound, 3)})
    return pl.DataFrame(rows)


@part.figure(
    "own-features",
    caption="Both layers trained on four XOR axes, over the steps after the first and by rate (mean over seeds with "
    "its 95 % interval): the median cosine of neurons with their own feature, of those that the first step put into "
    "its cone (dashed: the edge of the cone); and the share of gates that differ from those after the first step (at "
    "small rates often none, which a logarithmic axis does not show).",
    shows=("C3n", "C3o", "N22", "X27"),
)
def own_features(m: Measurements[Params]) -> alt.HConcatChart:
    panels = []
    for name, title, scale in (("own_cosine", "cosine with the own feature", "linear"), ("flips", "flips", "log")):
        rows = (
            m.rows(name, arm="drift")
            .filter(pl.col("step") > 0)
            .with_columns(pl.format("rate {}", "rate").alias("rate"))
        )
        frame = charts.summarise(rows, "rate", "step")
        if scale == "log":
            frame = frame.filter(pl.col("mean") > 0).with_columns(pl.col("low").clip(pl.col("mean") / 10))
        domain = (1 - 1.2 * m.params.cone, 1.0) if scale == "linear" else None
        panel = charts.band(frame, x="step", y=title, colour="rate", scale=scale, domain=domain, width=270)
        panels.append(panel.encode(x=alt.X("step:Q", scale=alt.Scale(type="log"), title="step")))
    edge = charts.rules({"edge of the cone": 1 - m.params.cone}, width=270)
    # A sum would give the line an x of its own, which it does not have.
    return alt.hconcat(alt.layer(panels[0], edge), panels[1])


@part.table(
    "own-features",
    caption="Both layers trained on four XOR axes, at the last step: the median cosine of neurons that the first step "
    "put into the cone of a feature with that feature, the share of them that are still in it, and the largest share "
    "of gates that had flipped at any step, over the bound √(2/π)·B_x·drift (0 where none had).",
    shows=("C3n", "C3o"),
)
def kept_features(m: Measurements[Params]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "rate": f"{rate:g}",
                "cosine": charts.plus_minus(m.final("own_cosine", arm="drift", rate=rate), 4),
                "still in the cone": charts.plus_minus(m.final("kept", arm="drift", rate=rate)),
                "flips / bound": f"{m.every('flips_over_bound', arm='drift', rate=rate).values.max():.3f}",
            }
            for rate in m.params.drift_rates
        ]
    )


@part.table(
    "generalisation",
    caption="A head on frozen gradient features after descent: by how much its test loss exceeds its training loss, "
    "over the Rademacher bound on that excess (mean over seeds with its 95 % interval in brackets, and the largest). "
    "A negative number is a test loss below the training loss; far below 1 the bound is loose.",
    shows=("C3g",),
)
def generalisation(m: Measurements[Params]) -> pl.DataFrame:
    rows: dict[str, tuple[Values | Every, str]] = {}
    for case, words in {"mixture": "four XOR axes", "parity": "block parity"}.items():
        where = {"arm": "frozen", "case": case}
        rows[f"{words}: excess / bound"] = (m.final("generalisation_over_bound", **where), "at most 1")
        rows[f"{words}: excess / bound, all seeds"] = (m.every("generalisation_over_bound", **where), "at most 1")
    return charts.quantities(rows)
