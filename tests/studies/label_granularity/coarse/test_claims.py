from __future__ import annotations

import polars as pl
import pytest

from assay.lab import Judgement, Measurements
from assay.studies.label_granularity.coarse.arms import Params
from assay.studies.label_granularity.coarse.claims import part


def judged(claim: str, columns: tuple[str, ...], rows: list[tuple]) -> Judgement:
    return part.claims[claim].judge(Measurements(pl.DataFrame(rows, schema=columns, orient="row"), Params()))


def test_the_least_share_of_errors_stays_a_share():
    least = (1.0, 1.0, 1.0, 0.9, 0.5, 1.0, 0.8, 1.0)
    rows = [
        ("coarse", "exact", seed, step, "hard_error", value, 256)
        for seed, low in enumerate(least)
        for step, value in ((0, 0.0), (1, 1.0), (2, low))
    ]
    found = judged("C2b", ("arm", "setting", "seed", "step", "metric", "value", "trials"), rows)
    assert found.verdict == "holds"
    assert found.estimate == pytest.approx(0.9)
    assert 0.4 < found.low < found.high <= 1


def test_the_first_phase_ends_in_the_predicted_step_of_every_network_and_not_in_the_mean():
    def verdict(last: float) -> str:
        ends = (20.2, 20.4, 20.6, 20.5, 20.3, 20.7, 20.5, last)
        values = {"t0": ends, "predicted_t0": (20.0,) * len(ends)}
        rows = [
            ("first-phase", seed, None, name, value)
            for name, found in values.items()
            for seed, value in enumerate(found)
        ]
        return judged("C5h", ("arm", "seed", "step", "metric", "value"), rows).verdict

    assert verdict(20.9) == "holds"
    assert verdict(21.2) == "fails"
