from __future__ import annotations

import polars as pl
import pytest

from assay.lab import Measurements, discovery
from assay.studies.looped_transformers.steps.arms import RULES

STUDY = discovery.find("looped-transformers")


@pytest.mark.parametrize(("error", "verdict"), [(0.3, "holds"), (0.6, "fails")])
def test_a_rule_is_judged_after_its_first_loop(error, verdict):
    """Before it error and bound are 1, which would be the worst case of every rule that keeps its bound."""
    rows = [
        ("steps", rule, seed, step, metric, value)
        for rule in RULES
        for seed in range(3)
        for step, values in enumerate(((1.0, 1.0), (error, 0.5)))
        for metric, value in zip(("parameter_error", "bound"), values, strict=True)
    ]
    schema = ["arm", "rule", "seed", "step", "metric", "value"]
    found = STUDY.claims["X8c"].judge(
        Measurements(pl.DataFrame(rows, schema=schema, orient="row"), STUDY.resolve("smoke", {}))
    )
    assert (found.verdict, found.estimate) == (verdict, pytest.approx(error / 0.5))
