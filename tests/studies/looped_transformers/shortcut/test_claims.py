from __future__ import annotations

import polars as pl
import pytest

from assay.lab import Measurements, discovery

STUDY = discovery.find("looped-transformers")


@pytest.mark.parametrize(
    ("task_error", "distance", "verdict"), [(0.0, 0.9, "holds"), (1e-3, 0.9, "fails"), (0.0, 0.1, "fails")]
)
def test_an_answer_must_be_exact_and_far_from_the_parameter(task_error, distance, verdict):
    rows = [
        ("shortcut", seed, None, metric, value)
        for seed in range(3)
        for metric, value in (("task_error", task_error), ("parameter_error", distance + 0.01 * seed))
    ]
    schema = {"arm": pl.String, "seed": pl.Int64, "step": pl.Int64, "metric": pl.String, "value": pl.Float64}
    m = Measurements(pl.DataFrame(rows, schema=schema, orient="row"), STUDY.resolve("smoke", {}))
    assert STUDY.claims["C7b"].judge(m).verdict == verdict
