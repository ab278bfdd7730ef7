import pytest

pytest.importorskip("transformers", reason="the hand-set model is of a class of transformers")

from assay.studies.gemfilter.planted.learners import planted_rows
from assay.studies.gemfilter.planted.problem import PlantedNeedle


def test_rows_tell_the_needle_from_its_absence():
    rows = planted_rows(PlantedNeedle(256, 2, pairs=2), 0, (0.5,), 2, "cpu")
    answered = [row for row in rows if "accuracy" in row.metrics]
    accuracy = {row.columns["method"]: row.metrics["accuracy"] for row in answered if "method" in row.columns}
    assert accuracy["gemfilter"] == accuracy["full"] == 1
    assert accuracy["absent"] == accuracy["random"] == 0
    assert {row.trials for row in answered} == {2}, "two prompts of one depth"
