from __future__ import annotations

import math
from functools import partial

import polars as pl
import pytest

from assay.lab import Measurements, NotMeasured, discovery
from assay.studies.fourier_circuits.grokking.claims import known_delay

study = discovery.find("fourier-circuits")


def measured(rows: list[tuple[str, str, int, float]]) -> Measurements:
    frame = pl.DataFrame(
        [("grokking", setting, seed, None, metric, value) for setting, metric, seed, value in rows],
        schema={
            "arm": pl.String,
            "setting": pl.String,
            "seed": pl.Int64,
            "step": pl.Int64,
            "metric": pl.String,
            "value": pl.Float64,
        },
        orient="row",
    )
    return Measurements(frame, study.resolve("smoke", {}), setting_params=partial(study.resolve, "smoke", {}))


@pytest.mark.parametrize(("claim_id", "setting"), [("C6d", "sum-of-2"), ("C6i", "sum-of-2-strong")])
def test_a_network_that_memorises_for_ever_does_not_grok(claim_id, setting):
    judge = study.claims[claim_id].judge
    for generalised, verdict in ((1.0, "holds"), (0.0, "fails")):
        rows = [(setting, "log_ratio", seed, 0.8 + 0.01 * seed) for seed in range(4)]
        rows += [(setting, "generalised", seed, generalised if seed else 1.0) for seed in range(4)]
        assert judge(measured(rows)).verdict == verdict


def test_c6k_needs_equal_counts():
    with pytest.raises(NotMeasured, match="equal p and equal numbers"):
        study.claims["C6k"].judge(
            Measurements(
                pl.DataFrame({"arm": ["equal-counts"]}),
                study.resolve("smoke", {}),
                setting_params=partial(study.resolve, "smoke", {"equal-4.train_count": "61"}),
            )
        )


@pytest.mark.parametrize(
    ("overrides", "words"),
    [({"sum-of-2.decay": "0.1"}, "weight decay 0.001"), ({"sum-of-3.modulus": "13"}, "smaller p")],
)
def test_c6l_is_about_the_listed_decay_and_a_smaller_p(overrides, words):
    frame = pl.DataFrame({"arm": ["grokking"]})
    of = partial(study.resolve, "smoke", overrides)
    with pytest.raises(NotMeasured, match=words):
        study.claims["C6l"].judge(Measurements(frame, study.resolve("smoke", {}), setting_params=of))


@pytest.mark.parametrize("claim_id", ["C5a", "C5e", "N6"])
@pytest.mark.parametrize(("last", "verdict"), [(1.0, "holds"), (0.0, "fails")])
def test_a_claim_on_heads_after_grokking_is_not_met_by_a_run_that_never_groks(claim_id, last, verdict):
    shares = {"top2_trained": 0.8, "top2_untrained": 0.1, "top2_shuffled": 0.2}
    rows = [("sum-of-2-strong", name, seed, value + 1e-3 * seed) for name, value in shares.items() for seed in range(4)]
    rows += [("sum-of-2-strong", "generalised", seed, last if seed == 3 else 1.0) for seed in range(4)]
    assert study.claims[claim_id].judge(measured(rows)).verdict == verdict


def test_c6h_is_about_every_run():
    for last, verdict in ((1.0, "holds"), (0.0, "fails")):
        rows = [("sum-of-2-strong", "generalised", seed, last if seed == 3 else 1.0) for seed in range(4)]
        assert study.claims["C6h"].judge(measured(rows)).verdict == verdict


def test_a_delay_that_is_a_lower_bound_cannot_show_that_another_is_longer():
    rows = [("sum-of-3", "log_ratio", 0, 0.5), ("sum-of-3", "log_ratio", 1, 0.7)]
    rows += [("sum-of-3", "generalised", 0, 1.0), ("sum-of-3", "generalised", 1, 0.0)]
    found = known_delay(measured(rows), 3).by_seed
    assert found[0] == 0.5
    assert math.isnan(found[1])
