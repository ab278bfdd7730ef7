"""What the data allow to be said: simulated studies in which simpler rules were sure of what is not so.

Each rule is tried on 2,000 simulated studies whose truth is known. The tolerance of a measured coverage is three
deviations of a count of 2,000.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from assay.lab import Region, Values
from assay.lab.findings import among_all
from assay.lab.intervals import Counted, Sample, clopper_pearson, holm
from assay.lab.verdicts import BUDGET, every, looked, over_seeds, seeds_needed

STUDIES = 2000
SLACK = 3 * math.sqrt(0.05 * 0.95 / STUDIES)


def draws(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def shares(values, trials: int) -> Values:
    by_seed = dict(enumerate(np.asarray(values, dtype=float).tolist()))
    return Values.measured(by_seed, "share", dict.fromkeys(by_seed, trials))


def answers(right) -> Values:
    """What seeds that are right or wrong recorded."""
    return shares(np.asarray(right, dtype=float), 1)


def plain_student(values) -> tuple[float, float]:
    """The rule that was: Student's interval on the plain scale, whatever the data are."""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return float(np.mean(values) - half), float(np.mean(values) + half)


@given(st.integers(1, 60), st.data())
def test_the_exact_interval_is_scipys(trials, data):
    successes = data.draw(st.integers(0, trials))
    theirs = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert clopper_pearson(successes, trials, 0.95) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


@pytest.mark.parametrize(("seeds", "bound"), [(3, 0.37), (4, 0.47), (8, 0.69)])
def test_all_right_in_a_few_seeds_says_little_of_all(seeds, bound):
    judged = Values.measured(dict.fromkeys(range(seeds), 2.5), "level").at_least(2)
    assert (judged.verdict, judged.method, judged.met) == ("holds", "equal", seeds)
    assert judged.share_interval == pytest.approx((bound, 1), abs=0.005)
    assert math.isnan(judged.low), "an interval of no width would say that no other seed can differ"
    assert judged.decided_by == f"{seeds} of {seeds} seeds, at least {bound:.2f} of all"


def test_right_in_four_seeds_of_four_is_not_always_right():
    """Truth: nine of ten seeds are right. Student's interval of four ones has width zero and meets 'always'."""
    rng, before, after = draws(), 0, 0
    for _ in range(STUDIES):
        right = (rng.random(4) < 0.9).astype(float)
        low, high = plain_student(right)
        before += Region(low=1).contains(low, high)
        after += answers(right).at_least(1).verdict == "holds"
    assert before / STUDIES > 0.6
    assert after == 0


@pytest.mark.parametrize("truth", [0.5, 0.9, 0.97])
def test_right_or_wrong_answers_are_covered(truth):
    rng, covered = draws(1), 0
    for _ in range(STUDIES):
        judged = answers(rng.random(8) < truth).at_least(0.5)
        assert judged.method == "right or wrong"
        covered += judged.low <= truth <= judged.high
    assert covered / STUDIES >= 0.95 - SLACK


def test_three_seeds_that_agree_by_luck_are_no_surer_than_their_trials():
    """Shares of 40 answers that only chance tells apart: seeds often agree, and Student's interval is a point."""
    rng, truth, before, after = draws(2), 0.985, 0, 0
    for _ in range(STUDIES):
        found = rng.binomial(40, truth, 3) / 40
        low, high = plain_student(found)
        before += low <= truth <= high
        judged = shares(found, 40).at_least(0.9)
        after += judged.low <= truth <= judged.high
        assert 0 <= judged.low <= judged.high <= 1
    assert before / STUDIES < 0.9
    assert after / STUDIES >= 0.95 - SLACK


def test_no_interval_is_narrower_than_the_pooled_trials_allow():
    judged = shares([1.0, 1.0, 1.0], 2000).at_least(0.99)
    assert judged.verdict == "holds"
    assert judged.low == pytest.approx(clopper_pearson(6000, 6000, 0.95)[0])
    assert shares([1.0, 1.0, 1.0], 20).at_least(0.99).verdict == "undecided"


