"""The claims about four pairs of axes on times and nearest oracles that are made up."""

from __future__ import annotations

import math

import polars as pl

from assay.lab import Measurements, discovery

study = discovery.studies()["gradient-features"]
PARAMS = study.resolve("laptop", {})


def made_up(times: list[float], nearest: list[float]) -> Measurements:
    """Three seeds with these learning times of the eight axes, and these nearest oracles over the steps."""
    rows = []
    for seed in range(3):
        for weights in ("halving", "equal"):
            base = {"arm": "pairs", "seed": seed, "weights": weights}
            rows += [
                base | {"axis": axis + 1, "metric": "learning_time", "value": time + 0.01 * seed}
                for axis, time in enumerate(times)
            ]
            rows += [
                base | {"step": step + 1, "outputs": outputs, "metric": "nearest", "value": float(value)}
                for outputs in ("whole", "clipped")
                for step, value in enumerate(nearest)
            ]
    return Measurements(pl.DataFrame(rows, infer_schema_length=None), PARAMS)


def verdict(name: str, found: Measurements) -> str:
    return study.claims[name].judge(found).verdict


def test_times_in_the_order_of_the_weights_hold_and_others_fail():
    ordered = made_up([3, 2, 9, 8, 30, 40, 200, 190], [1, 1, 2, 3, 4])
    assert [verdict(name, ordered) for name in ("C7f", "C7g", "C7h", "X28")] == ["holds"] * 4
    assert verdict("N23", ordered) == "fails", "equal weights with an order are a control that turned"
    reversed_ = made_up([200, 190, 30, 40, 9, 8, 3, 2], [4, 3, 2, 1, 1])
    assert [verdict(name, reversed_) for name in ("C7f", "C7g", "C7h", "X28")] == ["fails"] * 4
    assert verdict("N23", reversed_) == "holds"


def test_an_oracle_that_never_changes_is_no_rise():
    assert verdict("C7g", made_up([3, 2, 9, 8, 30, 40, 200, 190], [1, 1, 1, 1])) == "fails"


def test_what_is_no_number_never_helps():
    found = made_up([3, 2, 9, 8, 30, 40, 200, math.nan], [1, 2, math.nan, 4])
    assert "holds" not in {verdict(name, found) for name in ("C7f", "C7g", "X28", "N23")}
