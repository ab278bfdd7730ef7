"""What the method states about its own cost, counted on small random models."""

from __future__ import annotations

import polars as pl

from assay.lab import Measurements, charts

from .arms import Params, part

_WHAT = {
    "operations_apart": "matrix operations counted / cost model − 1, without the masked half of attention",
    "cache_apart": "bytes of a cache − 2·m·H_kv·d·L numbers",
    "layers_wrong": "layers and MLPs that GemFilter's first pass runs beyond those below its layer",
    "position_apart": "largest position fed while decoding − the one stated",
    "sets_apart": "sets of kept tokens − one for the model (GemFilter), one a layer and key-value head (SnapKV)",
    "tokens_apart": "tokens that differ from plain generation, with a budget for the whole prompt",
    "watched_apart": "tokens noted in a shared prefill that differ from GemFilter's own selection",
}


@part.table(
    "counts",
    caption="Small random models: what the method and its baselines state about operations, memory, layers, positions "
    "and kept sets against what is counted, and what must be equal: the smallest and the largest deviation over seeds.",
    shows=("C3a", "C3b", "C3c", "C3g", "C7a", "N1", "N2"),
)
def counts(m: Measurements[Params]) -> pl.DataFrame:
    return charts.quantities({what: (m.every(metric, arm="exact"), "0") for metric, what in _WHAT.items()})