def test_a_difference_of_counted_shares_knows_their_trials():
    """Two methods of equal merit, 30 answers each, three seeds: a gap of one answer in every seed is luck."""
    rng, before, after = draws(3), 0, 0
    for _ in range(STUDIES):
        a, b = (rng.binomial(30, 0.98, 3) / 30 for _ in range(2))
        low, high = plain_student(a - b)
        before += not low <= 0 <= high
        gap = shares(a, 30) - shares(b, 30)
        judged = gap.above(0)
        after += not judged.low <= 0 <= judged.high
    assert after / STUDIES <= 0.05 + SLACK
    assert after < before


@pytest.mark.parametrize(
    ("made", "factors"),
    [
        (lambda a, b: a - b, (1, -1)),
        (lambda a, b: a + b, (1, 1)),
        (lambda a, b: (a + b) * 0.5, (0.5, 0.5)),
        (lambda a, b: 1 - a, (-1,)),
        (lambda a, b: 3 * a, (3,)),
        (lambda a, b: a / 4, (0.25,)),
        (lambda a, b: a - 0.5, (1,)),
    ],
)
def test_trials_are_carried_through_arithmetic(made, factors):
    a, b = shares([0.8, 0.6], 10), shares([0.5, 0.5], 20)
    counted = made(a, b).counted
    assert [term[0] for term in counted.terms] == list(factors)
    assert counted.terms[0][1:] == (14, 20)


def test_a_ratio_of_counted_shares_is_as_unsure_as_both():
    ratio = shares([0.5, 0.5, 0.5], 20) / shares([0.25, 0.25, 0.25], 20)
    assert ratio.scale == "ratio"
    low, high = ratio.counted.reach(0.95)
    own, theirs = Counted(((4.0, 30, 60),)).reach(0.95), Counted(((-8.0, 15, 60),)).reach(0.95)
    assert low == pytest.approx(math.hypot(own[0], theirs[0]))
    assert high == pytest.approx(math.hypot(own[1], theirs[1]))


def test_shares_near_one_are_covered_on_the_logit_scale_and_less_often_on_the_plain_one():
    rng, before, after = draws(11), 0, 0
    for _ in range(STUDIES):
        values = rng.beta(19, 1, 4)
        low, high = plain_student(values)
        before += low <= 0.95 <= high
        judged = Values(dict(enumerate(values.tolist())), "share").as_share().at_least(0.5)
        after += judged.low <= 0.95 <= judged.high
    assert before / STUDIES < 0.95 - SLACK
    assert after > before


def test_ratios_are_covered_on_the_log_scale_and_less_often_on_the_plain_one():
    rng, before, after = draws(12), 0, 0
    truth = math.exp(0.5)
    for _ in range(STUDIES):
        values = rng.lognormal(0, 1, 6)
        low, high = plain_student(values)
        before += low <= truth <= high
        judged = over_seeds(values, Region(low=0), scale="ratio")
        after += judged.low <= truth <= judged.high
    assert after > before
    assert before / STUDIES < 0.95 - SLACK


def test_differences_of_shares_and_correlations_end_at_one():
    gap = shares([1.0, 0.9, 1.0], 10) - shares([0.0, 0.0, 0.1], 10)
    judged = gap.above(0.2)
    assert judged.high == 1
    found = Values({0: 0.99, 1: 0.7, 2: 1.0}, "correlation")
    assert found.above(0.2).high > 1
    assert found.as_correlation().above(0.2).high == 1


def test_the_mean_of_shares_can_be_said_to_be_one():
    mean = 0.5 * (shares([1.0, 0.95, 1.0], 20) + shares([1.0, 1.0, 0.9], 20))
    assert mean.at_least(0.5).high > 1
    assert mean.as_share().at_least(0.5).high <= 1
    assert mean.as_share().counted == mean.counted


def test_seeds_that_meet_a_criterion_for_every_row_are_a_share_with_its_interval():
    """Truth: one seed of five misses. The share that is told covers that, where 'holds' or 'fails' alone would not."""
    rng, covered = draws(13), 0
    for _ in range(STUDIES):
        values = (rng.random(8) < 0.2).astype(float)
        judged = every(values, Region(high=0.5), seeds=range(8), tolerance=0.0)
        low, high = judged.share_interval
        covered += low <= 0.8 <= high
        told = f"{judged.met} of 8 seeds, {low:.2f} to {high:.2f} of all"
        assert judged.decided_by.startswith(told) or judged.met in (0, 8)
    assert covered / STUDIES >= 0.95 - SLACK


