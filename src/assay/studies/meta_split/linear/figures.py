"""The linear centroid model beside the network, with and without a split."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, charts

from ..learners import SPLITS, TT, TV
from ..theorems.claims import ours
from .arms import Params, part

_WORDS = {TT: "without a split", TV: "with a split", "support only": "support half in both loops"}


@part.table(
    "linear",
    caption="A linear centroid model (ridge regression inside, least squares outside) and FOMAML's two-layer network "
    "on the same planted tasks: squared error and test loss on new tasks, means over seeds with 95 % intervals. By the "
    "linear theory the model loses by a split; the network gains by it. With both loops on the support half there is "
    "no split and there are as few equations as with one.",
    shows=("C9b", "C9c", "C9d"),
)
def linear(m: Measurements[Params]) -> pl.DataFrame:
    rows = []
    for split, words in _WORDS.items():
        error = charts.measured(m.final("linear_error", arm="linear", split=split))
        loss = charts.measured(ours(m, "test_loss", split)) if split in SPLITS else "–"
        rows.append({"training": words, "linear model, squared error": error, "network, test loss": loss})
    return pl.DataFrame(rows)
