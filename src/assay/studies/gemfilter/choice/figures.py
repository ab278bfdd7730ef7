"""What tuning prompts choose for a real model, and how far the choice carries."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part


@part.table(
    "choice",
    caption="Real model: the filter layer and rule that tuning prompts choose, seed by seed from the smallest to the "
    "largest, against those of the study; and the share of the needle's tokens that the choice keeps in prompts held "
    "out, with its 95 % interval over seeds.",
    shows=("C4e", "N7", "N9"),
)
def choice(m: Measurements[Params]) -> pl.DataFrame:
    layer, rule = m.params.filter_layer, m.params.filter_rule
    return charts.quantities(
        {
            "layer chosen": (m.every("chosen_layer", arm="choice"), f"{layer} ± 2"),
            "rule chosen: window (1) or logits (0)": (m.every("chose_window", arm="choice"), f"{rule}"),
            "share of held-out needles kept": (m.final("held_out_recall", arm="choice"), "at least 0.9"),
        }
    )