def test_a_seed_that_diverged_never_helps():
    """Truth: half of the seeds diverge when the others are good. Left out, the good ones would hold."""
    rng, before, after = draws(14), 0, 0
    for _ in range(200):
        values = np.where(rng.random(8) < 0.5, np.nan, rng.normal(1, 0.1, 8))
        finite = values[np.isfinite(values)]
        before += len(finite) >= 3 and over_seeds(finite, Region(low=0.5)).verdict == "holds"
        after += over_seeds(values, Region(low=0.5)).verdict == "holds"
    assert before > 100
    assert after < 10


@pytest.mark.parametrize("scale", ["share", "ratio"])
def test_intervals_stay_where_the_quantity_can_be(scale):
    rng, outside = draws(4), 0
    for _ in range(STUDIES):
        values = rng.beta(0.8, 20, 4) if scale == "share" else rng.lognormal(0, 1.2, 4)
        outside += plain_student(values)[0] < 0
        judged = over_seeds(values, Region(low=0), scale=scale, counted=None)
        assert judged.low >= 0
        assert scale == "ratio" or judged.high <= 1
        assert judged.low <= judged.estimate <= judged.high
        assert judged.estimate == pytest.approx(values.mean())
    assert outside / STUDIES > 0.2


def test_twenty_claims_without_truth_give_a_headline_in_one_study_of_twenty():
    """Twenty quantities that are zero in truth: alone, some 'differs from zero' in most studies; after Holm in 5 %."""
    rng, alone, together = draws(5), 0, 0
    for _ in range(STUDIES):
        values = rng.normal(size=(20, 6))
        t = values.mean(1) / values.std(1, ddof=1) * math.sqrt(6)
        p = dict(enumerate(2 * stats.t.sf(np.abs(t), 5)))  # what Judgement.p is, all at once
        alone += min(p.values()) <= 0.05
        together += min(holm(p).values()) <= 0.05
    assert alone / STUDIES > 0.5
    assert together / STUDIES <= 0.05 + SLACK


def test_holm_by_hand():
    # 0.01 × 4, 0.02 × 3, then no smaller than the one before: 0.03 × 2, 0.5 × 1
    assert holm({"a": 0.02, "b": 0.5, "c": 0.01, "d": 0.03}) == pytest.approx(
        {"c": 0.04, "a": 0.06, "d": 0.06, "b": 0.5}
    )
    assert holm({}) == {}


def test_a_headline_that_does_not_stand_among_all_is_undecided():
    values = [1.0, 2.0, 3.2, 4.1]
    judged = {"C1": over_seeds(np.array(values), Region(low=0.2))}
    noise = draws(6)
    judged |= {f"C{i}": over_seeds(noise.normal(size=4), Region(low=0)) for i in range(2, 30)}
    assert judged["C1"].verdict == "holds"
    found = among_all(judged, ["C1"])
    assert found["C1"].verdict == "undecided"
    assert "does not among 29 claims" in found["C1"].reason
    assert among_all(judged, [])["C1"].verdict == "holds"


def test_a_headline_that_was_looked_at_twice_must_stand_at_half_the_error():
    values = np.array([1.0, 2.0, 3.2, 4.1, 2.2])
    edge = next(e for e in np.linspace(0, 2.5, 400) if over_seeds(values, Region(low=e)).p > 0.03)
    once = among_all({"C1": over_seeds(values, Region(low=edge))}, ["C1"])["C1"]
    assert (once.verdict, once.stands) == ("holds", True)
    with looked(2):
        again = over_seeds(values, Region(low=edge))
    assert again.verdict == "undecided"
    assert not among_all({"C1": again}, ["C1"])["C1"].stands


def test_what_does_not_stand_among_all_is_not_told_how_many_seeds_would_do():
    noise = draws(6)
    judged = {"C1": over_seeds(np.array([1.0, 2.0, 3.2, 4.1]), Region(low=0.2))}
    judged |= {f"C{i}": over_seeds(noise.normal(size=4), Region(low=0)) for i in range(2, 30)}
    assert among_all(judged, ["C1"])["C1"].needed is None


