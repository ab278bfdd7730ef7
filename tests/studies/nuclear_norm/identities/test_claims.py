from __future__ import annotations

import polars as pl
import pytest

from assay.lab import Measurements, Params
from assay.studies.nuclear_norm.identities.claims import part


@pytest.mark.parametrize(("growth", "moved", "verdict"), [(3.0, 0.0, "holds"), (3.5, 0.5, "fails"), (3, 1e-3, "fails")])
def test_an_error_of_one_rank_makes_up_for_none_of_the_other(growth, moved, verdict):
    rows = [
        ("norm-identities", seed, None, metric, value)
        for metric, value in (("printed_moved", growth), ("stable_rank_moved", moved))
        for seed in range(3)
    ]
    columns = ("arm", "seed", "step", "metric", "value")
    frame = pl.DataFrame(rows, schema=columns, orient="row", strict=False)
    assert part.claims["X9"].judge(Measurements(frame, Params())).verdict == verdict
