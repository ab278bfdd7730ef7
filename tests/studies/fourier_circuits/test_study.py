from __future__ import annotations

import math

import polars as pl
import pytest

from assay.lab import Measurements, UserError
from assay.methods.modular_margin import required_width
from assay.studies.fourier_circuits import claims  # noqa: F401 (registers the claims)
from assay.studies.fourier_circuits.study import HEADS, study
from assay.studies.fourier_circuits.transformer_claims import known_delay


def test_the_paper_preset_has_the_sources_sizes():
    for setting, (k, p, m) in {"k3": (3, 97, 1536), "k4": (4, 47, 2944), "k5": (5, 23, 5632)}.items():
        params = study.resolve("paper", {}, setting)
        assert (params.terms, params.modulus) == (k, p)
        assert params.width is None
        assert required_width(p, k) == m
        assert (params.batch, params.rate, params.penalty, params.regulariser) == (1024, 5e-3, 5e-3, "norm")
    for k, p in ((2, 97), (3, 31), (4, 11), (5, 5)):
        params = study.resolve("paper", {}, f"sum-of-{k}")
        assert (params.terms, params.modulus, params.layers, params.heads, params.dim) == (k, p, 2, 160, 128)
        assert (params.decay, params.transformer_rate) == (1e-3, 1e-3)
    assert {(study.resolve("paper", {}, s).modulus, study.resolve("paper", {}, s).layers) for s in HEADS} == {
        (61, 1),
        (31, 1),
        (17, 1),
    }


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"modulus": "8"}, "p must be odd"),
        ({"cases": "7x3"}, "write pairs as p-k"),
        ({"cases": "8-3"}, "p = 8"),
        ({"cases": "23-5"}, "at most 100,000"),
        ({"ascents": "7-1"}, "k = 1"),
        ({"modulus": "5", "terms": "2", "train_count": "25"}, "leave none"),
        ({"regulariser": "l1"}, "regulariser"),
    ],
)
def test_bad_parameters_get_one_sentence(overrides, words):
    with pytest.raises(UserError, match=words):
        study.resolve("smoke", overrides)


def test_a_delay_that_is_a_lower_bound_cannot_show_that_another_is_longer():
    rows = [("log_ratio", 0, 0.5), ("log_ratio", 1, 0.7), ("generalised", 0, 1.0), ("generalised", 1, 0.0)]
    frame = pl.DataFrame(
        [("grokking", "sum-of-3", seed, None, metric, value) for metric, seed, value in rows],
        schema={"arm": pl.String, "setting": pl.String, "seed": pl.Int64, "step": pl.Int64, "metric": pl.String,
                "value": pl.Float64},
        orient="row",
    )  # fmt: skip
    found = known_delay(Measurements(frame, study.resolve("smoke", {})), 3).by_seed
    assert found[0] == 0.5
    assert math.isnan(found[1])
