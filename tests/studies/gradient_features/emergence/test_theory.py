from __future__ import annotations

import math

import pytest

from assay.studies.gradient_features.emergence.theory import (
    block_promise,
    linear_promise,
    mixture_promise,
    promised,
    xor_share,
)
from assay.studies.gradient_features.problem import GaussianMixture
from assay.studies.gradient_features.theory import in_cone, mixture_gradient
from assay.training import Seeds


@pytest.mark.parametrize(("dim", "deviation", "ratio"), [(30, 1.0, 1.0), (100, 1.0, -1.0), (100, 0.5, 1.5)])
@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_the_share_of_gradients_in_a_cone_is_the_one_counted(dim, deviation, ratio, floor):
    problem, seeds, count = GaussianMixture.xor(dim, deviation), Seeds((0,)), 100_000
    weights = seeds.normal("weights", count, dim)
    level = ratio * deviation * math.sqrt(dim)
    found = mixture_gradient(problem, weights, weights.new_full(weights.shape[:2], level))
    counted = in_cone(found, problem.features, 0.1, floor * math.sqrt(dim)).double().mean()
    share = xor_share(dim, deviation, level, 0.1, floor * math.sqrt(dim))
    error = math.sqrt(share * (1 - share) / count)
    # Five standard errors, and what the length of the other weights varies: its share is 1/√(2(d − 2)) at most.
    assert float(counted) == pytest.approx(share, abs=5 * error + 0.05 * share)


def test_a_wider_cone_holds_more_and_a_higher_floor_less():
    shares = [xor_share(100, 1.0, 10.0, width, 0.0, points=400) for width in (0.02, 0.1, 0.5)]
    assert shares == sorted(shares)
    floors = [xor_share(100, 1.0, 10.0, 0.1, floor, points=400) for floor in (0.0, 2.0, 3.0)]
    assert floors == sorted(floors, reverse=True)
    assert xor_share(100, 1.0, 10.0, 0.1, 10.0, points=400) == 0, "no gradient is longer than √d/4 and a little"


def test_promises_by_hand():
    promise = mixture_promise(100, scaled_mean=1.0, spread=1.0, least_weight=0.25, tau=8)
    assert promise.share == pytest.approx(100**-36 / math.sqrt(8 * math.log(100)))
    assert promise.width == pytest.approx(100 ** (1.5 - 7.2))
    assert promise.floor == pytest.approx(2.5)
    assert block_promise(50, 5, 1, 0.25, 8).share == pytest.approx(50**-9 / math.sqrt(8 * math.log(50)))
    assert block_promise(50, 5, 1, 0.25, 8).floor == pytest.approx(math.sqrt(5) / 4)
    linear = linear_promise(16, second_moment=9.0, signal=2.0, tau=2.5)
    assert (linear.share, linear.width, linear.floor) == pytest.approx((0.5, 3 / 16 / 2, 2 - 3 / 16))


def test_larger_exponents_promise_fewer_neurons_in_narrower_cones():
    few, many = promised(12.0), promised(8.0)
    for case in ("orthogonal", "multi-xor", "block parity"):
        assert few[case].share < many[case].share
        assert few[case].width < many[case].width
