"""The benchmark's machinery on a tiny shape. What it measures is reported, never asserted here."""

import pytest
import torch

from assay import benchmarks
from assay.benchmarks import gemfilter

pytest.importorskip("transformers", reason="the benchmark needs the extra llm")
TINY = dict(
    vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=4, num_attention_heads=4,
    num_key_value_heads=2, head_dim=8, max_position_embeddings=512,
)  # fmt: skip


def test_a_row_per_length_with_the_methods_side_by_side(monkeypatch):
    monkeypatch.setattr(gemfilter, "CPU", gemfilter.Plan(TINY, 2, (64, 128), 40, 2, 2))
    result = benchmarks.run("gemfilter", "cpu")
    assert [row["tokens"] for row in result["rows"]] == [64, 128]
    assert all(row["ceiling"] == 2.0 and row["prefill speed-up"] > 0 for row in result["rows"])


def test_every_method_decodes_from_the_cache_it_says():
    model = gemfilter.model_of(TINY, "cpu")
    plan = gemfilter.Plan(TINY, 2, (64,), 40, 3, 1)
    ids = torch.randint(3, 97, (1, 64))
    seen = {}

    def note(module, args, kwargs, output):
        cache = kwargs.get("past_key_values")
        if cache is not None:
            seen[id(cache)] = (cache.layers[0].stored, cache.layers[0].seen)

    handle = model.register_forward_hook(note, with_kwargs=True)
    lengths = {}
    for name, method in gemfilter._METHODS.items():
        seen.clear()
        method(model, ids, plan, "cpu")
        lengths[name] = list(seen.values())[-1]
    handle.remove()
    assert lengths == {"full": (67, 67), "snapkv": (43, 67), "gemfilter": (43, 43)}


def test_the_filters_model_has_its_layers_and_no_head():
    model = gemfilter.model_of(TINY, "cpu", layers=3)
    assert len(model.layers) == 3
    assert not hasattr(model, "lm_head")
