"""The drawing of a judgement: everything inside the frame, the shade where the criterion is met."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.lab import Judgement, Region
from assay.report import intervals

NUMBERS = st.floats(-1e12, 1e12, allow_nan=False)


def drawn(judgement):
    return ElementTree.fromstring(str(intervals.draw(judgement)))


def part(tree, kind):
    return next(element for element in tree if element.get("class") == kind)


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS).map(sorted), NUMBERS)
def test_everything_lies_inside_the_frame(triple, edge):
    low, estimate, high = triple
    tree = drawn(Judgement("holds", "x", estimate, low, high, 3, region=Region(low=edge)))
    for element in tree:
        for name in ("x", "x1", "x2", "cx"):
            if element.get(name) is not None:
                assert -2 <= float(element.get(name)) <= intervals.WIDTH + 2


def test_the_interval_is_in_the_shade_exactly_when_it_meets_the_criterion():
    tree = drawn(Judgement("holds", "x ≥ 0.5", 0.7, 0.6, 0.8, 3, region=Region(low=0.5)))
    shade, span = part(tree, "region"), part(tree, "span")
    assert float(shade.get("x")) < float(span.get("x1")) < float(span.get("x2"))
    assert float(shade.get("x")) + float(shade.get("width")) == pytest.approx(intervals.WIDTH)
    tree = drawn(Judgement("fails", "x ≤ 0.5", 0.7, 0.6, 0.8, 3, region=Region(high=0.5)))
    shade, span = part(tree, "region"), part(tree, "span")
    assert float(shade.get("x")) + float(shade.get("width")) < float(span.get("x1"))


def test_values_far_apart_get_a_logarithmic_axis():
    near = intervals.draw(Judgement("holds", "", 0.1, 0.1, 0.1, 3, region=Region(high=1)))
    far = intervals.draw(Judgement("holds", "", 1e-9, 1e-9, 1e-9, 3, region=Region(high=1)))
    assert "log scale" not in near
    assert "log scale" in far


def test_open_edges_are_dashed_and_close_edges_share_a_label():
    assert "excluded" in intervals.draw(Judgement("holds", "", 1, 1, 1, 3, region=Region(low=0, open=True)))
    text = intervals.draw(Judgement("fails", "", 9, 8, 10, 3, region=Region(0.5, 0.505)))
    assert re.findall("<text[^>]*>([^<]*)", text) == ["0.5 to 0.505"]


def test_what_is_missing_is_not_drawn():
    assert intervals.draw(Judgement("not run", "", reason="no arm")) == ""
    assert intervals.draw(Judgement("undecided", "x > 0", math.nan, region=Region(low=0))) == ""
    lone = intervals.draw(Judgement("undecided", 'x > "0" <b>', 1.0, seeds=2, region=Region(low=0)))
    assert 'class="dot"' in lone
    assert 'class="span"' not in lone
    assert "<b>" not in lone
    assert intervals.draw(Judgement("holds", "no region", 1.0, 0.5, 1.5, 3))


def test_every_seed_has_a_dot_inside_the_frame():
    seeds = (0.55, 0.7, 0.95)
    tree = drawn(Judgement("holds", "x ≥ 0.5", 0.7, 0.6, 0.8, 3, region=Region(low=0.5), by_seed=seeds))
    (group,) = (element for element in tree if element.get("class") == "seeds")
    dots = [float(element.get("cx")) for element in group]
    assert dots == sorted(dots)
    assert len(dots) == 3
    assert 0 < dots[0] < dots[-1] < intervals.WIDTH


@pytest.mark.parametrize(
    "judgement",
    [
        Judgement("holds", "|a*|/k ≤ 32", 32 - 1e-12, region=Region(high=32), method="exact"),
        Judgement("holds", "every x ≤ 0 (tolerance 1e-10)", 6e-15, 9e-17, 6e-15, 3, region=Region(high=1e-10)),
        Judgement("holds", "every x ≥ 1 (tolerance 1e-06)", 1 - 1e-7, 1 - 1e-7, 1.0, 3, region=Region(low=1 - 1e-6)),
    ],
)
def test_what_is_at_the_edge_is_drawn_at_the_edge(judgement):
    tree = drawn(judgement)
    assert float(part(tree, "dot").get("cx")) == float(part(tree, "edge").get("x1"))
