"""The one place that touches transformers' private side, and what it gives back while the long prompt runs."""

import ast
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import nn

from assay.evaluation import needle_prompt
from assay.methods import gemfilter
from assay.methods.gemfilter import GemFilter, layer_scan
from assay.methods.gemfilter.adapter import memory, read_layers, sliding_window
from assay.methods.gemfilter.prompts import prompt_of

PACKAGE = Path(gemfilter.__file__).parent
OUTSIDE = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent.name != "adapter"]
#: Attributes of transformers' modules, registries and caches that no one promises to keep.
PRIVATE = {
    "self_attn",
    "rotary_emb",
    "embed_tokens",
    "input_layernorm",
    "q_proj",
    "k_proj",
    "qkv_proj",
    "mlp",
    "num_key_value_groups",
    "layer_idx",
    "position_embeddings",
}


def own_names() -> set[str]:
    """What the package defines itself: its methods may call one another."""
    nodes = (node for path in PACKAGE.rglob("*.py") for node in ast.walk(ast.parse(path.read_text())))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def private_touches(source: str) -> list[str]:
    """Imports of transformers' modules, and attributes that are its own business."""
    found, own = [], own_names()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("transformers."):
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("transformers.")]
        elif isinstance(node, ast.Attribute):
            ours = node.attr in own or (isinstance(node.value, ast.Name) and node.value.id == "self")
            hidden = node.attr.startswith("_") and not node.attr.startswith("__") and not ours
            if hidden or node.attr in PRIVATE:
                found.append(node.attr)
    return found


def test_the_reader_of_private_touches_sees_them():
    source = "from transformers.cache_utils import Cache\nconfig._attn_implementation\nlayer.self_attn\nself._own\n"
    assert private_touches(source) == ["transformers.cache_utils", "_attn_implementation", "self_attn"]
    assert private_touches((PACKAGE / "adapter" / "interface.py").read_text())


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path.name)
def test_no_other_module_touches_transformers_private_side(path):
    assert private_touches(path.read_text()) == []


@contextmanager
def embedded(monkeypatch):
    """The embedded prompts of all forward passes, caught where no hook is seen: below the module."""
    caught, usual = [], nn.functional.embedding

    def catch(*args, **kwargs):
        caught.append(usual(*args, **kwargs))
        return caught[-1]

    with monkeypatch.context() as patch:
        patch.setattr(nn.functional, "embedding", catch)
        yield caught


def sizes(tensors):
    return [tensor.untyped_storage().size() for tensor in tensors]


def kept_whole(monkeypatch, run):
    """What ``run`` returns when the embedding is never given back."""
    with monkeypatch.context() as patch:
        patch.setattr(memory, "_forgetful", lambda _: False)
        return run()


@pytest.mark.parametrize("rule", ["logits", "window"])
def test_the_embedded_prompt_is_given_back_and_the_selection_stays(any_model, ids, rule, monkeypatch):
    chosen = GemFilter(layer=3, keep=16, rule=rule, window=8)
    expected = kept_whole(monkeypatch, lambda: chosen.select(any_model, ids))
    with embedded(monkeypatch) as caught:
        made = chosen.select(any_model, ids)
    assert len(caught) == 1
    assert sizes(caught) == [0]
    assert torch.equal(made.scores, expected.scores)
    assert torch.equal(made.indices, expected.indices)


def test_it_is_given_back_before_the_second_layer_runs(llama, ids, monkeypatch):
    seen = []
    with embedded(monkeypatch) as caught:
        handles = [
            llama.model.layers[0].mlp.register_forward_pre_hook(lambda *_: seen.append(sizes(caught)[0])),
            llama.model.layers[1].register_forward_pre_hook(lambda *_: seen.append(sizes(caught)[0])),
        ]
        GemFilter(layer=3, keep=16).select(llama, ids)
    for handle in handles:
        handle.remove()
    assert seen == [60 * 64 * 4, 0]


def test_left_padded_batches_give_it_back_too(any_model, ids, monkeypatch):
    batch = torch.cat([ids, torch.cat([torch.zeros(1, 7, dtype=torch.long), ids[:, 7:]], dim=1)])
    mask = torch.ones_like(batch)
    mask[1, :7] = 0
    chosen = GemFilter(layer=3, keep=16)
    expected = kept_whole(monkeypatch, lambda: chosen.select(any_model, batch, attention_mask=mask))
    with embedded(monkeypatch) as caught:
        made = chosen.select(any_model, batch, attention_mask=mask)
    assert sizes(caught) == [0]
    assert torch.equal(made.scores, expected.scores)


def test_the_first_layer_as_filter_stops_before_anything_is_given_back(any_model, ids, monkeypatch):
    chosen = GemFilter(layer=0, keep=16)
    expected = kept_whole(monkeypatch, lambda: chosen.select(any_model, ids))
    with embedded(monkeypatch) as caught:
        made = chosen.select(any_model, ids)
    assert sizes(caught) == [60 * 64 * 4]
    assert torch.equal(made.scores, expected.scores)


def test_a_scan_of_all_layers_gives_it_back(make_model, tokenizer, monkeypatch):
    model = make_model("Llama", vocab_size=400)
    text = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(60))
    prompts = [needle_prompt(tokenizer, 120, 0.5, seed=i, haystack=text) for i in range(2)]
    expected = kept_whole(monkeypatch, lambda: layer_scan(model, prompts, keep=24))
    with embedded(monkeypatch) as caught:
        made = layer_scan(model, prompts, keep=24)
    assert sizes(caught) == [0, 0]
    assert torch.equal(made.recall, expected.recall)
    assert torch.equal(made.distance, expected.distance)


