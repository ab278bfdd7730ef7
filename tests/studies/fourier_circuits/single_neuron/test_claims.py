from __future__ import annotations

import polars as pl
import pytest

from assay.lab import Measurements, discovery

study = discovery.find("fourier-circuits")


@pytest.mark.parametrize(("low", "high", "verdict"), [(1.0, 1.0, "holds"), (0.9, 1.0, "fails"), (1.0, 1.1, "fails")])
def test_every_start_ends_at_the_largest_margin_and_none_above(low, high, verdict):
    frame = pl.DataFrame(
        [
            ("single-neuron", 7, 2, s, metric, r)
            for s in range(3)
            for metric, r in (("ratio_low", low), ("ratio_high", high))
        ],
        schema=["arm", "p", "k", "seed", "metric", "value"],
        orient="row",
    )
    assert study.claims["C1c"].judge(Measurements(frame, study.resolve("smoke", {}))).verdict == verdict


@pytest.mark.parametrize(("at_four", "verdict"), [(2**1.5, "holds"), (2.0, "fails")])
def test_the_control_at_two_looks_at_every_k(at_four, verdict):
    """A k whose optimum is too small is not hidden by the others."""
    ratios = {2: 2**0.5, 3: 2.0, 4: at_four}
    frame = pl.DataFrame(
        [("single-neuron", 2, k, seed, "ratio_high", ratio) for k, ratio in ratios.items() for seed in range(3)],
        schema=["arm", "p", "k", "seed", "metric", "value"],
        orient="row",
    )
    assert study.claims["N4"].judge(Measurements(frame, study.resolve("smoke", {}))).verdict == verdict
