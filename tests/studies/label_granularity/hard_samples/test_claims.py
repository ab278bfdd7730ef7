from __future__ import annotations

import polars as pl

from assay.lab import Judgement, Measurements
from assay.studies.label_granularity.hard_samples.arms import Params
from assay.studies.label_granularity.hard_samples.claims import part


def judged(claim: str, m: Measurements) -> Judgement:
    return part.claims[claim].judge(m)


def test_without_strength_of_distractors_there_is_no_critical_k():
    params = Params(faint_low=0, faint_high=0)
    assert params.around_critical == ()
    applies = {name: all(check(params) for check in part.claims[name].when.values()) for name in ("C2c", "C2d", "N1")}
    assert applies == {"C2c": False, "C2d": False, "N1": True}


def test_the_rule_is_judged_next_to_k_star_and_a_constant_guess_does_not_pass():
    params = Params()
    assert params.around_critical == (4, 8)

    def rule(agreement: float, constant: float) -> Measurements:
        rows = [
            ("sweep", k, seed, None, metric, value + 1e-4 * seed)
            for k in (4, 8, 24)
            for seed in range(4)
            for metric, value in (("rule_agreement", agreement), ("constant_agreement", constant))
        ]
        columns = ("arm", "k", "seed", "step", "metric", "value")
        return Measurements(pl.DataFrame(rows, schema=columns, orient="row"), params)

    assert judged("C2h", rule(0.98, 0.9)).verdict == "holds"
    assert judged("C2h", rule(0.98, 0.98)).verdict == "fails"
    assert judged("C2c", rule(0.98, 0.98)).verdict == "holds"
    assert judged("C2c", rule(0.9, 0.8)).verdict == "fails"
