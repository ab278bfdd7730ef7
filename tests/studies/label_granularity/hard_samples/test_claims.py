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
    applies = {
        name: all(check(params) for check in part.claims[name].when.values()) for name in ("C2c", "C2d", "C2i", "N1")
    }
    assert applies == {"C2c": False, "C2d": False, "C2i": False, "N1": True}


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


def swept(error: dict[int, float], foretold: dict[int, float]) -> Measurements:
    rows = [
        ("sweep", k, seed, None, metric, value + 1e-3 * seed)
        for metric, curve in (("hard_error", error), ("foretold_error", foretold))
        for k, value in curve.items()
        for seed in range(4)
    ]
    columns = ("arm", "k", "seed", "step", "metric", "value")
    return Measurements(pl.DataFrame(rows, schema=columns, orient="row"), Params())


def test_the_crossing_must_be_where_it_was_foretold_not_within_a_factor_of_k_star():
    foretold = {2: 0.0, 4: 0.1, 8: 0.9, 16: 0.99}
    assert judged("C2d", swept({2: 0.0, 4: 0.1, 8: 0.9, 16: 0.99}, foretold)).verdict == "holds"
    late = swept({2: 0.0, 4: 0.0, 8: 0.1, 16: 0.9}, foretold)  # at 11, within a factor 2.5 of k* = 6
    assert judged("C2d", late).verdict == "fails"
    assert judged("C2i", late).verdict == "fails"


def test_no_crossing_is_no_success():
    never = dict.fromkeys((2, 4, 8, 16), 0.0)
    assert judged("C2d", swept(never, never)).verdict == "fails"
    always = dict.fromkeys((2, 4, 8, 16), 0.9)
    assert judged("C2d", swept(always, always)).verdict == "fails"


def test_strong_noise_is_judged_between_its_two_scales():
    """s*/k = 0.75 and s*/√(2 log 2k) = 2.55."""
    (between,) = part.claims["C2e"].when.values()
    assert Params().separating_noise == 1.0
    assert between(Params())
    assert not between(Params(strong_noises=(0.02, 0.5)))
    assert not between(Params(strong_noises=(0.5, 3.0)))
    assert not between(Params(subclasses=4, strong_noises=(0.02, 1.0)))
