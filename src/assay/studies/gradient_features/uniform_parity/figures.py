"""Uniform parities over the number of samples, in the units in which dimensions should agree."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from . import theory
from .arms import DIMENSIONS, NETWORKS, OUTPUTS, Params, part
from .problem import UniformParity


@part.figure(
    "parity-samples",
    caption="Parity of 4 (and, where that arm ran, of 6) of d uniform signs after a step along sampled gradients, over "
    "n·ξ²/d: the median cosine of gradients with the neuron's own signs on the relevant coordinates (dashed: "
    "predicted) and the accuracy.",
    shows=("X4", "X11", "C4p"),
)
def parity_samples(m: Measurements[Params]) -> alt.HConcatChart:
    problems = {"sampled-parity": [UniformParity(dim, 4) for dim in m.params.sampled_dims]}
    if "sampled-parity-six" in m.frame["arm"]:
        problems["sampled-parity-six"] = [UniformParity(dim, 6) for dim in m.params.six_dims]
    found, lines = [], []
    for arm, each in problems.items():
        rows = m.rows(["median_cosine", "test_accuracy"], arm=arm)
        found.append(rows.with_columns(d=pl.format(f"{each[0].size} of {{}}", "dim")))
        for problem in each:
            for ratio in [r / 20 for r in range(1, 1 + round(20 * m.params.sample_ratios[-1]))]:
                cosine = theory.sampled_cosine(problem, theory.samples_for(problem, ratio))
                lines.append({"d": f"{problem.size} of {problem.dim}", "ratio": ratio, "mean": cosine})
    frame = charts.summarise(pl.concat(found), "metric", "d", "ratio")
    predicted = (
        alt.Chart(pl.DataFrame(lines))
        .mark_line(strokeDash=[4, 3])
        .encode(x="ratio:Q", y="mean:Q", color=alt.Color("d:N"))
    )
    panels = []
    for metric, title in (("median_cosine", "median cosine"), ("test_accuracy", "test accuracy")):
        panel = charts.band(
            frame.filter(pl.col("metric") == metric), x="ratio", x_title="n·ξ²/d", y=title, colour="d", width=260
        )
        panels.append(panel + predicted if metric == "median_cosine" else panel)
    return alt.hconcat(*panels)


@part.table(
    "parity-widths",
    caption="Parity of k of d uniform signs after a step along exact gradients: test accuracy by width; at k = 2 one "
    "neuron is enough, since thresholds, not constant signs, are what a small network lacks.",
    shows=("C4l", "C4m", "C4n", "C4o", "C4t", "C5o", "C5p", "C5u"),
)
def parity_widths(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for size in m.params.parity_sizes:
        dim = DIMENSIONS[size]
        row = {"k of d": f"{size} of {dim}", "m promised": str(theory.promised_neurons(size))}
        for network in NETWORKS:
            row[network] = charts.plus_minus(m.final("test_accuracy", arm="exact-parity", size=size, network=network))
        for method in ("relu", "fourier"):
            row[f"random {method}"] = charts.plus_minus(
                m.final("test_accuracy", arm="fixed-parity", size=size, method=method)
            )
        rows.append(row)
    return pl.DataFrame(rows)


@part.table(
    "parity-starts",
    caption="Parity of k of d uniform signs after a step along exact gradients, test accuracy at the promised width by "
    "start: outputs ±1 with 2k − 1 thresholds, and outputs that are normal or ±1 with thresholds ±b̃ of one size. The "
    "median switch of the last two lies at the knot: from k = 4 on where a neuron's correlation with the parity is 0 "
    "(in units of ⟨w/‖w‖, x⟩), so that only a spread of outputs helps.",
    shows=("C4l", "C4m", "C4t", "C4w", "C4x", "C4y", "N20"),
)
def parity_starts(m: Measurements[Params]) -> pl.DataFrame:
    words = {"normal": "normal, ±b̃", "signs": "±1, ±b̃"}
    rows = []
    for size in m.params.parity_sizes:
        ladder = m.final("test_accuracy", arm="exact-parity", size=size, network="promised")
        knot = m.every("knot", arm="one-threshold", size=size).values.max()
        rows.append(
            {"k of d": f"{size} of {DIMENSIONS[size]}", "±1, 2k − 1 thresholds": charts.plus_minus(ladder)}
            | {
                words[name]: charts.plus_minus(m.final("test_accuracy", arm="one-threshold", size=size, outputs=name))
                for name in OUTPUTS
            }
            | {"knot": f"{knot:.3f}"}
        )
    return pl.DataFrame(rows)


@part.table(
    "parity-gradients",
    caption="The first gradient on the parity of 4 of 11 uniform signs in closed form and by enumeration of all "
    "inputs, by threshold: the largest difference over the largest entry, and the largest difference between the "
    "cosine of a neuron's gradient with its own signs on the four and the predicted cosine (largest over neurons and "
    "seeds).",
    shows=("C4j", "C4k"),
)
def parity_gradients(m: Measurements[Params]) -> pl.DataFrame:
    names = {"error": "closed form − enumeration", "cosine_off": "cosine − predicted"}
    thresholds = m.rows("error", arm="parity-gradients")["threshold"].unique(maintain_order=True)
    return pl.DataFrame(
        [
            {"threshold": threshold}
            | {
                words: f"{m.every(name, arm='parity-gradients', threshold=threshold).values.max():.2g}"
                for name, words in names.items()
            }
            for threshold in thresholds
        ]
    )
