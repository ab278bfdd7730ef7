from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.lab.contours import zero_lines
from assay.lab.errors import UserError
from assay.lab.grids import coarse_to_fine, parse_axis


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1,2,4", ["1", "2", "4"]),
        ("a=0.1..0.5:5", ["0.1", "0.2", "0.3", "0.4", "0.5"]),
        ("a=1..1000:4log", ["1", "10", "100", "1000"]),
        ("a=2..9:4", ["2", "4", "7", "9"]),
        ("a=3..1:3", ["3", "2", "1"]),
        ("b.c=plain,wide", ["plain", "wide"]),
    ],
)
def test_values_along_an_axis(text, values):
    assert parse_axis(text) == (text.partition("=")[0], values)


def test_a_range_of_very_many_values_is_refused_before_it_is_made():
    with pytest.raises(UserError, match="at most 10000"):
        parse_axis("a=1..1e9:1000000000")


@pytest.mark.parametrize("text", ["a", "a=", "=1,2", "a=1..", "a=1..2", "a=1..1:4", "a=0..5:3log", "a=x..y:3", "a=1,1"])
def test_what_is_no_axis_is_refused(text):
    with pytest.raises(UserError):
        parse_axis(text)


@given(st.lists(st.integers(2, 20), min_size=1, max_size=2))
def test_without_a_budget_every_cell_comes_once(lengths):
    rounds = list(coarse_to_fine(lengths, lambda corners: False, everywhere=True))
    every = [place for places in rounds for place in places]
    assert sorted(every) == sorted(itertools.product(*(range(length) for length in lengths)))
    assert set(itertools.product(*((0, length - 1) for length in lengths))) <= set(rounds[0])


@given(st.integers(2, 40), st.integers(2, 40), st.integers(0, 80))
def test_refining_finds_a_straight_boundary(across, up, level):
    side = {(i, j): i + j > level for i in range(across) for j in range(up)}
    seen = [
        place
        for places in coarse_to_fine(
            [across, up], lambda corners: len({side[corner] for corner in corners}) > 1, everywhere=False
        )
        for place in places
    ]
    assert len(seen) == len(set(seen))
    near = {(i, j) for i, j in side for k in (-1, 1) if side.get((i + k, j), side[i, j]) != side[i, j]}
    assert near <= set(seen)


def test_zero_lines_lie_on_the_zero():
    segments = zero_lines(lambda x, y: x * x + y * y - 4, {"x": [0, 1, 2, 3], "y": [0, 1, 2, 3]})
    assert segments
    for x, y, x2, y2 in segments:
        assert (x * x + y * y) ** 0.5 == pytest.approx(2, abs=0.02)
        assert (x2 * x2 + y2 * y2) ** 0.5 == pytest.approx(2, abs=0.02)
    assert zero_lines(lambda x: x - 1.5, {"x": [1, 2, 3]})[0][0] == pytest.approx(0.5)
    assert zero_lines(lambda x: {"a": -1.0, "b": 1.0}[x], {"x": ["a", "b"]}) == [(0.5, 0.0, 0.5, 0.0)]
    assert zero_lines(lambda x, y: float("nan"), {"x": [1, 2], "y": [1, 2]}) == []
