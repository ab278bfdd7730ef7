"""What makes numbers out of numbers, against slow obvious versions: no value that is not finite gets lost."""

from __future__ import annotations

import math
import random

import numpy as np
import polars as pl
import pytest

from assay.lab import (
    AmbiguousQuery,
    Every,
    Measurements,
    Params,
    Values,
    combine,
    farthest,
    farthest_from,
    pick,
    pool,
    rise,
)

BAD = [math.nan, math.inf, -math.inf]
every_bad = pytest.mark.parametrize("bad", BAD, ids=str)


def some_parts(count: int = 3, *, holes: bool = True, draw: int = 0) -> list[Values]:
    """Parts with different seeds (0 to 5, of which all have 2 and 3), some of their values not finite."""
    rng = random.Random(draw)
    parts = []
    for i in range(count):
        seeds = [seed for seed in range(6) if seed in (2, 3) or rng.random() < 0.7]
        lost = {seed for seed in seeds if seed != 2 and holes and rng.random() < 0.3}
        parts.append(Values({s: rng.choice(BAD) if s in lost else rng.gauss(0, 1) for s in seeds}, f"part {i}"))
    return parts


def same(found: Values, expected: dict[int, float]) -> None:
    assert set(found.by_seed) == set(expected)
    for seed, value in expected.items():
        assert found.by_seed[seed] == pytest.approx(value, nan_ok=True), seed


def slowly(choose, parts: list[Values]) -> dict[int, float]:
    """Seed by seed and part by part."""
    expected = {}
    for seed in range(6):
        values = [part.by_seed[seed] for part in parts if seed in part.by_seed]
        if len(values) < len(parts):
            continue
        finite = True
        for value in values:
            if math.isnan(value) or math.isinf(value):
                finite = False
        expected[seed] = choose(values) if finite else math.nan
    return expected


@pytest.mark.parametrize("draw", range(20))
@pytest.mark.parametrize("choose", [max, min, np.mean, farthest_from(0.5), lambda v: v[0] - max(v)])
def test_combine_is_the_slow_loop(choose, draw):
    parts = some_parts(draw=draw)
    same(combine(choose, parts, "made"), slowly(choose, parts))
    same(combine(choose, iter(parts), "made"), slowly(choose, parts))


@every_bad
@pytest.mark.parametrize("choose", [max, min, np.mean, farthest_from(0)])
def test_combine_loses_a_bad_value_at_no_place(choose, bad):
    good = [Values(dict.fromkeys(range(3), 1.0 + i)) for i in range(2)]
    for place in range(3):
        parts = [*good[:place], Values({0: 1.0, 1: bad, 2: 1.0}), *good[place:]]
        found = combine(choose, parts, "one of three")
        assert math.isnan(found.by_seed[1])
        assert math.isfinite(found.by_seed[0])
        for judgement in (found.at_least(-9), found.at_most(9), found.between(-9, 9)):
            assert judgement.verdict == "fails"
            assert judgement.reason.startswith("1 of 3 seeds have no finite value")
            assert judgement.criterion.startswith("one of three ")


def test_combine_pairs_seeds_as_a_difference_does():
    a, b = Values({0: 1.0, 1: 5.0, 2: 9.0}, "a"), Values({2: 1.0, 1: 2.0, 7: 100.0}, "b")
    assert combine(lambda v: v[0] - v[1], [a, b], "a − b").by_seed == (a - b).by_seed == {1: 3, 2: 8}
    with pytest.raises(AmbiguousQuery, match="worst: the parts share no seed"):
        combine(max, [a, Values({8: 0.0})], "worst")
    with pytest.raises(AmbiguousQuery, match="share no seed"):
        a - Values({8: 0.0})
    with pytest.raises(AmbiguousQuery, match="nothing to make worst of"):
        combine(max, [], "worst")


def test_misses_on_both_sides_do_not_cancel():
    """Each seed misses by 0.3 in one part and hits in the other; of extremes by seed the mean would be 1."""
    above, below = Values({0: 1.3, 1: 1.0, 2: 1.3, 3: 1.0}), Values({0: 1.0, 1: 0.6, 2: 1.0, 3: 0.6})
    assert combine(farthest_from(1), [above, below], "by seed").array.mean() == pytest.approx(0.95)
    found = farthest(1, [above, below], "the worst part")
    assert found.by_seed == below.by_seed
    assert found.what == "the worst part"
    bad = farthest(1, [above, below, Values({0: 1.0, 1: math.nan, 2: 1.0, 3: 1.0})], "one of three")
    assert math.isnan(bad.by_seed[1])
    assert bad.by_seed[0] == above.by_seed[0], "chosen by the seeds that are finite everywhere"


def test_the_farthest_from_a_level_lies_on_either_side():
    assert farthest_from(1)([0.9, 1.3, 0.8]) == 1.3
    assert farthest_from(1)([0.9, 1.3, 0.5]) == 0.5


