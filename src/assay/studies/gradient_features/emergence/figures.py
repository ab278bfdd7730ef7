"""First gradients as pictures: how many lie in which cone, their cosines before and after, and their norms."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl

from assay.lab import Measurements, charts
from assay.probes.intervals import clopper_pearson

from .arms import CASES, SIGNS, Params, part, promised_sign
from .learners import SAMPLED
from .theory import promised, xor_share

BINS = np.linspace(0, 1, 26)
DRAWN = 4000  # neurons as marks of one picture


@part.figure(
    "cones",
    caption="Share of first gradients in a cone around some feature of the XOR mixture, by the cone's width γ and the "
    "dimension: the curves coincide (exact gradients; both threshold signs agree, positive shown).",
    shows=("X9",),
)
def cones(m: Measurements[Params]) -> alt.LayerChart:
    rows = m.rows("share_in_cones", arm="xor-gradients", labels="true", threshold_sign="positive")
    frame = charts.summarise(rows.with_columns(d=pl.format("d = {}", pl.col("dim"))), "d", "width")
    chart: alt.LayerChart = charts.band(frame, x="width", y="share of gradients in a cone", colour="d", domain=(0, 1))
    return chart


@part.figure(
    "turning",
    caption="Cosine of neurons with their nearest feature of the XOR mixture at the largest dimension: at the start, "
    "after one exact gradient, and after a gradient of random labels.",
    shows=("C1b", "N1", "X1"),
)
def turning(m: Measurements[Params]) -> alt.Chart:
    dim = m.params.xor_dims[-1]
    frames = []
    names = {"true": ("start", "gradient"), "shuffled": ("", "gradient of random labels")}
    for labels, titles in names.items():
        both = m.array("cosines positive", arm="xor-gradients", dim=dim, labels=labels)
        for at, title in enumerate(titles):
            if title:
                counts = np.histogram(both[:, at], BINS)[0] / both[:, at].size
                frames.append(pl.DataFrame({"which": title, "left": BINS[:-1], "right": BINS[1:], "share": counts}))
    chart: alt.Chart = (
        alt.Chart(pl.concat(frames), width=420, height=110)
        .mark_bar()
        .encode(
            x=alt.X("left:Q", bin="binned", title="cosine with the nearest feature"),
            x2="right:Q",
            y=alt.Y("share:Q", title="share"),
            row=alt.Row("which:N", title=None, sort=["start", "gradient", "gradient of random labels"]),
        )
    )
    return chart


@part.figure(
    "norms",
    caption="Norm of the first gradient against its cosine with the nearest feature (XOR mixture, largest dimension, "
    "one seed, at most 4,000 neurons): with true labels some pass the floor √d/5, with random labels none does, though "
    "many turn.",
    shows=("C1a", "N1", "X1"),
)
def norms(m: Measurements[Params]) -> alt.LayerChart:
    dim = m.params.xor_dims[-1]
    frames = []
    for labels, title in {"true": "true labels", "shuffled": "random labels"}.items():
        where: dict[str, Any] = {"arm": "xor-gradients", "dim": dim, "labels": labels}
        cosine, norm = m.array("cosines positive", **where)[0, 1], m.array("norms positive", **where)[0]
        frames.append(pl.DataFrame({"labels": title, "cosine": cosine[:DRAWN], "norm": norm[:DRAWN]}))
    points = (
        alt.Chart(pl.concat(frames), width=380, height=260)
        .mark_point(size=12, opacity=0.5)
        .encode(
            x=alt.X("cosine:Q", title="cosine with the nearest feature"),
            y=alt.Y("norm:Q", title="norm of the gradient", scale=alt.Scale(type="log")),
            color=alt.Color("labels:N", title=None),
        )
    )
    chart: alt.LayerChart = points + charts.rules({"norm floor √d/5": float(np.sqrt(dim) / 5)}, width=380)
    return chart


@part.figure(
    "linear",
    caption="Linear data, by the size of the threshold in units of a typical projection. Left: how far the median "
    "gradient of always-active neurons (negative thresholds) is from the true direction; it comes down to the sampling "
    "floor (dashed), with a cosine above 0.95. Middle: the test error of a head on all neurons after the step, beside "
    "1 %. Right: the share of neurons with positive thresholds that see no input and get no gradient.",
    shows=("C1g", "C4a", "C4b", "C4c", "N2"),
)
def linear(m: Measurements[Params]) -> alt.HConcatChart:
    floor = (m.params.linear_dim - 1) / (2 * m.params.linear_samples)
    levels: dict[str, tuple[str, str, dict[str, float]]] = {
        "off_negative": ("1 − cosine", "negative thresholds", {"sampling floor": floor, "cosine 0.95": 0.05}),
        "error": ("test error", "head on all neurons", {"1 %": 0.01}),
        "dead_positive": ("share without gradient", "positive thresholds", {}),
    }
    panels = []
    for metric, (title, which, rules) in levels.items():
        rows = m.rows(metric, arm="linear").with_columns(which=pl.lit(which))
        frame = charts.summarise(rows, "which", "threshold_ratio")
        panel = charts.band(frame, x="threshold_ratio", x_title="threshold", y=title, colour="which", width=210)
        panels.append(panel + charts.rules(rules, width=210) if rules else panel)
    return alt.hconcat(*panels)


@part.table(
    "interval-of-p",
    caption="Share p of neurons whose first gradient lies in the cone of the first feature, above the norm floor √d/5 "
    "(XOR mixture, all seeds together), with its Clopper–Pearson interval, and the derived number beside.",
    shows=("C1a", "C1k"),
)
def interval_of_p(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for dim in m.params.xor_dims:
        for name, sign in SIGNS.items():
            found = m.rows("caught", arm="xor-gradients", labels="true", dim=dim, threshold_sign=name)["value"]
            trials = len(found) * m.params.first_neurons
            low, high = clopper_pearson(round(float(found.to_numpy().mean()) * trials), trials)
            noise = m.params.xor_noise
            level = sign * m.params.threshold * noise * dim**0.5
            derived = xor_share(dim, noise, level, m.params.cone, dim**0.5 / 5)
            interval = f"[{low:.4f}, {high:.4f}]"
            measured = f"{found.to_numpy().mean():.4f} {interval}"
            rows.append({"dim": dim, "threshold": name, "p, counted": measured, "p, derived": round(derived, 4)})
    return pl.DataFrame(rows)


@part.figure(
    "cases",
    caption="First gradients in other families of problems. Left: the share that lies within a cone of width γ around "
    "some feature, by the sign of the threshold; on orthogonal means only positive thresholds find features, on linear "
    "data only negative ones, and the uniform parity's gradients do not depend on the sign (an eighth of them, dotted, "
    "is promised; the polynomial's features are a space, and its thresholds 0). Right: cosines with the nearest "
    "feature at the start and after the gradient, at the sign that finds features.",
    shows=("C1l", "C1m"),
)
def cases(m: Measurements[Params]) -> alt.VConcatChart:
    rows = []
    for case in CASES:
        shares = charts.summarise(m.rows("share_in_cones", arm="first-gradients", case=case), "threshold_sign", "width")
        left = charts.band(
            shares,
            x="width",
            y="share in a cone",
            colour="threshold_sign",
            width=230,
            height=110,
            title=case,
            domain=(0, 1),
        )
        if case == "uniform parity":
            left = left + charts.rules({"1/8": 0.125}, width=230)
        both = m.array("cosines", arm="first-gradients", case=case, threshold_sign=promised_sign(case))
        counts = [np.histogram(both[:, at], BINS)[0] / both[:, at].size for at in (0, 1)]
        bars = pl.concat(
            pl.DataFrame({"which": which, "left": BINS[:-1], "right": BINS[1:], "share": found})
            for which, found in zip(("start", "gradient"), counts, strict=True)
        )
        right = (
            alt.Chart(bars, width=280, height=110)
            .mark_bar(opacity=0.6)
            .encode(
                x=alt.X(
                    "left:Q", bin="binned", title="cosine with the nearest feature", scale=alt.Scale(domain=(0, 1))
                ),
                x2="right:Q",
                y=alt.Y("share:Q", title="share", stack=None),
                color=alt.Color("which:N", title=None, sort=["start", "gradient"]),
            )
        )
        rows.append(alt.hconcat(left, right).resolve_scale(color="independent"))
    return alt.vconcat(*rows)


@part.table(
    "case-medians",
    caption="Median cosine of a neuron with the nearest feature (with the space of them for the polynomial), at the "
    "sign of the threshold that finds features: at the start, of the first gradient with the labels of other samples "
    "where it is a sample's, and of the first gradient (mean and half of the 95 % interval over seeds).",
    shows=("C1l", "N16"),
)
def case_medians(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for case in CASES:
        where = {"arm": "first-gradients", "case": case, "threshold_sign": promised_sign(case)}
        others = charts.plus_minus(m.final("median_shuffled", **where)) if case in SAMPLED else "exact"
        cells = {which: charts.plus_minus(m.final(f"median_{which}", **where)) for which in ("before", "after")}
        rows.append({"case": case, "start": cells["before"], "shuffled": others, "gradient": cells["after"]})
    return pl.DataFrame(rows)


@part.table(
    "promises",
    caption="The share p of neurons, the cone width γ and the norm floor B_G that the theory promises in four cases, "
    "every hidden constant set to 1 and its free exponent τ to 8, the least allowed; and the share counted in cones of "
    "the width that was used, mean over seeds. The promises are no settings for a run.",
    shows=("C1l",),
)
def promises(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for case, promise in promised(tau=8.0).items():
        found = m.final("caught", arm="first-gradients", case=case, threshold_sign=promised_sign(case))
        numbers = {"p": promise.share, "γ": promise.width, "B_G": promise.floor}
        cells = {name: f"{value:.2g}" for name, value in numbers.items()}
        rows.append({"case": case, **cells, f"counted, γ = {m.params.cone:g}": charts.plus_minus(found)})
    return pl.DataFrame(rows)


@part.figure(
    "rates",
    caption="First gradients on logarithmic axes. Left: the share of an exact gradient's norm that lies outside the "
    "span of the features, median neuron of the XOR mixture, over the dimension; it falls like d^(−1/2) (dashed, "
    "through the first point). Right: the largest deviation of a gradient of n samples from the exact one; it falls "
    "like n^(−1/2) (dashed) and stays below the proven bound √(E‖x‖²)·n^(−1/3), the same for both mixtures.",
    shows=("C1c", "C1d", "C1e", "C1f"),
)
def rates(m: Measurements[Params]) -> alt.HConcatChart:
    outside = m.rows("outside_span", arm="xor-gradients", labels="true", threshold_sign="positive")
    left = charts.summarise(outside.with_columns(curve=pl.lit("outside the span")), "curve", "dim")
    rows = m.rows(["deviation", "over_bound"], arm="sampled-gradients")
    wide = rows.pivot("metric", index=["mixture", "samples", "seed"], values="value")
    wide = wide.with_columns(curve=pl.col("mixture"), bound=pl.col("deviation") / pl.col("over_bound"))
    parts = [
        wide.select("curve", "samples", "seed", value="deviation"),
        wide.filter(mixture="xor")
        .select("samples", "seed", value="bound", curve=pl.lit("proven bound"))
        .select("curve", "samples", "seed", "value"),
    ]
    right = charts.summarise(pl.concat(parts), "curve", "samples")
    panels = []
    for frame, x, title, y in (
        (left, "dim", "dimension d", "share of the norm"),
        (right, "samples", "samples n", "largest deviation"),
    ):
        ends = (0.8 * float(frame["low"].to_numpy().min()), 1.25 * float(frame["high"].to_numpy().max()))
        panel = charts.band(frame, x=x, x_title=title, y=y, colour="curve", scale="log", domain=ends, width=270)
        axis = alt.X(
            f"{x}:Q", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=frame[x].unique().to_list())
        )
        panels.append(panel.encode(x=axis) + _inverse_root(frame, x, title))
    chart: alt.HConcatChart = alt.hconcat(*panels).resolve_scale(color="independent")
    return chart


def _inverse_root(frame: pl.DataFrame, x: str, title: str) -> alt.Chart:
    """Dashed lines of slope −1/2 through the first points of the measured curves."""
    measured = frame.filter(pl.col("curve") != "proven bound").sort(x)
    first = measured.group_by("curve", maintain_order=True).agg(start=pl.col(x).first(), height=pl.col("mean").first())
    lines = measured.join(first, on="curve").with_columns(
        mean=pl.col("height") * (pl.col("start") / pl.col(x)).cast(pl.Float64).sqrt()
    )
    chart: alt.Chart = (
        alt.Chart(lines)
        .mark_line(strokeDash=[4, 3], color="#777")
        .encode(x=alt.X(f"{x}:Q", title=title), y="mean:Q", detail="curve:N")
    )
    return chart


@part.table(
    "sampled-gradients",
    caption="First gradients of n samples beside the exact ones, on the XOR mixture and on four XOR axes: the largest "
    "deviation β over the neurons (mean and half of the 95 % interval over seeds), its largest share of the proven "
    "bound, and how many gradients in a cone of width γ around a feature, above the norm floor B_G, leave the cone of "
    "width γ + β/B_G when the sample replaces the law, in all seeds.",
    shows=("C1f", "C1j"),
)
def sampled_gradients(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    points = m.rows("deviation", arm="sampled-gradients").select("mixture", "samples").unique(maintain_order=True)
    for mixture, samples in points.iter_rows():
        where = {"arm": "sampled-gradients", "mixture": mixture, "samples": samples}
        rows.append(
            {
                "mixture": mixture,
                "n": samples,
                "deviation": charts.plus_minus(m.final("deviation", **where)),
                "deviation / bound": round(float(m.every("over_bound", **where).values.max()), 3),
                "gradients that leave": int(m.every("escaped", **where).values.sum()),
            }
        )
    return pl.DataFrame(rows)
