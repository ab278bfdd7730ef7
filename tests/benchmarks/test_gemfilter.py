"""The benchmark's machinery on a tiny shape. What it measures is reported, never asserted here."""

import pytest
import torch

from assay import benchmarks
from assay.benchmarks import gemfilter

pytest.importorskip("transformers", reason="the benchmark needs the extra llm")
TINY = dict(
    vocab_size=97,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=512,
)


def test_a_row_per_length_with_the_methods_side_by_side(monkeypatch):
    monkeypatch.setattr(gemfilter, "CPU", gemfilter.Plan(TINY, 2, (64, 128), 40, 2, 2))
    result = benchmarks.run("gemfilter", "cpu")
    assert [row["tokens"] for row in result["rows"]] == [64, 128]
    assert all(row["ceiling"] == 2.0 and row["prefill speed-up"] > 0 for row in result["rows"])


def test_every_method_decodes_from_the_cache_it_says():
    model = gemfilter.model_of(TINY, "cpu")
    plan = gemfilter.Plan(TINY, 2, (64,), 40, 3, 1)
    ids = torch.randint(3, 97, (1, 64))
    states = {name: method(model, ids, plan, "cpu")[1] for name, method in gemfilter._METHODS.items()}
    again = {name: state.fresh() for name, state in states.items()}
    times = gemfilter._in_turns(model, again, plan.new, "cpu")
    lengths = {name: (state.cache.layers[0].stored, state.cache.layers[0].seen) for name, state in again.items()}
    assert lengths == {"full": (67, 67), "snapkv": (43, 67), "gemfilter": (43, 43)}
    assert {name: len(each) for name, each in times.items()} == {"full": 3, "snapkv": 3, "gemfilter": 3}
    assert {state.cache.layers[0].stored for state in states.values()} == {64, 40}  # to be decoded from again
    assert set(gemfilter._decode(model, states, plan.new, "cpu")) == set(states)


def test_a_baseline_with_the_same_savings_reads_the_same_prompt():
    model = gemfilter.model_of(TINY, "cpu")
    plan, ids = gemfilter.Plan(TINY, 2, (64,), 40, 3, 1), torch.randint(3, 97, (1, 64))
    before = [layer.mlp.__dict__.get("forward") for layer in model.model.layers]
    assert gemfilter._same_savings(model, ids, plan, "snapkv", "cpu") > 0
    assert [layer.mlp.__dict__.get("forward") for layer in model.model.layers] == before


def test_a_ratio_is_the_median_of_pairs():
    assert gemfilter._ratio([1.0, 20.0, 3.0], [2.0, 10.0, 1.0]) == 2.0


def test_the_filters_model_has_its_layers_and_no_head():
    model = gemfilter.model_of(TINY, "cpu", layers=3)
    assert len(model.layers) == 3
    assert not hasattr(model, "lm_head")