@every_bad
def test_values_keep_what_is_not_finite(bad):
    values = Values({0: 2.0, 1: bad, 2: 3.0}, "v")
    other = Values({0: 4.0, 1: 5.0, 2: 0.0}, "w")
    for function in (lambda v: max(v, 0.0), lambda v: min(0.0, v), lambda v: float(v > 1), abs, lambda v: 1 / v):
        same(values.map(function), {0: function(2.0), 1: math.nan, 2: function(3.0)})
    same(values + other, {0: 6, 1: math.nan, 2: 3})
    same(other - values, {0: 2, 1: math.nan, 2: -3})
    same(other * values, {0: 8, 1: math.nan, 2: 0})
    same(other / values, {0: 2, 1: math.nan, 2: 0})  # 5 over infinity would be a plain 0
    same(values / other, {0: 0.5, 1: math.nan, 2: math.nan})
    same(values * 0, {0: 0, 1: math.nan, 2: 0})
    same(other / bad, dict.fromkeys(range(3), math.nan))


@pytest.mark.parametrize("draw", range(20))
@pytest.mark.parametrize("choose", [max, min])
def test_pick_is_the_part_with_the_extreme_mean(choose, draw):
    parts = [Values({s: v for s, v in p.by_seed.items() if s in (2, 3)}, p.what) for p in some_parts(4, draw=draw)]
    whole = [s for s in (2, 3) if all(math.isfinite(p.by_seed[s]) for p in parts)]
    means = [sum(p.by_seed[s] for s in whole) / len(whole) for p in parts]
    chosen = parts[means.index(choose(means))]
    found = pick(choose, parts)
    assert found.what == chosen.what
    same(found, {s: chosen.by_seed[s] if s in whole else math.nan for s in (2, 3)})


@every_bad
def test_pick_never_holds_with_a_bad_value_in_any_part(bad):
    good = Values({0: 1.0, 1: 1.0, 2: 1.0}, "good")
    for parts in ([good, Values({0: 0.0, 1: bad, 2: 0.0})], [Values({0: 0.0, 1: bad, 2: 0.0}), good]):
        assert pick(max, parts).by_seed[0] == 1
        assert pick(max, parts).at_least(-9).verdict == "fails"
    lost = pick(max, [Values(dict.fromkeys(range(3), bad)), good])
    assert all(math.isnan(value) for value in lost.by_seed.values())
    with pytest.raises(AmbiguousQuery, match="share no seed"):
        pick(max, [good, Values({9: 1.0})])


def test_pool_keeps_every_value_of_every_part():
    every = pool([Values({1: 3.0, 0: 1.0}), Values({0: 5.0, 4: 2.0})], "both")
    assert every.values.tolist() == [1, 3, 5, 2]
    assert (every.seeds, every.what) == (3, "both")
    assert every.at_most(5).verdict == "holds"
    assert every.at_most(4).verdict == "fails"
    assert pool([Values({0: 1.0, 1: math.nan, 2: 1.0})], "x").at_most(9).reason.startswith("a value is not finite")


def table(**metrics) -> Every:
    """Rows over seeds 0 to 2 and steps 0 and 1, in an order of their own."""
    columns = {"arm": [], "seed": [], "step": [], "metric": [], "value": []}
    for metric, (arm, order, value) in metrics.items():
        for seed, step in order:
            for column, entry in zip(columns, (arm, seed, step, metric, float(value(seed, step))), strict=True):
                columns[column].append(entry)
    return Every(pl.DataFrame(columns), next(iter(metrics)))


POINTS = [(seed, step) for seed in range(3) for step in range(2)]


def test_every_pairs_equal_rows_whatever_their_order():
    a = table(a=("one", POINTS, lambda seed, step: 10 * seed + step + 1))
    b = table(b=("two", POINTS[::-1], lambda seed, step: seed + 100 * step))
    assert (a + b).values.tolist() == [10 * s + t + 1 + s + 100 * t for s, t in POINTS]
    assert (a - b).values.tolist() == [10 * s + t + 1 - (s + 100 * t) for s, t in POINTS]
    assert (a * b).values.tolist() == [(10 * s + t + 1) * (s + 100 * t) for s, t in POINTS]
    expected = [(10 * s + t + 1) / (s + 100 * t) if s + 100 * t else math.nan for s, t in POINTS]
    assert (a / b).values.tolist() == pytest.approx(expected, nan_ok=True)
    assert (a / b).what == "a / b"
    assert ((a - b) + b).values.tolist() == a.values.tolist()
    assert (a - b).seeds == 3


def test_every_with_a_number_and_a_function():
    a = table(a=("one", POINTS, lambda seed, step: 10 * seed + step + 1))
    heights = a.values
    assert (a + 2).values.tolist() == (heights + 2).tolist()
    assert (a - 2).values.tolist() == (heights - 2).tolist()
    assert (a * 2).values.tolist() == (heights * 2).tolist()
    assert (a / 3).values.tolist() == (heights / 3).tolist()
    assert a.map(lambda v: v**2).values.tolist() == (heights**2).tolist()
    assert ((a / 3).what, a.map(abs, "size").what, a.named("b").what) == ("a / 3", "size", "b")
    assert np.isnan((a / 0).values).all()


