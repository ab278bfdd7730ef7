from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from assay.lab import Measurements, UserError
from assay.studies.nuclear_norm.images import arms
from assay.studies.nuclear_norm.images.claims import above_curve
from assay.studies.nuclear_norm.study import study


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"invariants": "100,50"}, "invariants needs values that rise"),
        ({"invariants": "36"}, "greater than or equal to 37"),
        ({"gammas": "0.2", "invariants": "50"}, "lies above"),
        ({"gammas": "0.5"}, "less than 0.5"),
        ({"gammas": ""}, "at least 1 item"),
        ({"support_sizes": "9"}, "less than or equal to 8"),
        ({"row_shares": "2,1"}, "row_shares needs values that rise"),
        ({"row_shares": "0.001,2"}, "fewer than 2 rows"),
        ({"limits": "60"}, "limits go up to"),
        ({"diagonal_dim": "10"}, "invariant"),
        ({"strengths": "1,0.1"}, "strengths needs values that rise"),
        ({"strengths": "0"}, "greater than 0"),
        ({"network": "forest"}, "perceptron"),
    ],
)
def test_bad_parameters_get_one_sentence(overrides, words):
    with pytest.raises(UserError, match=words) as refusal:
        study.resolve("laptop", overrides)
    assert "\n" not in str(refusal.value)


def test_the_sources_tables_are_whole_and_every_average_rises():
    """The averages of Tables E.1 to E.5 are those of Table 6.1 where both print them, two exchanged rows aside."""
    paper = pl.read_csv(Path(arms.__file__).parents[1] / "paper.csv", comment_prefix="#")
    assert len(paper) == 774
    main = paper.filter(pl.col("where") == "Table 6.1")
    details = paper.filter(pl.col("where").str.starts_with("Table E.") & (pl.col("domain") == "average"))
    both = main.join(details.filter(pl.col("where") != "Table E.6"), on=["data", "method"], suffix="_detail")
    apart = both.filter(pl.col("value") != pl.col("value_detail"))
    assert set(apart["method"]) == {"mDSDI", "Fishr"}
    assert set(apart["data"]) == {"OfficeHome"}
    averages = dict(main.filter(pl.col("data") == "average").select("method", "value").iter_rows())
    assert averages["ERM-NU"] > averages["ERM"]
    assert averages["SWAD-NU"] > averages["SWAD"]
    domains = paper.filter(
        pl.col("where").str.starts_with("Table E.") & (pl.col("where") != "Table E.6") & (pl.col("domain") != "average")
    )
    assert domains.select("data", "domain").unique().height == 22


def test_a_gain_counts_above_what_the_baseline_shows_on_its_way():
    looks = [(10, 0.80, 0.70), (20, 0.90, 0.60), (30, 0.95, 0.40)]
    rows = []
    for seed, (validation, accuracy) in enumerate([(0.85, 0.65), (0.99, 0.50), (0.70, 0.60)]):
        for step, val, out in looks:
            rows += [("ERM", seed, step, "look_validation", val), ("ERM", seed, step, "look_accuracy", out)]
        rows += [("ERM-NU", seed, None, "validation", validation), ("ERM-NU", seed, None, "accuracy", accuracy)]
    schema = {"method": pl.String, "seed": pl.Int64, "step": pl.Int64, "metric": pl.String, "value": pl.Float64}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        arm=pl.lit("benchmark"), cue=pl.lit("texture"), target=pl.lit("reversed")
    )
    found = above_curve(Measurements(frame, study.resolve("smoke", {})), "texture", "ERM-NU", "reversed")
    assert found.by_seed == pytest.approx({0: 0.65 - 0.60, 1: 0.50 - 0.40, 2: 0.60 - 0.70})
