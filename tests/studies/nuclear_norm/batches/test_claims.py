"""Where batches of few rows suffice: the law, and descent on both sides of it."""

from __future__ import annotations

import math

import pytest

from assay import lab
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
