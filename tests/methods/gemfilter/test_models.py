import pytest
import torch

from assay.methods.gemfilter import GemFilter, load_filter


def test_a_filter_is_loaded_from_a_whole_checkpoint(make_model, ids, tmp_path, monkeypatch):
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda *_, **__: None)
    make_model("Qwen2").save_pretrained(tmp_path / "model")
    part = load_filter(str(tmp_path / "model"), layer=2)
    chosen = GemFilter(layer=2, keep=12)
    assert len(part.model.layers) == 3
    assert not hasattr(part.model, "lm_head")
    assert torch.equal(chosen.select(part.model, ids).indices, chosen.select(make_model("Qwen2"), ids).indices)


@pytest.mark.parametrize("layer", ["1", 1.5, True])
def test_a_layer_is_a_whole_number(layer):
    with pytest.raises(ValueError, match="layer must be an integer"):
        load_filter("nowhere", layer=layer)
