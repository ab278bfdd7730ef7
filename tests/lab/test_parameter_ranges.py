"""Every parameter of every study is refused out of its range before any work, in one sentence."""

from __future__ import annotations

import math
from typing import Any, get_args, get_origin

import pytest

from assay.lab import UserError, discovery
from assay.lab.planning import make_plan
from assay.lab.units import Request

STUDIES = discovery.studies()
FIELDS = [(study, name, field) for study, found in STUDIES.items() for name, field in found.model.model_fields.items()]


def holds(kind: Any, wanted: type) -> bool:
    """Whether a type is ``wanted`` or has it somewhere inside: float, float | None, tuple[float, ...]."""
    return kind is wanted or any(holds(part, wanted) for part in get_args(kind))


def several(kind: Any) -> bool:
    return get_origin(kind) is tuple


def refused(study: str, **overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        make_plan(STUDIES[study], Request("smoke", overrides))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("study", "name"), [(study, name) for study, name, field in FIELDS if holds(field.annotation, float)]
)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_no_number_is_infinite_or_none(study, name, value):
    assert name in refused(study, **{name: value})


@pytest.mark.parametrize(
    ("study", "name"), [(study, name) for study, name, field in FIELDS if several(field.annotation)]
)
def test_a_parameter_that_takes_several_values_needs_one(study, name):
    if (study, name) == ("feature-emergence", "positive"):
        pytest.skip("no count is labelled +1 unless labels=counts")
    assert name in refused(study, **{name: ""})


# α may have any sign.
@pytest.mark.parametrize(
    ("study", "name"),
    [
        (study, name)
        for study, name, field in FIELDS
        if (holds(field.annotation, int) or holds(field.annotation, float)) and name != "alpha"
    ],
)
def test_nothing_is_negative(study, name):
    sentence = refused(study, **{name: "-1"})
    assert "Error:" not in sentence, "a validator of the study should say what is wrong"


@pytest.mark.parametrize(
    ("study", "overrides", "says"),
    [
        ("feature-emergence", {"fractions": "0.001"}, "fractions"),
        ("feature-emergence", {"fractions": "1"}, "fractions"),
        ("feature-emergence", {"descent_widths": "0"}, "descent_widths"),
        ("feature-emergence", {"code_patterns": "10", "code_relevant": "20"}, "20 relevant of 10 patterns"),
        ("gemfilter", {"lengths": "20"}, "a prompt of 20 tokens has no room"),
        ("gemfilter", {"cost_lengths": "0"}, "cost_lengths"),
        ("gemfilter", {"real_depths": "1.5"}, "real_depths"),
        ("looped-transformers", {"dims": "0"}, "dims"),
        ("looped-transformers", {"draws": "50", "trials": "60"}, "50 draws make no mean over 60 trials"),
        ("meta-split", {"phase_noise": "0,1"}, "phase_noise"),
        ("meta-split", {"phase_tasks": "2,2"}, "phase_tasks names a value twice"),
        ("meta-split", {"reptile": "inf 1.0", "reptile_candidates": "inf 1.0"}, "'inf 1.0' is not an inner rate"),
        ("meta-split", {"fomaml": "nan 1.0", "fomaml_candidates": "nan 1.0"}, "'nan 1.0' is not an inner rate"),
    ],
)
def test_values_that_make_no_sense(study, overrides, says):
    assert says in refused(study, **overrides)


@pytest.mark.parametrize(
    ("study", "name"),
    [(study, name) for study, name, _ in FIELDS if name in ("images", "resnet_images")],
)
@pytest.mark.parametrize("value", ["mnsit", "../mnist", ""])
def test_an_image_set_that_nobody_knows(study, name, value):
    assert refused(study, **{name: value})


@pytest.mark.parametrize("study", STUDIES)
@pytest.mark.parametrize("preset", ["smoke", "laptop", "paper"])
def test_every_preset_is_within_the_ranges(study, preset, monkeypatch):
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    plan = make_plan(STUDIES[study], Request(preset))
    assert plan.units
    values = STUDIES[study].resolve(preset, {}).model_dump().values()
    assert all(math.isfinite(value) for value in values if isinstance(value, float))


def test_a_known_image_set_that_is_not_here_leaves_its_arms_out(monkeypatch):
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    monkeypatch.setattr("assay.data.catalog.find_spec", lambda name: None)
    plan = make_plan(STUDIES["feature-emergence"], Request("smoke", {"images": "mnist"}))
    assert {"image-weights", "injected-inputs"} <= set(plan.skipped)
