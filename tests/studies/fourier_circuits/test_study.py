from __future__ import annotations

import pytest

from assay.lab import UserError, discovery
from assay.lab.planning import make_plan
from assay.lab.units import Request
from assay.methods.modular_margin import required_width
from assay.studies.fourier_circuits.heads.arms import SETTINGS as HEADS

study = discovery.find("fourier-circuits")


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
        ({"strengths": "0,1e-3"}, "positive and occur once"),
        ({"strengths": "1e-3,-1e-3"}, "positive and occur once"),
        ({"strengths": "1e-3,1e-3"}, "positive and occur once"),
        ({"strengths": "1e-3,nan"}, "finite"),
        ({"rate": "inf"}, "finite"),
        ({"transformer_rate": "inf"}, "finite"),
        ({"modulus": "1001"}, "more than the 16777216"),
        ({"terms": "40"}, "more than the 16777216"),
        ({"modulus": "3", "terms": "12"}, "smaller width"),
        ({"modulus": "101", "whole": "true"}, "at once"),
    ],
)
def test_bad_parameters_get_one_sentence(overrides, words):
    with pytest.raises(UserError, match=words):
        study.resolve("smoke", overrides)


@pytest.mark.parametrize("name", ["k3.terms", "sum-of-3.terms", "heads-3.terms"])
def test_settings_refuse_more_inputs_than_memory_holds(name):
    with pytest.raises(UserError, match="more than the 16777216"):
        study.resolve("laptop", {name: "40"}, name.partition(".")[0])


def test_even_p_is_for_transformers():
    for setting in study.settings:
        if study.resolve("laptop", {}, setting).learner == "transformer":
            assert study.resolve("laptop", {f"{setting}.modulus": "12"}, setting).modulus == 12
        else:
            with pytest.raises(UserError, match="p must be odd"):
                study.resolve("laptop", {f"{setting}.modulus": "12"}, setting)


@pytest.mark.parametrize(
    ("arm", "name", "value"), [("network", "k3.learner", "transformer"), ("grokking", "sum-of-2.learner", "network")]
)
def test_a_setting_keeps_its_learner(arm, name, value):
    with pytest.raises(UserError, match=f"learner={value} is not allowed"):
        make_plan(study, Request("smoke", overrides={name: value}, arms=arm))


def test_a_transformer_keeps_inputs_to_be_validated_on():
    with pytest.raises(UserError, match="whole=true is not allowed"):
        make_plan(study, Request("smoke", overrides={"sum-of-2.whole": "true"}, arms="grokking"))


def domain(claim_id: str, preset: str, **overrides: str) -> list[str]:
    """The parts of a claim's domain that a run lies outside of."""
    claim = study.claims[claim_id]
    named = {f"{claim.setting}.{name}": value for name, value in overrides.items()}
    params = study.resolve(preset, named, claim.setting)
    return [words for words, predicate in claim.when.items() if not predicate(params)]


@pytest.mark.parametrize(
    ("claim_id", "preset", "overrides", "outside"),
    [
        ("C5a", "laptop", {}, []),
        ("C5a", "paper", {}, ["1-layer transformers"]),
        ("C6d", "laptop", {}, []),
        ("C6d", "laptop", {"decay": "0.1"}, ["weight decay 0.001"]),
        ("C5g", "paper", {}, []),
        ("C5g", "laptop", {}, ["160 heads"]),
        ("C7a", "laptop", {}, []),
        ("C7a", "laptop", {"penalty": "1e-3"}, ["λ = 0.0001"]),
        ("C4w", "laptop", {"modulus": "13"}, ["p = 11"]),
        ("C4a", "laptop", {"train_count": "100"}, ["half of the inputs"]),
        ("C7d", "laptop", {}, []),
        ("C7d", "laptop", {"terms": "2"}, ["k = 3"]),
        ("C4v", "laptop", {"whole": "false"}, ["training on all inputs"]),
        ("N5", "laptop", {}, []),
        ("N5", "laptop", {"modulus": "13"}, ["p = 11"]),
        ("N1", "laptop", {"regulariser": "norm"}, ["the regulariser decay"]),
        ("C7e", "laptop", {"width": "20"}, ["at least 2^{2k−2}(p−1) neurons"]),
        ("C7f", "laptop", {"regulariser": "norm"}, ["the regulariser sum"]),
    ],
)
def test_claims_are_not_judged_outside_their_words(claim_id, preset, overrides, outside):
    assert domain(claim_id, preset, **overrides) == outside