def test_the_error_of_a_verdict_is_that_of_students_test():
    values = draws(7).normal(0.5, 1, 9)
    judged = over_seeds(values, Region(low=0))
    assert judged.p == pytest.approx(2 * stats.ttest_1samp(values, 0, alternative="greater").pvalue, rel=1e-6)


def test_seeds_that_would_decide_are_about_those_that_do():
    """Of studies with as many seeds as were asked for, about half and more decide; with as many as there were, few."""
    rng, then, first = draws(8), 0, 0
    values = np.array([0.9, 1.6, 0.4, 1.5, -0.3])
    judged = over_seeds(values, Region(low=0))
    assert judged.verdict == "undecided"
    assert 5 < judged.needed < 20
    for _ in range(STUDIES):
        more = rng.normal(values.mean(), values.std(ddof=1), judged.needed)
        then += over_seeds(more, Region(low=0)).verdict == "holds"
        first += over_seeds(more[:5], Region(low=0)).verdict == "holds"
    assert then / STUDIES > 0.45
    assert first < then


def test_a_claim_on_the_edge_is_called_not_decidable_here():
    values = draws(9).normal(size=6)
    judged = over_seeds(values - values.mean() + 1e-4, Region(low=0))
    assert judged.needed == BUDGET + 1
    assert "not decidable here" in judged.decided_by
    assert seeds_needed(Sample(values + 1.5), Region(low=0)) <= BUDGET


def test_looking_while_seeds_are_added_is_paid_for():
    """No difference in truth, judged at 4, 8, 12 and 16 seeds until it is decided: the plain rule finds one in far more
    than 5 %."""
    rng, free, paid = draws(10), 0, 0
    for _ in range(STUDIES):
        values = rng.normal(size=16)
        verdicts = [over_seeds(values[:n], Region(low=0)).verdict for n in (4, 8, 12, 16)]
        free += any(verdict != "undecided" for verdict in verdicts)
        with looked(4):
            paid += any(over_seeds(values[:n], Region(low=0)).verdict != "undecided" for n in (4, 8, 12, 16))
    assert free / STUDIES > 0.1
    assert paid / STUDIES <= 0.05 + SLACK


def test_equality_tells_where_its_margin_comes_from_and_when_the_two_differ():
    near = Values({0: 0.21, 1: 0.2, 2: 0.19, 3: 0.2}, "gap")
    judged = near.equals(0, within=0.5, because="half a point, the least step of the scale")
    assert judged.verdict == "holds"
    assert judged.criterion == "gap in [-0.5, 0.5] (margin: half a point, the least step of the scale)"
    assert judged.note.startswith("the interval excludes 0")
    around = Values({0: 0.1, 1: -0.1, 2: 0.05, 3: -0.04}, "gap")
    assert around.equals(0, within=0.5, because="so").note == ""


def test_the_margin_counts_reaches_of_the_interval():
    judged = over_seeds(np.array([1.0, 2, 3, 4, 5]), Region(low=0))
    assert judged.margin == pytest.approx(3 / 1.963243, rel=1e-5)
    assert judged.decided_by == "margin 1.5 × the interval's reach"
    assert over_seeds(np.array([1.0, 2, 3, 4, 5]), Region(low=8)).margin == pytest.approx(5 / 1.963243, rel=1e-5)
    assert over_seeds(np.array([1.0, 2, 3, 4, 5]), Region(low=2.9)).margin < 1


@given(st.lists(st.floats(0.01, 0.99), min_size=3, max_size=8), st.floats(0.5, 0.99), st.floats(0.5, 0.99))
def test_a_wider_confidence_is_a_wider_interval(values, a, b):
    for sample in (Sample(np.array(values), "share"), Sample(np.array(values), "ratio"), Sample(np.array(values))):
        less, more = sample.interval(min(a, b)), sample.interval(max(a, b))
        assert more[0] <= less[0] + 1e-12
        assert more[1] >= less[1] - 1e-12
