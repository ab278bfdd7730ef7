"""Equal shares of few prompts are not called equal rates: such claims are about every seed."""

import polars as pl
import pytest

from assay.lab import Measurements
from assay.studies.gemfilter.planted.arms import Params
from assay.studies.gemfilter.planted.claims import keeps_accuracy, printed_listing

LENGTHS = (256, 1024)


def measured(ours, full, **others):
    """Shares of ten prompts per seed, by length."""
    rows = [
        ("planted", "two-hop", seed, length, method, "accuracy", value, 10)
        for method, shares in {"gemfilter": ours, "full": full, **others}.items()
        for length, values in zip(LENGTHS, shares, strict=True)
        for seed, value in enumerate(values)
    ]
    names = ["arm", "task", "seed", "length", "method", "metric", "value", "trials"]
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(step=pl.lit(None, pl.Int64))
    return Measurements(frame, Params(lengths=LENGTHS))


ALL = ([1.0] * 3, [1.0] * 3)


def test_one_prompt_lost_at_any_length_is_a_miss():
    assert keeps_accuracy(measured(ALL, ALL)).verdict == "holds"
    lost = ([1.0] * 3, [1.0, 0.9, 1.0])
    judged = keeps_accuracy(measured(lost, ALL))
    assert judged.verdict == "fails"
    assert "seed 1" in judged.reason
    assert judged.estimate == pytest.approx(-0.1)


def test_the_printed_listing_is_compared_with_gemfilter():
    few, many = ([0.1, 0.2, 0.0], [0.1] * 3), ([0.9, 0.8, 0.9], [0.9] * 3)
    assert printed_listing(measured(ALL, ALL, listing=few)).verdict == "holds"
    assert printed_listing(measured(ALL, ALL, listing=many)).verdict != "holds"
