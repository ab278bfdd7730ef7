"""The claims about samples on accuracies that follow a power law."""

from __future__ import annotations

import polars as pl
import pytest

from assay.lab import Measurements, discovery
from assay.studies.gradient_features.sample_needs.claims import LEVEL, needed

study = discovery.studies()["gradient-features"]
PARAMS = study.resolve("laptop", {})


def law(network: float, kernel: float) -> Measurements:
    """Three seeds; a method reaches the level with 0.05·49²·(d/49)^exponent samples, the kernel with half as many."""
    rows = []
    for seed in range(3):
        for method, exponent, share in (("gradient", network, 0.05), ("quadratic", kernel, 0.025)):
            for dim in PARAMS.need_dims:
                enough = share * 49**2 * (dim / 49) ** exponent
                for ratio in PARAMS.need_ratios:
                    samples = round(ratio * dim**2)
                    accuracy = 0.5 + (LEVEL - 0.5) * min(1.1, (samples / enough) ** (0.3 + 0.01 * seed))
                    row = {"arm": "xor-needs", "seed": seed, "dim": dim, "method": method, "samples": samples}
                    rows.append(row | {"metric": "test_accuracy", "value": accuracy})
    return Measurements(pl.DataFrame(rows), PARAMS)


def verdicts(found: Measurements) -> dict[str, str]:
    return {name: study.claims[name].judge(found).verdict for name in ("C5y", "C5z", "X29", "X30")}


def test_exponents_as_in_the_source_are_told_from_equal_ones():
    assert verdicts(law(1.5, 2.2)) == {"C5y": "holds", "C5z": "holds", "X29": "fails", "X30": "holds"}
    assert verdicts(law(2.0, 1.5)) == {"C5y": "fails", "C5z": "fails", "X29": "holds", "X30": "holds"}


def test_the_samples_of_a_power_law_are_found():
    found = needed(law(1.5, 2.0), 70, arm="xor-needs", method="gradient")
    assert list(found.by_seed.values()) == pytest.approx([0.05 * 49**2 * (70 / 49) ** 1.5] * 3, rel=0.05)


def test_a_level_that_one_seed_never_reaches_leaves_no_claim_standing():
    found = law(1.5, 1.5)
    lost = found.frame.with_columns(
        value=pl.when((pl.col("seed") == 1) & (pl.col("dim") == 49)).then(0.6).otherwise("value")
    )
    assert "holds" not in verdicts(Measurements(lost, PARAMS)).values()
