"""Where batches of few rows suffice: the law, and descent on both sides of it."""

from __future__ import annotations

import math

import polars as pl
import pytest

from assay import lab
from assay.studies.nuclear_norm.batches.arms import Params
from assay.studies.nuclear_norm.batches.claims import part
from assay.studies.nuclear_norm.batches.theory import few_rows_ratio, needed_ratio
from assay.studies.nuclear_norm.problem import Environments


@pytest.mark.parametrize("environmental", [100, 250, 550])
def test_the_two_ratios_meet_at_a_gamma_in_closed_form(environmental):
    problem = Environments(50 + environmental, 50, 1 / math.sqrt(3 + environmental / 50))
    assert few_rows_ratio(problem) == pytest.approx(needed_ratio(problem), rel=1e-12)


def test_descent_is_on_the_predicted_side_far_from_the_boundary(tmp_path):
    changed = {"row_shares": "0.125", "diagonal_samples": "1000", "diagonal_steps": "200", "diagonal_rate": "0.03"}
    found = lab.sweep(
        "nuclear-norm",
        {"diagonal_gamma": [0.15, 0.45], "diagonal_dim": [40, 160]},
        "P1",
        preset="smoke",
        set=changed,
        seeds=4,
        runs=tmp_path,
    )
    assert found.agreement == 1
    verdicts = {(cell.at["diagonal_gamma"], cell.at["diagonal_dim"]): cell.verdict for cell in found.cells}
    assert (verdicts[0.15, 40], verdicts[0.45, 160]) == ("holds", "fails")


def test_a_limit_that_keeps_an_environmental_feature_does_not_pass():
    def judged(kept: float) -> lab.Judgement:
        rows = [
            ("limited", limit, seed, None, metric, value, trials)
            for limit in (10, 50)
            for seed in range(5)
            for metric, value, trials in (
                ("accuracy", 1.0, 4000),
                ("environmental_kept", kept if (limit, seed) == (50, 2) else 0.0, None),
            )
        ]
        columns = ("arm", "limit", "seed", "step", "metric", "value", "trials")
        m = lab.Measurements(pl.DataFrame(rows, schema=columns, orient="row"), Params())
        return part.claims["C7e"].judge(m)

    assert judged(0.0).verdict == "holds"
    assert judged(0.0).low < 1  # no surer than the inputs that were tried
    assert judged(1.0).verdict != "holds"