@every_bad
def test_every_keeps_what_is_not_finite(bad):
    a = table(a=("one", POINTS, lambda seed, step: bad if (seed, step) == (1, 0) else 1.0))
    one = table(b=("one", POINTS, lambda seed, step: 1.0))
    made = [a.map(lambda v: max(0.0, v)), a.map(lambda v: float(v > 0)), a * 0, a + one, one - a, one / a, a / one]
    for every in made:
        assert np.flatnonzero(np.isnan(every.values)).tolist() == [2]
        assert every.between(-99, 99).verdict == "fails"
        assert every.between(-99, 99).reason == "a value is not finite (seed 1, step 0)"


def test_every_refuses_other_rows():
    a = table(a=("one", POINTS, lambda seed, step: 1.0))
    for order in (POINTS[:-1], [*POINTS, (3, 0)], [*POINTS[:-1], (7, 1)]):
        with pytest.raises(AmbiguousQuery, match="a and b have different rows"):
            a - table(b=("one", order, lambda seed, step: 1.0))
    with pytest.raises(AmbiguousQuery, match="seed, step do not tell apart"):
        a - table(b=("one", [*POINTS, POINTS[0]], lambda seed, step: 1.0))
    with pytest.raises(AmbiguousQuery, match="told apart by different columns"):
        a - pool([Values(dict.fromkeys(range(3), 1.0)), Values(dict.fromkeys(range(3), 1.0))], "pooled")


def frame_of(heights: dict[int, list[float]]) -> pl.DataFrame:
    rows = [(seed, step, value) for seed, values in heights.items() for step, value in enumerate(values)]
    random.Random(1).shuffle(rows)
    return pl.DataFrame(rows, schema={"seed": pl.Int64, "step": pl.Int64, "value": pl.Float64}, orient="row")


def test_per_seed_is_a_loop_over_the_seeds_rows_by_step():
    heights = {4: [0.5, 0.1, 0.3], 0: [2.0], 2: [1.0, -1.0]}
    found = Measurements.per_seed(frame_of(heights), lambda rows: rows["value"][0] - rows["value"][-1], "fall")
    assert found.what == "fall"
    same(found, {seed: values[0] - values[-1] for seed, values in heights.items()})


def test_per_seed_sorts_by_the_column_it_is_told():
    frame = pl.DataFrame({"seed": [0, 0, 0], "width": [9, 1, 5], "step": [0, 1, 2], "value": [9.0, 1.0, 5.0]})
    seen = []
    Measurements.per_seed(frame, lambda rows: seen.append(rows["value"].to_list()) or 0.0, "x", by="width")
    Measurements.per_seed(frame, lambda rows: seen.append(rows["value"].to_list()) or 0.0, "x")
    Measurements.per_seed(frame.drop("step"), lambda rows: seen.append(rows["value"].to_list()) or 0.0, "x")
    assert seen == [[1, 5, 9], [9, 1, 5], [9, 1, 5]]


@every_bad
def test_per_seed_does_not_ask_about_a_seed_that_is_not_finite(bad):
    asked = []

    def least(rows: pl.DataFrame) -> float:
        asked.append(rows["seed"][0])
        return rows["value"].min()  # which ignores NaN

    found = Measurements.per_seed(frame_of({0: [1.0, 2.0], 1: [1.0, bad], 2: [3.0]}), least, "least")
    same(found, {0: 1.0, 1: math.nan, 2: 3.0})
    assert sorted(asked) == [0, 2]
    absent = pl.DataFrame({"seed": [0, 1], "value": [1.0, None]})
    same(Measurements.per_seed(absent, least, "least"), {0: 1.0, 1: math.nan})


@every_bad
def test_array_per_seed_is_a_loop_over_the_seeds(bad):
    stored = {
        "w": [([2, 3], np.array([[2.0, 4.0], [3.0, bad]])), ([0], np.array([[1.0, 7.0]]))],
        "n": [([0], [[1, 2]])],
    }
    m = Measurements(pl.DataFrame(), Params(), arrays=lambda key, where: stored.get(key, []))
    same(m.array_per_seed("w", lambda x: (x < 3).mean(), "share"), {0: 0.5, 2: 0.5, 3: math.nan})
    same(m.array_per_seed("n", np.sum, "sum"), {0: 3.0})


@pytest.mark.parametrize("length", [2, 3, 8])
def test_a_rise_is_spearmans_correlation_with_the_position(length):
    from scipy.stats import spearmanr

    rng = random.Random(length)
    for _ in range(50):
        values = [rng.choice((0.1, 0.2, 0.5, 0.9)) for _ in range(length)]
        expected = 0.0 if len(set(values)) == 1 else spearmanr(range(length), values).statistic
        assert rise(values) == pytest.approx(expected, abs=1e-12)
    assert rise([1, 2, 3]) == pytest.approx(1) == -rise([3, 2, 1])
    assert math.isnan(rise([1, math.nan, 3]))
