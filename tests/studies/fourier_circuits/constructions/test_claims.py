from __future__ import annotations

import polars as pl
import pytest

from assay.lab import Measurements, NotMeasured, discovery

study = discovery.find("fourier-circuits")


def measured(rows: list[tuple[str, int, int, int, float]]) -> Measurements:
    """Constructed networks: (construction, p, k, neurons, margin over γ*), the same in three seeds."""
    frame = pl.DataFrame(
        [("construction", *row[:4], seed, "margin_ratio", row[4]) for row in rows for seed in range(3)],
        schema=["arm", "construction", "p", "k", "neurons", "seed", "metric", "value"],
        orient="row",
    )
    return Measurements(frame, study.resolve("smoke", {}))


@pytest.mark.parametrize(
    ("neurons", "margin", "verdict"), [(32 * 2, 1.0, "holds"), (32 * 2, 0.99, "fails"), (56 * 2, 1.0, "fails")]
)
def test_more_neurons_than_the_sources_show_nothing(neurons, margin, verdict):
    rows = [("polarisation", 5, 2, 16, 1.0), ("polarisation", 5, 3, neurons, margin)]
    assert study.claims["C1a"].judge(measured(rows)).verdict == verdict


@pytest.mark.parametrize(
    ("claim_id", "construction", "rows", "verdict"),
    [
        ("C3c", "thirds", [(5, 2, 18, 1.0), (5, 3, 54, 1.0)], "holds"),
        ("C3c", "thirds", [(5, 3, 54, 1.0), (5, 4, 162, 0.9)], "fails"),
        ("C3c", "thirds", [(5, 3, 64, 1.0)], "fails"),
        ("C3g", "circle", [(5, 2, 12, 1.0), (5, 3, 36, 1.0)], "holds"),
        ("C3g", "circle", [(5, 2, 18, 1.0), (5, 3, 36, 1.0)], "fails"),
    ],
)
def test_fewer_neurons_are_counted(claim_id, construction, rows, verdict):
    found = study.claims[claim_id].judge(measured([(construction, *row) for row in rows]))
    assert found.verdict == verdict


def test_thirds_are_fewer_from_three_inputs_on():
    with pytest.raises(NotMeasured, match="k from 3 on"):
        study.claims["C3c"].judge(measured([("thirds", 5, 2, 18, 1.0)]))