@pytest.mark.parametrize("family", ["Llama", "Phi3"])
def test_a_decoder_without_its_head_gives_it_back(make_model, ids, family, monkeypatch):
    whole = make_model(family)
    with embedded(monkeypatch) as caught:
        made = GemFilter(layer=2, keep=16).select(whole.model, ids)
    assert sizes(caught) == [0]
    assert torch.equal(made.scores, GemFilter(layer=2, keep=16).select(whole, ids).scores)


def test_the_model_and_its_table_are_as_before(llama, ids):
    before = {name: part.clone() for name, part in llama.state_dict().items()}
    logits = llama(ids).logits
    with torch.inference_mode():
        GemFilter(layer=3, keep=16).select(llama, ids)
    GemFilter(layer=3, keep=16).select(llama, ids)
    assert all(torch.equal(part, before[name]) for name, part in llama.state_dict().items())
    assert torch.equal(llama(ids).logits, logits)


WATCHED = {
    "the embedding": lambda model: model.model.embed_tokens,
    "the rotation": lambda model: model.model.rotary_emb,
    "the first layer": lambda model: model.model.layers[0],
    "its norm": lambda model: model.model.layers[0].input_layernorm,
}


@pytest.mark.parametrize("kind", ["register_forward_hook", "register_forward_pre_hook"])
@pytest.mark.parametrize("place", WATCHED)
def test_nothing_is_given_back_under_somebody_elses_hook(llama, ids, place, kind, monkeypatch):
    held = []
    handle = getattr(WATCHED[place](llama), kind)(lambda _, *seen: held.append(seen))
    with embedded(monkeypatch) as caught:
        GemFilter(layer=3, keep=16).select(llama, ids)
    handle.remove()
    assert held
    assert sizes(caught) == [60 * 64 * 4]


def test_hooks_on_all_modules_count(llama, ids, monkeypatch):
    handle = nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        with embedded(monkeypatch) as caught:
            GemFilter(layer=3, keep=16).select(llama, ids)
    finally:
        handle.remove()
    assert sizes(caught) == [60 * 64 * 4]


@pytest.mark.parametrize("place", ["the embedding", "the first layer"])
def test_accelerates_hooks_count(llama, ids, place, monkeypatch):
    hooks = pytest.importorskip("accelerate.hooks", reason="accelerate comes with the extra llm")
    chosen = GemFilter(layer=3, keep=16)
    expected = chosen.select(llama, ids)

    class Holding(hooks.ModelHook):
        def post_forward(self, module, output):
            self.held = output
            return output

    hook = Holding()
    hooks.add_hook_to_module(WATCHED[place](llama), hook)
    with embedded(monkeypatch) as caught:
        made = chosen.select(llama, ids)
    hooks.remove_hook_from_module(WATCHED[place](llama))
    assert sizes(caught) == [60 * 64 * 4]
    assert hook.held.untyped_storage().size() > 0
    assert torch.equal(made.scores, expected.scores)


def test_tables_that_keep_their_output_and_unknown_decoders_are_left_alone(llama, ids, monkeypatch):
    class Remembering(nn.Embedding):
        def forward(self, tokens):
            self.last = super().forward(tokens)
            return self.last

    chosen, usual = GemFilter(layer=3, keep=16), llama.model.embed_tokens
    expected = chosen.select(llama, ids).scores
    llama.model.embed_tokens = Remembering(97, 64, _weight=usual.weight)
    assert torch.equal(chosen.select(llama, ids).scores, expected)
    assert torch.equal(llama.model.embed_tokens.last, usual(ids))
    llama.model.embed_tokens = usual

    class Returning(type(llama.model)):
        """Somebody's own decoder, which may read its input again."""

    llama.model.__class__ = Returning
    with embedded(monkeypatch) as caught:
        assert torch.equal(chosen.select(llama, ids).scores, expected)
    assert sizes(caught) == [60 * 64 * 4]


def test_no_hook_is_left_when_a_layer_raises(llama, ids):
    def burst(*_):
        raise RuntimeError("burst")

    for place in (llama.model.layers[0].mlp, llama.model.layers[2].mlp):
        handle = place.register_forward_pre_hook(burst)
        with pytest.raises(RuntimeError, match="burst"):
            GemFilter(layer=3, keep=16).score(llama, prompt_of(llama, ids))
        handle.remove()
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in llama.modules())
    assert GemFilter(layer=3, keep=16).select(llama, ids).kept()


def test_sliding_layers_of_a_model_of_text_and_images_are_its_decoders():
    transformers = pytest.importorskip("transformers")
    kinds = ["sliding_attention"] * 3 + ["full_attention"]
    text = dict(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        sliding_window=16,
        layer_types=kinds,
    )
    image = dict(
        hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14
    )
    config = transformers.Gemma3Config(text_config=text, vision_config=image, mm_tokens_per_image=4)
    model = transformers.Gemma3ForConditionalGeneration(config)
    assert [sliding_window(model, layer) for layer in range(4)] == [16, 16, 16, None]


def test_names_in_the_registry_are_of_one_call(make_model, ids):
    """Two models that are read at the same time do not meet there, and what was set before comes back."""
    outer, inner = make_model("Llama"), make_model("Llama", seed=1)
    outer.config._attn_implementation = "sdpa"
    found = []

    def take(_, projected):
        read_layers(inner, ids, None, [1], None, lambda *_: None, interface=True)
        found.append(projected)

    read_layers(outer, ids, None, [2], None, take, interface=True)
    assert len(found) == 1
    assert outer.config._attn_implementation == "sdpa"
