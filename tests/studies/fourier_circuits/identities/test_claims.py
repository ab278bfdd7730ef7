from __future__ import annotations

import polars as pl
import pytest

from assay.lab import Measurements, discovery

study = discovery.find("fourier-circuits")


@pytest.mark.parametrize(
    ("metric", "value"),
    [("sum_elsewhere_low", -0.7), ("sum_elsewhere_high", 0.0), ("sum_at_answer", 0.5), ("sum_at_answer", float("nan"))],
)
def test_every_sum_is_judged(metric, value):
    right = {"sum_at_answer": 0.0, "sum_elsewhere_low": -0.5, "sum_elsewhere_high": -0.5}

    def judge(sums: dict[str, float]) -> str:
        frame = pl.DataFrame(
            [("identities", p, seed, name, sums[name]) for name in sums for p in (3, 7) for seed in range(3)],
            schema=["arm", "p", "seed", "metric", "value"],
            orient="row",
        )
        found = study.claims["C1g"].judge(Measurements(frame, study.resolve("smoke", {})))
        assert found.method == "exact"
        return found.verdict

    assert judge(right) == "holds"
    assert judge(right | {metric: value}) == "fails"
