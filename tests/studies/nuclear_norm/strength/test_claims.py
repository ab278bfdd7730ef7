from __future__ import annotations

import polars as pl

from assay.lab import Measurements
from assay.studies.nuclear_norm.strength.arms import Params
from assay.studies.nuclear_norm.strength.claims import part


def verdict(accuracies: list[float]) -> str:
    params = Params(strengths=(0.1, 0.3, 1.0), images="digits")
    rows = [
        ("strength", "patch", "nuclear norm", lam, seed, None, "accuracy", accuracy + 1e-3 * (-1) ** (seed + i))
        for i, (lam, accuracy) in enumerate(zip((0.0, *params.strengths), accuracies, strict=True))
        for seed in range(6)
    ]
    columns = ("arm", "cue", "penalty", "lam", "seed", "step", "metric", "value")
    return part.claims["C3e"].judge(Measurements(pl.DataFrame(rows, schema=columns, orient="row"), params)).verdict


def test_too_strong_a_norm_is_worse_than_a_weaker_one_and_not_only_than_none():
    assert verdict([0.5, 0.6, 0.7, 0.4]) == "holds"
    assert verdict([0.7, 0.4, 0.45, 0.5]) == "fails"
