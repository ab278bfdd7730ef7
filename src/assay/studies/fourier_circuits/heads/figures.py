"""Figures 4.3, C.5 and C.6 redrawn from our runs: what heads compare, as an image, and its modes."""

from __future__ import annotations

from typing import Any, Literal

import altair as alt
import numpy as np
import polars as pl
import torch

from assay.lab import Measurements
from assay.probes.score_spectrum import score_spectrum

from ..grokking.arms import STRONG, Params
from .arms import part

Table = np.ndarray[Any, Any]


@part.figure(
    "heads",
    caption="Figures 4.3, C.5 and C.6: E W^K W^{Qᵀ} Eᵀ of heads of the first layer on the number tokens, "
    "centred (keys up, queries across), and below it the power of its modes. Left: before training. Then heads after "
    "training with strong weight decay (k = 2; at the source's sizes k = 3), the last with the source's.",
    shows=("C5a", "C5b", "C5e", "C5g", "C5j"),
)
def heads(m: Measurements[Params]) -> alt.HConcatChart:
    arm, strong, weak = "grokking", STRONG, "sum-of-2"
    if "attention" in m.frame["arm"]:
        arm, strong, weak = "attention", "heads-3-strong", "heads-3"
    tables = [("untrained", m.array("untrained heads", arm=arm, setting=strong)[0, 0])]
    trained = m.array("heads", arm=arm, setting=strong)[0]
    tables += [(f"head {i + 1}", trained[i]) for i in range(min(2, len(trained)))]
    tables.append((f"decay {m.params_of(weak).decay:g}", m.array("heads", arm=arm, setting=weak)[0, 0]))
    images = alt.hconcat(*(_head(title, table) for title, table in tables))
    chart: alt.HConcatChart = images.resolve_scale(color="independent")
    return chart


def _head(title: str, table: Table) -> alt.VConcatChart:
    spectrum = score_spectrum(torch.from_numpy(table).double())
    image = _image(spectrum.scores.numpy(), "redblue", title, "query", "key", 0)
    power = (spectrum.power / spectrum.power.sum()).numpy()
    modes = _image(power, "greys", "", "query frequency", "key frequency", 1)
    chart: alt.VConcatChart = alt.vconcat(image, modes).resolve_scale(color="independent")
    return chart


def _image(values: Table, scheme: Literal["redblue", "greys"], title: str, x: str, y: str, first: int) -> alt.Chart:
    rows, columns = np.indices(values.shape)
    frame = pl.DataFrame({"x": columns.ravel() + first, "y": rows.ravel() + first, "v": values.ravel().round(5)})
    largest = float(np.abs(values).max())
    domain = [-largest, largest] if scheme == "redblue" else [0, largest]
    axis = alt.Axis(values=[first, len(values) - 1 + first], labelAngle=0, ticks=False)
    pixels = alt.Chart(frame, width=165, height=165, title=title).mark_rect(stroke=None)
    image: alt.Chart = pixels.encode(
        x=alt.X("x:O", title=x, axis=axis),
        y=alt.Y("y:O", title=y, axis=axis, sort="descending"),
        color=alt.Color("v:Q", legend=None, scale=alt.Scale(scheme=scheme, domain=domain)),
    )
    return image
