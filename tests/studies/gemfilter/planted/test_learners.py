import pytest

pytest.importorskip("transformers", reason="the hand-set model is of a class of transformers")

from assay.studies.gemfilter.planted.learners import chunked_rows, planted_rows
from assay.studies.gemfilter.planted.problem import PlantedNeedle


def test_rows_tell_the_needle_from_its_absence():
    rows = planted_rows(PlantedNeedle(256, 2, pairs=2), 0, (0.5,), 2, "cpu")
    answered = [row for row in rows if "accuracy" in row.metrics]
    accuracy = {row.columns["method"]: row.metrics["accuracy"] for row in answered if "method" in row.columns}
    assert accuracy["gemfilter"] == accuracy["full"] == 1
    assert accuracy["absent"] == accuracy["random"] == 0
    assert {row.trials for row in answered} == {2}, "two prompts of one depth"


def test_in_chunks_only_facts_side_by_side_are_followed():
    depths = (0.0, 0.5)
    found = {}
    for name, apart in (("near", 1), ("far", 32)):
        rows = chunked_rows(PlantedNeedle(600, hops=2, pairs=2, apart=apart), 1, depths, 1, "cpu")
        found |= {(name, row.columns["method"]): row.metrics["accuracy"] for row in rows if "accuracy" in row.metrics}
    assert found == {("near", "whole"): 1, ("near", "chunks"): 1, ("far", "whole"): 1, ("far", "chunks"): 0}
