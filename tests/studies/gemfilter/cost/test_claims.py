"""Costs are numbers without seeds, and one that is not finite never helps."""

import math

import polars as pl

from assay.lab import Exact, Measurements
from assay.studies.gemfilter.cost import theory
from assay.studies.gemfilter.cost.arms import Params, part
from assay.studies.gemfilter.cost.claims import (
    chosen,
    speed_up_has_a_ceiling,
    stated_speed_up_is_out_of_reach,
)


def measured(speed_ups, lengths=(4096, theory.LONG)):
    """A table of speed-ups by model: one for each length."""
    rows = [
        ("cost", seed, "speed_up", model, length, value)
        for seed in range(3)
        for model, values in speed_ups.items()
        for length, value in zip(lengths, values, strict=True)
    ]
    frame = pl.DataFrame(rows, schema=["arm", "seed", "metric", "model", "length", "value"], orient="row")
    shares = frame.with_columns(
        pl.lit("share_of_ceiling").alias("metric"),
        value=pl.col("value")
        / pl.col("model").replace_strict(
            {k: theory.ceiling(s.layers, layer) for k, (s, layer) in theory.MODELS.items()}
        ),
    )
    return Measurements(
        pl.concat([frame, shares]).with_columns(step=pl.lit(None, pl.Int64)), Params(cost_lengths=lengths)
    )


REAL = dict(zip(theory.MODELS, [(2.45, 2.46), (2.09, 2.1), (1.67, 1.68)], strict=True))


def test_the_stated_speed_up_is_judged_by_itself_and_not_by_a_share_of_the_ceiling():
    judged = stated_speed_up_is_out_of_reach(measured(REAL))
    assert (judged.verdict, judged.method, judged.seeds) == ("holds", "exact", 0)
    assert judged.estimate == 1.68
    fast = dict.fromkeys(theory.MODELS, (2.5, 2.6))
    assert stated_speed_up_is_out_of_reach(measured(fast)).verdict == "fails"


def test_the_ceiling_is_missed_from_either_side():
    assert speed_up_has_a_ceiling(measured(REAL)).verdict == "holds"
    above = REAL | {"Phi-3.5 Mini": (1.67, 1.7)}
    assert speed_up_has_a_ceiling(measured(above)).verdict == "fails"
    below = REAL | {"Phi-3.5 Mini": (1.5, 1.68)}
    assert speed_up_has_a_ceiling(measured(below)).verdict == "fails"


def test_a_number_that_is_not_finite_is_chosen():
    assert chosen(max, [Exact(1.0), Exact(2.0)], "largest").value == 2
    for numbers in ([Exact(math.nan), Exact(2.0)], [Exact(2.0), Exact(math.inf)]):
        assert math.isnan(chosen(min, numbers, "smallest").value)
        assert chosen(min, numbers, "smallest").below(9).verdict == "fails"


def test_memory_is_a_claim_about_120k_tokens():
    (domain,) = part.claims["C3e"].when.values()
    assert domain(Params())
    assert not domain(Params(cost_lengths=(4096, 2**17))), "the longest within 128k is not what the statement says"
