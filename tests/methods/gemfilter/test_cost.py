import re

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from assay.methods.gemfilter.cost import METHODS, Shape, cost_model

LLAMA = Shape(32, 4096, 14336, 32, 8, 128, 128_256)


def test_linear_terms_are_what_torch_counts(make_model, ids):
    model = make_model("Llama", "eager")
    shape = Shape.of(model.config)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(ids, logits_to_keep=1, use_cache=False)
    n = ids.shape[1]
    # The eager attention computes the whole square; the model counts the causal half.
    other_half = shape.layers * 2 * shape.heads * shape.head_dim * n * (n - 1)
    expected = cost_model("full", shape, n=n).prefill_flops + other_half
    rotary = 2 * n * shape.head_dim // 2
    assert counter.get_total_flops() == pytest.approx(expected, abs=2 * rotary)


def test_the_saving_tends_to_the_share_of_layers():
    ratios = []
    for n in (8_192, 131_072, 2**24):
        full, gem = (cost_model(method, LLAMA, n=n, layer=13) for method in ("full", "gemfilter"))
        ratios.append(gem.prefill_flops / full.prefill_flops)
    assert ratios[-1] == pytest.approx(13 / 32, rel=1e-3)
    assert ratios[0] == pytest.approx(13 / 32, rel=0.02)


def test_decoding_costs_what_its_cache_holds():
    costs = {method: cost_model(method, LLAMA, n=100_000, keep=1024, new=50, layer=13) for method in METHODS}
    assert costs["snapkv"].cache_bytes == costs["h2o"].cache_bytes == costs["gemfilter"].cache_bytes
    assert costs["full"].cache_bytes == 2 * 32 * 8 * 128 * 100_050 * 2
    assert costs["gemfilter"].decode_flops > costs["snapkv"].decode_flops
    assert costs["gemfilter"].prefill_bytes < costs["snapkv"].prefill_bytes < costs["full"].prefill_bytes
    filter_only = cost_model("gemfilter", LLAMA, n=100_000, layer=13, resident=False)
    assert filter_only.prefill_bytes < 0.6 * costs["gemfilter"].prefill_bytes


def test_index_sets_per_query_head_cost_a_groups_size():
    grouped, apart = (cost_model("snapkv", LLAMA, n=100_000, per_query_head=per) for per in (False, True))
    assert apart.cache_bytes == 4 * grouped.cache_bytes
    assert apart.prefill_bytes - grouped.prefill_bytes == 3 * 2 * 8 * 128 * 2 * 32 * 1024
    assert apart.prefill_flops == grouped.prefill_flops


def test_chunks_cost_time_linear_in_the_prompt_and_memory_that_is_constant():
    options = {"layer": 13, "chunk": 2048, "tail": 128}
    costs = [cost_model("gemfilter", LLAMA, n=n, **options) for n in (131_072, 1_048_576)]
    assert costs[1].prefill_flops / costs[0].prefill_flops == pytest.approx(8, rel=0.02)
    assert costs[1].prefill_bytes == costs[0].prefill_bytes
    full, whole = (cost_model(method, LLAMA, n=131_072, layer=13) for method in ("full", "gemfilter"))
    assert costs[0].prefill_flops < 0.6 * whole.prefill_flops < 0.3 * full.prefill_flops
    one = cost_model("gemfilter", LLAMA, n=4096, layer=13, chunk=4000, tail=128)
    assert one == cost_model("gemfilter", LLAMA, n=4096, layer=13)
    alone = cost_model("gemfilter", LLAMA, n=2048 + 128, layer=13)
    two = cost_model("gemfilter", LLAMA, n=2 * 2048 + 128, overlap=0, **options)
    assert two.prefill_flops == pytest.approx(2 * alone.prefill_flops)


@pytest.mark.parametrize("method", METHODS)
def test_a_share_is_of_the_prompt(method):
    share, number = (cost_model(method, LLAMA, n=5000, keep=keep, layer=13) for keep in (0.125, 625))
    assert share == number


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n": 0}, "n must be at least 1, not 0"),
        ({"new": -1}, "new must be at least 0, not -1"),
        ({"keep": 0}, "keep must be at least 1, not 0"),
        ({"keep": 2.5}, "keep must be an integer, or a share of the prompt between 0 and 1, not 2.5"),
        ({"layer": 2.5}, "layer must be an integer, not 2.5"),
        ({"chunk": 0}, "chunk must be at least 2, not 0"),
        ({"chunk": "auto"}, "chunk='auto' depends on the model's context, which a shape does not have: give a number"),
        ({"chunk": 100, "overlap": 100}, "overlap must be smaller than a chunk of 100 tokens, not 100"),
        ({"chunk": 100, "overlap": -3}, "overlap must be at least 0, not -3"),
        ({"chunk": 100, "tail": 0}, "tail must be at least 1, not 0"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(options, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        cost_model("gemfilter", LLAMA, **{"n": 5000, "layer": 13, **options})


def test_what_has_no_cost_is_refused():
    with pytest.raises(ValueError, match="only GemFilter reads in chunks"):
        cost_model("full", LLAMA, n=10, chunk=4)
    with pytest.raises(ValueError, match="SnapKV"):
        cost_model("h2o", LLAMA, n=10, per_query_head=True)
    with pytest.raises(ValueError, match="method must be one of"):
        cost_model("magic", LLAMA, n=10)
    with pytest.raises(ValueError, match="needs a layer between 0 and 31"):
        cost_model("gemfilter", LLAMA, n=10)
