from __future__ import annotations

from functools import partial

import polars as pl
import pytest

from assay.lab import Measurements, NotMeasured, discovery

study = discovery.find("fourier-circuits")


def at_strengths(strengths: tuple[float, ...], overrides: dict[str, str] | None = None) -> Measurements:
    rows = [
        ("regularisation", "full-k3", strength, seed, None, metric, value + 1e-4 * seed)
        for strength in strengths
        for metric, value in {"full_margin_ratio": 0.99, "norm": 0.01, "objective": 1.001, "optimum": 1.0}.items()
        for seed in range(3)
    ]
    frame = pl.DataFrame(rows, schema=["arm", "setting", "strength", "seed", "step", "metric", "value"], orient="row")
    frame = frame.with_columns(pl.col("step").cast(pl.Int64))
    values = overrides or {}
    return Measurements(frame, study.resolve("laptop", values), setting_params=partial(study.resolve, "laptop", values))


@pytest.mark.parametrize("overrides", [{}, {"strengths": "0.1,0.2"}, {"full-k3.strengths": "0.1,0.2"}])
def test_the_strengths_that_were_run_are_judged(overrides):
    """Whatever a parameter says, of the study or of the setting."""
    found = at_strengths((1e-4, 1e-2), overrides)
    for claim_id in ("C7d", "C7e", "C7f"):
        assert study.claims[claim_id].judge(found).verdict == "holds", claim_id


@pytest.mark.parametrize(("claim_id", "strength"), [("C7d", 0.1), ("C7e", 0.1), ("C7f", 1e-4)])
def test_strengths_on_the_other_side_only_are_outside_the_claim(claim_id, strength):
    with pytest.raises(NotMeasured, match="the claim is about a λ"):
        study.claims[claim_id].judge(at_strengths((strength,)))


@pytest.mark.parametrize("override", [{"full-k2.modulus": "13"}, {"full-k3.whole": "false"}])
def test_all_frequencies_are_claimed_of_the_named_pairs(override):
    found = Measurements(
        pl.DataFrame({"arm": ["full-data"]}),
        study.resolve("laptop", {}),
        setting_params=partial(study.resolve, "laptop", override),
    )
    with pytest.raises(NotMeasured, match="the claim is about all inputs"):
        study.claims["C4y"].judge(found)
