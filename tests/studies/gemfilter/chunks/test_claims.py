"""Claims about chunks on made-up measurements: means over kinds are shares of all trials, and controls can fail."""

import polars as pl
import pytest

from assay.lab import Measurements
from assay.studies.gemfilter.chunks import claims
from assay.studies.gemfilter.chunks.arms import Params, part
from assay.studies.gemfilter.chunks.learners import KINDS

NAMES = ["arm", "seed", "length", "kind", "method", "metric", "value", "trials"]


def measured(rows):
    frame = pl.DataFrame(rows, schema=NAMES, orient="row").with_columns(step=pl.lit(None, pl.Int64))
    return Measurements(frame, Params(chunk_lengths=(2048, 4096)))


def shares(arm, metric, trials, **methods):
    return [
        (arm, seed, length, kind, method.replace("_", " "), metric, float(value), trials)
        for method, value in methods.items()
        for length in (2048, 4096)
        for kind in KINDS
        for seed in range(8)
    ]


def test_a_mean_over_kinds_is_a_share_of_all_its_tokens():
    m = measured(shares("chunks", "recall", 20, chunks_of_1024=1, whole=0.5))
    values = claims.longest(m, "recall", "chunks of 1024")
    assert [trials for _, _, trials in values.counted.terms] == [160, 160, 160]
    assert claims.chunks_find(m).verdict == "holds"
    assert claims.chunks_find_more(m).verdict == "holds"


def test_as_many_answers_are_undecided_and_fewer_fail():
    alike = measured(shares("chunks", "accuracy", 1, chunks_of_1024=1, full=1))
    assert claims.chunks_answer(alike, other="full").verdict == "undecided"
    fewer = measured(shares("chunks", "accuracy", 1, chunks_of_1024=0, full=1))
    assert claims.chunks_answer(fewer, other="full").verdict == "fails"


@pytest.mark.parametrize(
    ("prompts", "wrong", "verdict"),
    [(8, 0, "undecided"), (35, 0, "undecided"), (40, 0, "holds"), (60, 4, "undecided"), (400, 28, "holds")],
)
def test_nine_answers_in_ten_take_many_prompts(prompts, wrong, verdict):
    """Seven wrong in a hundred decide nothing among 60 prompts, and hold among the 400 of the preset."""
    length = max(Params().chunk_beyond)
    rows = [
        ("chunk-words", seed, length, None, "chunks of 1024", "accuracy", float(seed >= wrong), 1)
        for seed in range(prompts)
    ]
    assert claims.answered_beyond_the_context(measured(rows)).verdict == verdict
    assert part.presets["paper"].fewer["chunk-words"] == 400


@pytest.mark.parametrize(("lost", "verdict"), [(0, "holds"), (4, "holds"), (11, "undecided"), (40, "fails")])
def test_answers_from_chunks_may_be_ten_points_fewer(lost, verdict):
    """Of 120 prompts of each kind, ``lost`` are answered from the whole prompt's filter alone."""
    rows = [
        ("chunk-answers", seed, None, kind, method, "accuracy", float(method == "whole" or seed >= lost), 1)
        for kind in KINDS
        for method in ("whole", "chunks of 1024")
        for seed in range(120)
    ]
    assert claims.chunks_answer_about_as_often(measured(rows)).verdict == verdict


@pytest.mark.parametrize(("changed", "verdict"), [(0.4, "holds"), (1.2, "fails")])
def test_an_order_that_changes_more_than_boundaries_is_found(changed, verdict):
    rows = [("chunk-controls", seed, None, None, None, "changed", changed, None) for seed in range(4)]
    assert claims.order_of_chunks(measured(rows)).verdict == verdict


@pytest.mark.parametrize(("silent", "verdict"), [(0.1, "holds"), (0.95, "fails")])
def test_a_selection_that_does_not_look_at_the_question_is_found(silent, verdict):
    rows = [
        ("chunk-controls", seed, None, None, method, "recall", value, 20)
        for method, value in (("asked", 1.0), ("no question", silent))
        for seed in range(8)
    ]
    assert claims.the_question_selects(measured(rows), other="no question").verdict == verdict
