"""What the criteria can tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from assay.lab import Values, combine, farthest_from
from assay.studies.icl_scale.heads.claims import _norm_at_margin_one
from assay.studies.icl_scale.rank.claims import from_truncated


def test_a_truncation_keeps_the_first_gains_of_the_full_rank():
    full = [1.0, 2.0, 4.0]
    cut = np.array([[1.0, 0.0, 0.0], [1.0, 2.0, 0.0], full])
    assert from_truncated(cut) == 0
    others = np.array([[0.0, 2.0, 0.0], [1.0, 2.0, 0.0], full])  # rank 1 on the second direction
    assert from_truncated(others) == pytest.approx(0.5)
    assert from_truncated(cut + np.array([[0.0, 0.0, 0.4], [0] * 3, [0] * 3])) == pytest.approx(0.1)


def test_lengths_at_which_chance_is_missed_to_both_sides_do_not_cancel():
    found = [Values(dict.fromkeys(range(8), chance), "accuracy") for chance in (0.45, 0.55, 0.5)]
    margin = {"within": 0.01, "because": "of the claim"}
    assert combine(np.mean, found, "mean").equals(0.5, **margin).verdict == "holds"
    assert combine(farthest_from(0.5), found, "farthest").equals(0.5, **margin).verdict == "fails"


def test_heads_of_a_small_margin_do_not_have_a_small_norm():
    assert _norm_at_margin_one([0.0, 11.0, 12.0, 1.0, 1.0]) == pytest.approx(11 / 12)
    assert _norm_at_margin_one([0.04, 11.0, 12.0, 1.0, 0.5]) == pytest.approx(44 / 12)
    assert _norm_at_margin_one([0.0, 11.0, 12.0, 2.0, 3.0]) == pytest.approx(11 / 12)
    assert _norm_at_margin_one([0.0, 11.0, 12.0, 1.0, -0.1]) > 1
    assert _norm_at_margin_one([0.06, 1.0, 12.0, 1.0, 0.9]) > 1
