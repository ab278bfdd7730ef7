"""A mean over lengths of right-or-wrong answers is a share of all its prompts."""

import polars as pl

from assay.lab import Measurements
from assay.studies.gemfilter.needles.arms import Params
from assay.studies.gemfilter.needles.claims import accuracy, full_attention_answers, gap


def measured(**answers):
    """One prompt per seed at each of two lengths, by method."""
    rows = [
        ("needles", seed, length, method, "accuracy", float(value), 1)
        for method, by_length in answers.items()
        for length, values in zip((1024, 2048), by_length, strict=True)
        for seed, value in enumerate(values)
    ]
    names = ["arm", "seed", "length", "method", "metric", "value", "trials"]
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(step=pl.lit(None, pl.Int64))
    return Measurements(frame, Params(real_lengths=(1024, 2048)))


def test_all_right_is_not_certainty():
    """Without its trials a share that is 1 in every seed had an interval of no width."""
    right = ([1] * 4, [1] * 4)
    m = measured(full=right, gemfilter=right)
    values = accuracy(m, "full")
    assert [n for _, _, n in values.counted.terms] == [4, 4]
    judged = full_attention_answers(m)
    assert judged.low < 0.9 < judged.estimate == judged.high == 1
    assert gap(m, "gemfilter", "full").at_least(-0.02).verdict == "undecided"
