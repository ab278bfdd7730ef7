"""The domain of a claim is that of the setting which it measures."""

from __future__ import annotations

import polars as pl
import pytest

from assay.lab import Measurements, discovery


@pytest.mark.parametrize(("claim", "share"), [("C4f", 80), ("C4g", 90)])
@pytest.mark.parametrize(("changed", "judged"), [("imbalance-{}.relevant", False), ("parity.relevant", True)])
def test_an_imbalanced_setting_outside_the_domain_is_not_judged(claim, share, changed, judged):
    study = discovery.studies()["feature-emergence"]
    overrides = {changed.format(share): 2}  # parity of an even number of patterns
    rows = [("network", f"imbalance-{share}", "structured", s, 1, "balanced_accuracy", 1.0) for s in range(3)]
    columns = ["arm", "setting", "inputs", "seed", "step", "metric", "value"]
    m = Measurements(
        pl.DataFrame(rows, schema=columns, orient="row"),
        study.resolve("smoke", {}),
        setting_params=lambda setting: study.resolve("smoke", overrides, setting),
    )
    found = {finding.claim.id: finding.judgement for finding in study.judge(m)}
    assert found[claim].verdict == ("holds" if judged else "not run")
    if not judged:
        assert found[claim].reason == "the claim is about parity of an odd number of relevant patterns"
