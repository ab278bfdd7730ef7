"""Figures 4.1, 4.2 and C.1 to C.4 redrawn from our runs: the neurons of trained networks and their frequencies."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import polars as pl
import torch

from assay.lab import Measurements
from assay.probes.fourier import fourier_probe

from .arms import Params, part
from .theory import Vector, trigonometric_interpolation

_SHOWN = 4  # neurons of a figure
_DOTS, _WAVE, _BARS = "#c0392b", "#9db8d9", "#3366aa"


@part.figure(
    "neurons",
    caption="Figures 4.1, C.1 and C.3: weights u_1(a) of random live neurons after training (dots), the trigonometric "
    "polynomial through them (line), and beside it the power at every frequency, as a share. Most are one cosine; the "
    "others are smaller neurons that training has not sorted or is switching off.",
    shows=("C4b", "C4i", "C4p"),
)
def neurons(m: Measurements[Params]) -> alt.HConcatChart:
    return alt.hconcat(*(_neurons(m, setting) for setting in m.params.networks), spacing=40)


def _neurons(m: Measurements[Params], setting: str) -> alt.VConcatChart:
    params = m.params_of(setting)
    weights = m.array("inputs", arm="network", setting=setting)[0]
    norm = _last(m, "norm", setting)[0]
    alive = np.flatnonzero(norm > 0.1 * norm.max())
    chosen = np.random.default_rng(0).choice(alive, min(_SHOWN, len(alive)), replace=False)
    rows = [_neuron(weights[:, neuron].astype(float), last=neuron == chosen[-1]) for neuron in chosen]
    return alt.vconcat(*rows, title=params.sizes, spacing=4)


def _last(m: Measurements[Params], name: str, setting: str) -> np.ndarray[Any, Any]:
    """An array of the networks after training, seeds first."""
    return m.array(name, step=m.params_of(setting).steps, arm="network", setting=setting)


def _neuron(u: Vector, *, last: bool) -> alt.HConcatChart:
    """One neuron's weights with the wave through them, and their spectrum; the last has the axes' titles."""
    fine = np.linspace(0, len(u) - 1, 8 * len(u))
    wave = pl.DataFrame({"a": fine, "u": trigonometric_interpolation(u, fine)})
    dots = pl.DataFrame({"a": np.arange(len(u)), "u": u})
    share = fourier_probe(torch.from_numpy(u)).normalised.numpy()
    power = pl.DataFrame({"frequency": np.arange(1, len(share) + 1), "power": share})
    line = alt.Chart(wave, width=230, height=70).mark_line(color=_WAVE).encode(x="a:Q", y="u:Q")
    points = alt.Chart(dots).mark_point(filled=True, size=14, color=_DOTS, opacity=1)
    points = points.encode(x=alt.X("a:Q", title="a" if last else None), y=alt.Y("u:Q", title="u"))
    bars = alt.Chart(power, width=130, height=70).mark_bar(color=_BARS)
    bars = bars.encode(
        x=alt.X("frequency:Q", title="frequency" if last else None),
        y=alt.Y("power:Q", title="power", scale=alt.Scale(domain=[0, 1])),
    )
    return alt.hconcat(line + points, bars, spacing=8)


@part.figure(
    "frequencies",
    caption="Figures 4.2, C.2 and C.4, all seeds together. Left: share of each frequency in Σ‖θ_i‖^{k+1} (line: even). "
    "Right: the largest normalised power of every neuron, folded and without the constant, at the start and after "
    "training; neurons whose norm fell below 10 % of the largest are drawn apart.",
    shows=("C2f", "C2g", "C2h", "C4e", "C4g", "C4l", "C4n", "C4s", "C4u"),
)
def frequencies(m: Measurements[Params]) -> alt.VConcatChart:
    rows = [
        alt.hconcat(_shares(m, setting), _powers(m, setting), title=m.params_of(setting).sizes)
        for setting in m.params.networks
    ]
    chart: alt.VConcatChart = alt.vconcat(*rows).resolve_scale(color="shared")
    return chart


def _shares(m: Measurements[Params], setting: str) -> alt.LayerChart:
    """The share of each frequency in the weight of a network, beside the even share."""
    params = m.params_of(setting)
    norm, found = _last(m, "norm", setting), _last(m, "frequency", setting)
    half = (params.modulus - 1) // 2
    weight = norm.astype(float) ** (params.terms + 1)
    share = [float(weight[found == j].sum() / weight.sum()) for j in range(1, half + 1)]
    bars = alt.Chart(pl.DataFrame({"frequency": np.arange(1, half + 1), "share": share}), width=260, height=170)
    bars = bars.mark_bar(color=_BARS).encode(
        x=alt.X("frequency:O", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
        y=alt.Y("share:Q", title="share of weight"),
    )
    even = alt.Chart(pl.DataFrame({"y": [1 / half]})).mark_rule(strokeDash=[3, 3], color="#555").encode(y="y:Q")
    chart: alt.LayerChart = bars + even
    return chart


def _powers(m: Measurements[Params], setting: str) -> alt.Chart:
    """How the neurons' largest power is distributed, before and after."""
    norm, power = _last(m, "norm", setting), _last(m, "power", setting)
    live = norm > 0.1 * norm.max(1, keepdims=True)
    groups = {
        "at the start": m.array("power", step=0, arm="network", setting=setting).ravel(),
        "after, live": power[live],
        "after, dead": power[~live],
    }
    edges = np.linspace(0, 1, 41)
    frames = [
        pl.DataFrame(
            {"low": edges[:-1], "high": edges[1:], "share": np.histogram(x, edges)[0] / norm.size, "neurons": name}
        )
        for name, x in groups.items()
    ]
    order = list(groups)
    shades = alt.Scale(domain=order, range=["#999", _DOTS, "#e8b4ae"])
    bars = alt.Chart(pl.concat(frames), width=300, height=170).mark_bar(opacity=0.75)
    chart: alt.Chart = bars.encode(
        x=alt.X("low:Q", bin="binned", title="largest normalised power", scale=alt.Scale(domain=[0, 1])),
        x2="high:Q",
        y=alt.Y("share:Q", title="share of neurons", stack=None),
        color=alt.Color("neurons:N", title=None, sort=order, scale=shades),
    )
    return chart
