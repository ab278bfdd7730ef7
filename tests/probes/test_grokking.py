from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.probes.grokking import grokking_delay

HISTORY = [(0, 0.1, 0.1), (50, 0.9, 0.1), (100, 0.99, 0.2), (500, 1.0, 0.6), (1000, 1.0, 0.995)]


def test_a_known_delay():
    found = grokking_delay(HISTORY)
    assert (found.train_step, found.validation_step) == (100, 1000)
    assert found.gap == 900
    assert found.log_ratio == pytest.approx(1.0)
    assert not found.at_least


def test_a_run_that_never_generalises_counts_as_at_least():
    found = grokking_delay(HISTORY[:-1])
    assert found.at_least
    assert found.validation_censored
    assert found.gap == 400
    assert found.log_ratio == pytest.approx(math.log10(5))


def test_a_run_that_never_fits_has_no_delay():
    found = grokking_delay(HISTORY[:2])
    assert found.train_censored
    assert not found.at_least
    assert math.isnan(found.gap)
    assert math.isnan(found.log_ratio)


def test_nan_reaches_nothing_and_a_start_at_the_goal_has_no_ratio():
    assert grokking_delay([(1, math.nan, math.nan), (2, 1.0, math.nan)]).train_step == 2
    assert math.isnan(grokking_delay([(0, 1.0, 0.0), (5, 1.0, 1.0)]).log_ratio)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20), st.floats(0.05, 1))
def test_against_the_obvious_loop(accuracies, threshold):
    history = [(10 * (i + 1), *pair) for i, pair in enumerate(accuracies)]
    found = grokking_delay(history, threshold)
    for column, step, censored in (
        (1, found.train_step, found.train_censored),
        (2, found.validation_step, found.validation_censored),
    ):
        reached = [row[0] for row in history if row[column] >= threshold]
        assert censored == (not reached)
        assert step == (min(reached) if reached else history[-1][0])


@pytest.mark.parametrize(
    ("history", "threshold", "words"),
    [
        ([], 0.99, "needs rows"),
        ([(1, 0.5)], 0.99, "needs rows"),
        ([(2, 0.5, 0.5), (1, 0.5, 0.5)], 0.99, "must grow"),
        ([(1, 99.0, 50.0)], 0.99, "not percent"),
        ([(1, 0.5, 0.5)], 99, r"threshold must lie in \(0, 1\]"),
    ],
)
def test_refusals(history, threshold, words):
    with pytest.raises(ValueError, match=words):
        grokking_delay(history, threshold)
