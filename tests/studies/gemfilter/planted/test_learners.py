import pytest

pytest.importorskip("transformers", reason="the hand-set model is of a class of transformers")

from assay.studies.gemfilter.planted.learners import planted_rows
from assay.studies.gemfilter.planted.problem import PlantedNeedle


def test_rows_tell_the_needle_from_its_absence():
    rows = planted_rows(PlantedNeedle(256, 2, pairs=2), 0, (0.5,), 2, "cpu")
    accuracy = {c["method"]: v["accuracy"] for c, v in rows if "method" in c and "accuracy" in v}
    assert accuracy["gemfilter"] == accuracy["full"] == 1
    assert accuracy["absent"] == accuracy["random"] == 0
