"""Mixtures of Gaussians: neurons by feature, and training curves."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts

from ..problem import mixture_of
from .arms import AXES, KINDS, NOISE_RATIOS, NORMS, SIGNS, TAIL_DIMS, TAUS, Params, part


@part.figure(
    "neurons-by-feature",
    caption="Cosine of neurons with the means after one sampled step (one seed; neurons sorted by their nearest mean). "
    "Four XOR axes have four features, eight orthogonal means have eight.",
    shows=("N10",),
)
def neurons_by_feature(m: Measurements[Params]) -> alt.VConcatChart:
    panels = []
    for kind in KINDS:
        found = np.abs(m.array("cosines", arm="mixture-training", kind=kind)[0])
        half = len(found) // 2
        rows = []
        for sign, part_of in (("positive", found[:half]), ("negative", found[half:])):
            order = np.lexsort((-part_of.max(1), part_of.argmax(1)))
            rows += [
                {"threshold": sign, "neuron": at, "feature": j + 1, "cosine": float(part_of[i, j])}
                for at, i in enumerate(order.tolist())
                for j in range(found.shape[1])
            ]
        panels.append(
            alt.Chart(pl.DataFrame(rows), width=260, height=14 * found.shape[1], title=kind)
            .mark_rect()
            .encode(
                x=alt.X("neuron:O", title="neurons", axis=alt.Axis(labels=False, ticks=False)),
                y=alt.Y("feature:O", title="feature"),
                color=alt.Color("cosine:Q", title="|cosine|", scale=alt.Scale(scheme="viridis", domain=[0, 1])),
                column=alt.Column("threshold:N", title=None, sort=["positive", "negative"]),
            )
        )
    return alt.vconcat(*panels)


@part.figure(
    "mixture-training",
    caption="Mixtures of eight Gaussians: test error over the steps after the first when both layers are trained.",
    shows=("C3a",),
)
def training(m: Measurements[Params]) -> alt.LayerChart:
    frame = charts.summarise(m.rows("error", arm="mixture-training", layers="both"), "kind", "step")
    chart: alt.LayerChart = charts.band(frame, x="step", y="test error", colour="kind")
    return chart


@part.figure(
    "component-errors",
    caption="Mixtures of eight Gaussians while both layers are trained: error on the inputs of each component over the "
    "steps after the first (mean over seeds, step 0 left out: there the output is 0 and every sign wrong), coloured by "
    "the component's label. On orthogonal means every component is right after a step. On XOR axes the components of "
    "one class are lost and found together, and none is left behind at the end.",
    shows=("C3m",),
)
def component_errors(m: Measurements[Params]) -> alt.HConcatChart:
    rows = m.rows("component_error", arm="mixture-training").filter(pl.col("step") > 0)
    panels = []
    for kind in KINDS:
        labels = mixture_of(kind, m.params.mixture_dim).component_labels.tolist()
        words = {j + 1: f"label {label:+.0f}" for j, label in enumerate(labels)}
        frame = charts.summarise(rows.filter(kind=kind), "component", "step").with_columns(
            label=pl.col("component").cast(pl.Int64).replace_strict(words)
        )
        panels.append(
            alt.Chart(frame, width=280, height=220, title=kind)
            .mark_line(opacity=0.6, point=alt.OverlayMarkDef(size=18))
            .encode(
                x=alt.X("step:Q", title="step", scale=alt.Scale(type="log")),
                y=alt.Y("mean:Q", title="error", scale=alt.Scale(domain=[0, 1])),
                color=alt.Color("label:N", title=None),
                detail="component:N",
            )
        )
    return alt.hconcat(*panels)


@part.table(
    "mixture-training",
    caption="Mixtures of eight Gaussians, test error in percent after one gradient step and then either the last step "
    "of training both layers or a tuned head on the first layer as that step left it (mean and half of the 95 % "
    "interval over seeds).",
    shows=("C3a", "C3b"),
)
def errors(m: Measurements[Params]) -> pl.DataFrame:
    ways = {"both": "both layers", "head": "head alone"}
    return pl.DataFrame(
        [
            {"means": kind}
            | {
                words: charts.plus_minus(m.final("error", arm="mixture-training", kind=kind, layers=layers), 3, 100)
                for layers, words in ways.items()
            }
            for kind in KINDS
        ]
    )


@part.table(
    "mixture-gradients",
    caption="Exact first gradients of 4,096 neurons on mixtures of eight Gaussians, by the sign of the threshold (mean "
    "and half of the 95 % interval over seeds): the share that lies in a cone around a mean, the median cosine with "
    "the nearest mean and with E[yx] (zero on XOR axes), and how far a neuron's gradients at the thresholds b and −b "
    "are apart at most, over the largest norm.",
    shows=("C4r", "C4s", "N10"),
)
def mixture_gradients(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for kind in KINDS:
        for sign in SIGNS:
            where = {"arm": "mixture-gradients", "kind": kind, "threshold_sign": sign}
            mean = charts.plus_minus(m.final("label_mean_cosine", **where)) if kind == "orthogonal" else "–"
            apart = m.every("signs_apart", **where).values.max()
            rows.append(
                {
                    "means": kind,
                    "threshold": sign,
                    "in a cone": charts.plus_minus(m.final("nice", **where)),
                    "cosine, nearest mean": charts.plus_minus(m.final("median_cosine", **where)),
                    "cosine, E[yx]": mean,
                    "b and −b apart": f"{apart:.2g}",
                }
            )
    return pl.DataFrame(rows)


@part.figure(
    "unequal-spread",
    caption="XOR mixture with noise 1 on one axis and less on the other: the share of exact first gradients of 8,192 "
    "neurons in the cone of each axis, over the noise of the sharper one (points: mean and 95 % interval over seeds; "
    "lines: derived). Left, of those with a norm above √d/5, more find the sharper axis; right, of any norm, more "
    "point at the noisier one. The least number of neurons in a signed cone, over the promised m·p/4, is in the table.",
    shows=("C1o", "N21", "X25", "X26"),
)
def unequal_spread(m: Measurements[Params]) -> alt.HConcatChart:
    panels = []
    for norm, title in zip(NORMS, ("norm above √d/5", "any norm"), strict=True):
        frame = charts.summarise(m.rows("caught", arm="unequal-spread", norm=norm), "axis", "ratio")
        derived = charts.summarise(m.rows("derived", arm="unequal-spread", norm=norm), "axis", "ratio")
        scale = alt.Scale(domain=[0, float(np.max(frame["high"].to_numpy())) * 1.05])

        def base(rows: pl.DataFrame, title: str = title) -> alt.Chart:
            return alt.Chart(rows, width=260, height=220, title=title).encode(
                x=alt.X("ratio:Q", title="noise of the sharper axis", scale=alt.Scale(domain=[0.2, 1.05])),
                color=alt.Color("axis:N", title="axis", sort=list(AXES)),
            )

        y = alt.Y("mean:Q", title="share in the cone", scale=scale)
        lines = base(derived).mark_line().encode(y=y)
        points = base(frame).mark_point(filled=True, size=50, opacity=1).encode(y=y)
        bars = base(frame).mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q")
        panels.append(lines + bars + points)
    return alt.hconcat(*panels)


@part.table(
    "unequal-spread",
    caption="Exact first gradients of 8,192 neurons on an XOR mixture with noise 1 on one axis, by the noise of the "
    "other: the share in the cone of each axis with a norm above √d/5 (mean and half of the 95 % interval over seeds) "
    "beside the derived p, and the least number of neurons after the step in the cone of either sign of that axis, "
    "over the promised m·p/4 (least over seeds).",
    shows=("C1n", "C1o"),
)
def unequal_promise(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for ratio in NOISE_RATIOS:
        for axis in AXES:
            where = {"arm": "unequal-spread", "ratio": ratio, "axis": axis, "norm": NORMS[0]}
            rows.append(
                {
                    "noise": f"{ratio:g} and 1",
                    "axis": axis if ratio < 1 else f"as {axis}",
                    "share": charts.plus_minus(m.final("caught", **where), 4),
                    "derived p": f"{m.exact('derived', **where).value:.4f}",
                    "nice / (m·p/4)": f"{m.every('nice_over_promise', **where).values.min():.2f}",
                }
            )
    return pl.DataFrame(rows)


@part.figure(
    "oracle-tails",
    caption="XOR mixtures with noise 1 and means of norm 4√(τ·log d): the exact hinge loss of the oracle over the "
    "dimension (dots), on logarithmic axes, beside a bound with the tails of a Gaussian as they are (solid) and the "
    "bound that the source prints (dashed). The loss falls like d^(−τ/2) and stays below the first bound; the second "
    "falls like d^(−0.9τ + 1) and lies below the loss.",
    shows=("C4u", "C4v", "X19"),
)
def oracle_tails(m: Measurements[Params]) -> alt.LayerChart:
    names = ["loss", "loss_over_safe", "loss_over_stated"]
    # No seed has a part in these numbers.
    rows = m.rows(names, arm="oracle-tails").unique(["tau", "dim", "metric"], maintain_order=True)
    wide = rows.pivot("metric", index=["tau", "dim"], values="value").with_columns(
        bound=pl.col("loss") / pl.col("loss_over_safe"),
        printed=pl.col("loss") / pl.col("loss_over_stated"),
        curve=pl.format("τ = {}", "tau"),
    )
    long = wide.unpivot(["loss", "bound", "printed"], index=["curve", "dim"], variable_name="what")
    powers = [10.0**power for power in range(-140, 1, 20)]
    base = alt.Chart(long, width=360, height=280).encode(
        x=alt.X(
            "dim:Q", title="dimension d", scale=alt.Scale(type="log"), axis=alt.Axis(values=TAIL_DIMS, format="~e")
        ),
        y=alt.Y("value:Q", title="hinge loss", scale=alt.Scale(type="log"), axis=alt.Axis(values=powers, format="~e")),
        color=alt.Color("curve:N", title=None, sort=[f"τ = {tau}" for tau in TAUS]),
    )
    dots = base.transform_filter("datum.what == 'loss'").mark_point(filled=True, size=50, opacity=1)
    safe = base.transform_filter("datum.what == 'bound'").mark_line()
    stated = base.transform_filter("datum.what == 'printed'").mark_line(strokeDash=[4, 3])
    return alt.LayerChart(layer=[safe, stated, dots])
