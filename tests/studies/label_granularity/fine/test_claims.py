from __future__ import annotations

import math

import polars as pl

from assay.lab import Judgement, Measurements
from assay.studies.label_granularity.fine.arms import Params
from assay.studies.label_granularity.fine.claims import part


def judged(claim: str, m: Measurements) -> Judgement:
    return part.claims[claim].judge(m)


def test_what_is_said_about_t0_fails_where_it_was_not_reached():
    values = {"t0": 30.4, "predicted_t0": 30.0, "common_output_at_t0": 0.2, "least_common_output": 0.1}
    values["hard_error_at_t0"] = 0.0
    rows = [
        ("fine", "exact", seed, None, metric, math.nan if seed == 1 else value)
        for metric, value in values.items()
        for seed in range(4)
    ]
    columns = ("arm", "setting", "seed", "step", "metric", "value")
    m = Measurements(pl.DataFrame(rows, schema=columns, orient="row"), Params())
    for claim in ("C3b", "C6g", "C6h"):
        assert judged(claim, m).verdict == "fails", claim
        assert "no finite value" in judged(claim, m).reason


def test_the_two_laws_of_patch_counts_are_judged_apart():
    rows = [
        ("fine", setting, seed, None, "growth_ratio_at_t0", ratio + 1e-3 * seed)
        for setting, ratio in (("exact", 0.5), ("bernoulli", 0.1))
        for seed in range(4)
    ]
    columns = ("arm", "setting", "seed", "step", "metric", "value")
    m = Measurements(pl.DataFrame(rows, schema=columns, orient="row"), Params())
    assert judged("C6f", m).verdict == "holds"
    assert judged("C6m", m).verdict == "fails"
    assert part.claims["C6m"].setting == "bernoulli"
