"""Learned and fixed features on the XOR mixture, over dimension and over samples."""

from __future__ import annotations

import altair as alt
import polars as pl

from assay.lab import Measurements, charts

from ..problem import xor_bayes_accuracy
from .arms import FOURIER_WIDTHS, METHODS, THRESHOLDS, Params, part


@part.figure(
    "xor",
    caption="XOR mixture with noise √d/2.83: test accuracy of heads on gradient features and on fixed ones.",
    shows=("C5a", "C5s", "C5t", "C5b", "C5c", "C5d", "C5v", "C5e"),
)
def xor(m: Measurements[Params]) -> alt.LayerChart:
    frame = charts.summarise(m.rows("test_accuracy", arm="xor"), "dim", "method")
    bayes = xor_bayes_accuracy(400, 20 / m.params.hard_ratio)  # depends on √d/σ alone
    chart: alt.LayerChart = charts.band(
        frame, x="dim", x_title="dimension d", y="test accuracy", colour="method"
    ) + charts.rules({"Bayes": bayes})
    return chart


@part.figure(
    "xor-kernels",
    caption="XOR mixture, 100 dimensions and noise 3: exact kernels, tuned, beside a head on gradient features "
    "and training of both layers, over the samples.",
    shows=("C5f", "C3k", "X2"),
)
def xor_kernels(m: Measurements[Params]) -> alt.LayerChart:
    frame = charts.summarise(m.rows("test_accuracy", arm="xor-kernels"), "samples", "method")
    chart: alt.LayerChart = charts.band(frame, x="samples", y="test accuracy", colour="method", shaded=False)
    return chart


@part.table(
    "xor-counts",
    caption="XOR mixture with noise √d/2.83: accuracy by the number of features, at the dimensions at which d² random "
    "ones were tried.",
    shows=("C5t", "C5w", "C5x"),
)
def xor_counts(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for dim in sorted({*m.params.wide_dims} & {*m.params.hard_dims}):
        counts = {"gradient": 4 * m.params.step_neurons, "relu 2d": 2 * dim, "relu d^1.5": int(dim**1.5)}
        found = {name: m.final("test_accuracy", arm="xor", dim=dim, method=name) for name in counts}
        found["relu d^2"] = m.final("test_accuracy", arm="xor-wide", dim=dim)
        counts["relu d^2"] = dim**2
        for name, accuracy in found.items():
            cells = {"d": dim, "features": name, "number": counts[name]}
            rows.append(cells | {"accuracy": charts.plus_minus(accuracy)})
    return pl.DataFrame(rows)


@part.table(
    "xor-noise",
    caption="XOR mixture at the largest dimension: accuracy with noise in proportion to √d and with noise 1.",
    shows=("C5b", "N3"),
)
def xor_noise(m: Measurements[Params]) -> pl.DataFrame:
    dim = m.params.hard_dims[-1]
    rows = []
    for method in METHODS:
        hard = m.final("test_accuracy", arm="xor", dim=dim, method=method)
        mild = m.final("test_accuracy", arm="xor-mild", method=method)
        rows.append({"method": method, "noise √d/2.83": charts.plus_minus(hard), "noise 1": charts.plus_minus(mild)})
    return pl.DataFrame(rows)


@part.table(
    "xor-tuning",
    caption="How the threshold of random ReLU features and the width of random Fourier features (in norms of a typical "
    "input) were tuned: validation accuracy of every candidate on the XOR mixture at the smallest dimension, on seeds "
    "kept for tuning (mean and half of the 95 % interval).",
    shows=("N4", "N19"),
)
def tuning(m: Measurements[Params]) -> pl.DataFrame:
    p = m.params
    tried: list[tuple[str, str, tuple[float, ...], float]] = [
        ("ReLU threshold", "xor-tuning", THRESHOLDS, p.random_threshold),
        ("Fourier width", "xor-fourier-tuning", FOURIER_WIDTHS, p.fourier_width),
    ]
    rows = []
    for name, arm, grid, taken in tried:
        for candidate in grid:
            accuracy = charts.plus_minus(m.final("validation_accuracy", arm=arm, candidate=candidate))
            choice = "chosen" if candidate == taken else ""
            rows.append({"features": name, "candidate": candidate, "accuracy": accuracy, "choice": choice})
    return pl.DataFrame(rows)
