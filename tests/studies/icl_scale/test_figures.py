"""What figures draw of made-up rows: the means and intervals by which the claims are judged."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from assay.lab import Measurements, NotMeasured, discovery

study = discovery.find("icl-scale")


def measured(rows: list[dict[str, Any]]) -> Measurements:
    frame = pl.DataFrame(rows).with_columns(step=pl.lit(None, dtype=pl.Int64))
    return Measurements(frame, study.resolve("laptop", {}))


def drawn(name: str, m: Measurements) -> pl.DataFrame:
    """The rows with an interval behind a figure; those of single seeds are left out."""
    datasets = study.figures[name].make(m).to_dict()["datasets"].values()
    return pl.DataFrame([row for data in datasets for row in data if "low" in row])


def as_judged(claim: str, m: Measurements) -> Any:
    judged = study.claims[claim].judge(m)
    return pytest.approx((judged.estimate, judged.low, judged.high))


def test_attention_is_drawn_with_the_intervals_of_its_claims():
    bases = {("sst2", "correct"): 0.5, ("sst2", "wrong"): 0.6, ("ag_news", "correct"): 0.9, ("ag_news", "wrong"): 1.1}
    m = measured(
        [
            {"arm": "attention-text", "metric": "attention_ratio", "data": data, "label": label, "seed": seed}
            | {"value": base + 0.03 * seed}
            for (data, label), base in bases.items()
            for seed in range(5)
        ]
    )
    with pytest.raises(NotMeasured, match="did not run"):
        drawn("flipped-labels", m)
    found = drawn("attention-text", m)
    shown = {
        ("sst2", "right"): "C7a",
        ("sst2", "wrong"): "C7b",
        ("ag_news", "right"): "C7e",
        ("ag_news", "wrong"): "C7f",
    }
    assert set(study.figures["attention-text"].shows) == set(shown.values())
    assert len(found) == len(shown)
    for row in found.iter_rows(named=True):
        assert (row["mean"], row["low"], row["high"]) == as_judged(shown[row["data"], row["label"]], m)


def test_flipped_labels_are_drawn_with_intervals_that_stay_shares():
    accuracies = {"small": (1.0, 0.98, 0.6), "large": (0.9, 0.2, 0.5)}
    m = measured(
        [
            {"arm": "prior", "metric": "prior_accuracy", "size": size, "flipped": flipped, "seed": seed}
            | {"value": value, "trials": 200}
            for size, values in accuracies.items()
            for flipped in (0.0, 0.25, 0.5, 0.75, 1.0)
            for seed, value in enumerate(values)
        ]
    )
    found = drawn("flipped-labels", m)
    assert len(found) == 10
    assert found["low"].min() > 0
    assert found["high"].max() < 1
    ends = {row["network"]: row for row in found.filter(flipped=1.0).iter_rows(named=True)}
    for network, claim in (("small", "C6c"), ("large", "C6d")):
        assert claim in study.figures["flipped-labels"].shows
        assert tuple(ends[network][name] for name in ("mean", "low", "high")) == as_judged(claim, m)
