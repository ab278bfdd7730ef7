"""Cells of a map that go wrong: what diverges, what raises, and what becomes of the others."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from assay import lab
from assay.lab.errors import BrokenClaim

FIXTURES = str(Path(__file__).parent / "fixtures")


def odd(tmp_path, places, **options):
    return lab.sweep("odd", {"at": places}, "C1", runs=tmp_path, studies=FIXTURES, jobs=1, **options)


@pytest.mark.parametrize("lost", [1, 4])
def test_a_diverged_cell_is_on_no_predicted_side_above_its_edge(tmp_path, lost):
    """A value that is not finite counts as the worst one, also where the other seeds leave an estimate."""
    found = odd(tmp_path, [1, 3, 6], set={"lost": lost})
    diverged = found.cells[1]
    assert (diverged.verdict, diverged.met, diverged.agrees, diverged.margin) == ("fails", False, False, -math.inf)
    assert found.agreement == pytest.approx(2 / 3)
    assert found.decided_agreement == pytest.approx(2 / 3)
    assert f"{lost} of 4 seeds have no finite value" in repr(found)
    (stored,) = lab.maps("odd", runs=tmp_path)
    assert (stored.agreement, stored.cells[1].margin) == (found.agreement, -math.inf)
    assert stored.to_dict() == found.to_dict()


def test_two_diverged_seeds_decide_nothing_and_help_nothing(tmp_path):
    cell = odd(tmp_path, [1, 3], set={"lost": 1}, seeds=2).cells[1]
    assert (cell.verdict, cell.estimate > 0, cell.met) == ("undecided", True, False)


def test_one_cell_that_goes_wrong_costs_no_other(tmp_path):
    """A unit that raises, a claim that raises, a theory that raises."""
    found = odd(tmp_path, [1, 2, 4, 5, 6])
    assert [cell.verdict for cell in found.cells] == ["fails", "not run", "not run", "holds", "holds"]
    assert [cell.failed for cell in found.cells] == [False, True, True, True, False]
    unit, claim, theory = found.cells[1:4]
    assert unit.reason.startswith("RuntimeError: no such place")
    assert claim.reason.startswith("claim C1 cannot be judged: ZeroDivisionError: not at four")
    assert theory.reason.startswith("nothing is predicted: ValueError: no theory at five")
    assert all("study.py, line" in cell.reason for cell in (unit, claim, theory))
    assert (math.isnan(theory.predicted), theory.agrees, claim.agrees) == (True, None, None)
    assert (found.agreement, len(found.compared)) == (1, 2)
    (stored,) = lab.maps("odd", runs=tmp_path)
    assert stored.to_dict() == found.to_dict()
    assert "no theory at five" in repr(found)


@pytest.mark.parametrize("first", [2, 4])
def test_where_the_first_cell_breaks_the_claim_says_its_arms_in_another(tmp_path, first):
    assert [cell.verdict for cell in odd(tmp_path, [first, 1, 6]).cells] == ["not run", "fails", "holds"]


def test_a_claim_that_is_broken_everywhere_leaves_no_map(tmp_path):
    with pytest.raises(BrokenClaim, match="cannot be judged"):
        lab.sweep("mapped", {"signal": [1, 2]}, "C3", arms="measured", runs=tmp_path, studies=FIXTURES, jobs=1)
    assert lab.maps("mapped", runs=tmp_path) == []
