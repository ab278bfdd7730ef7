"""The form of every study: nothing that the command line can change is missing from it."""

from __future__ import annotations

import pytest

from assay import lab
from assay.serve.forms import form

STUDIES = [outline.name for outline in lab.outlines()]


@pytest.mark.parametrize("name", STUDIES)
def test_every_parameter_and_named_setting_can_be_changed(name):
    study = lab.find_study(name)
    made = form(study)
    fields = {field["name"]: field for field in made["parameters"]}
    assert list(fields) == list(study.model.model_fields)
    layers = [study.settings, *(preset.settings for preset in study.presets.values())]
    known = {f"{setting}.{fixed}" for layer in layers for setting, names in layer.items() for fixed in names}
    for preset, facts in made["presets"].items():
        assert facts["values"].keys() == fields.keys() | known
        for setting, names in made["settings"].items():
            own = study.resolve(preset, {}, setting).model_dump(mode="json")
            assert all(facts["values"][f"{setting}.{fixed}"] == own[fixed] for fixed in names)
    for field in fields.values():
        assert field["kind"] in ("int", "float", "bool", "text", "choice", "list")
        if field["kind"] == "list":
            assert field["items"]["kind"] in ("int", "float", "text", "choice"), "what a person can type"


def test_what_a_form_says_of_a_setting_is_what_a_run_takes():
    study = lab.find_study("feature-emergence")
    values = form(study)["presets"]["smoke"]["values"]
    assert values["interval.steps"] != values["steps"]
    changed = study.resolve("smoke", {"interval.steps": 70}, "interval")
    assert changed.model_dump()["steps"] == 70
