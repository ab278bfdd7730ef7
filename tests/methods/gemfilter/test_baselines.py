from __future__ import annotations

import copy

import pytest
import torch

from assay.evaluation.measure import stored_bytes
from assay.methods.gemfilter import H2O, FullAttention, GemFilter, OneRun, SnapKV, share_prefill
from assay.methods.gemfilter.adapter import after_attention, trimmed_cache
from assay.methods.gemfilter.cost import Shape, cache_bytes

METHODS = {
    "full": lambda keep: FullAttention(),
    "snapkv": lambda keep: SnapKV(keep, window=8),
    "snapkv-heads": lambda keep: SnapKV(keep, window=8, per_query_head=True),
    "h2o": lambda keep: H2O(keep, window=8, block=16),
    "one-run": lambda keep: OneRun(GemFilter(layer=2, keep=keep)),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_budget_for_everything_is_generation(any_model, ids, name):
    expected = any_model.generate(ids, max_new_tokens=6, do_sample=False)
    assert torch.equal(METHODS[name](60).generate(any_model, ids, max_new_tokens=6, do_sample=False), expected)


def masked_step(model, ids, kept):
    """Logits of a decoding step of the plain model, with the entries that were dropped masked in every layer."""
    from transformers.cache_utils import DynamicCache
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    cache = DynamicCache()
    first = model(ids, past_key_values=cache).logits[:, -1:].argmax(dim=-1)
    group = model.config.num_attention_heads // model.config.num_key_value_heads
    n = ids.shape[1]

    def masked(module, query, key, value, mask, scaling, **_):
        keys, values = (part.repeat_interleave(group, dim=1) for part in (key, value))
        logits = query @ keys.transpose(2, 3) * scaling
        if kept[module.layer_idx] is not None:
            index = kept[module.layer_idx]
            dropped = torch.ones(*index.shape[:2], key.shape[2], dtype=torch.bool)
            dropped.scatter_(2, index, False)
            dropped[..., n:] = False
            per_head = dropped.repeat_interleave(query.shape[1] // index.shape[1], dim=1)
            logits = logits.masked_fill(per_head[:, :, None], float("-inf"))
        return (logits.softmax(dim=-1) @ values).transpose(1, 2).contiguous(), None

    usual = model.config._attn_implementation
    type(ALL_ATTENTION_FUNCTIONS).register("masked_reference", masked)
    model.config._attn_implementation = "masked_reference"
    try:
        return model(first, past_key_values=cache).logits
    finally:
        model.config._attn_implementation = usual
        type(ALL_ATTENTION_FUNCTIONS)._global_mapping.pop("masked_reference")


@pytest.mark.parametrize("name", ["snapkv", "snapkv-heads", "h2o", "one-run"])
def test_a_compressed_cache_equals_a_full_one_with_the_dropped_entries_masked(any_model, ids, name):
    compressed_equals_masked(any_model, ids, name)


def other_model(family):
    """Read through the attention interface, since its projections are not known by name."""
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=512,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=None,
        initializer_range=0.15,
    )
    return getattr(transformers, f"{family}ForCausalLM")(config).eval()


@pytest.mark.parametrize("family", ["Granite", "StableLm", "Cohere"])
@pytest.mark.parametrize("name", ["snapkv", "h2o", "one-run"])
def test_so_does_the_cache_of_a_family_that_is_not_known_by_name(ids, family, name):
    model = other_model(family)
    compressed_equals_masked(model, ids, name)
    expected = model.generate(ids, max_new_tokens=6, do_sample=False)
    assert torch.equal(METHODS[name](60).generate(model, ids, max_new_tokens=6, do_sample=False), expected)
    usual = model.config._attn_implementation
    alone = METHODS[name](20).generate(model, ids, max_new_tokens=6, do_sample=False)
    assert torch.equal(share_prefill(model, ids, [METHODS[name](20)])[0].generate(model, max_new_tokens=6), alone)
    assert model.config._attn_implementation == usual


def test_what_a_family_that_is_not_known_cannot_do_is_refused(ids):
    with pytest.raises(ValueError, match="known by name, not GraniteAttention"):
        SnapKV(20, 8, per_query_head=True).generate(other_model("Granite"), ids, max_new_tokens=2)


@torch.no_grad()
def compressed_equals_masked(any_model, ids, name):
    method = METHODS[name](20)
    kept = {}

    def look(layer):
        kept[layer.index] = method.positions(layer)

    full = trimmed_cache(any_model)
    with after_attention(any_model, full, look):
        any_model(ids, past_key_values=full)
    if name == "one-run":
        index = method._chosen["index"]
        kept = {layer: index[:, None].expand(-1, 2, -1) for layer in kept}
    prefilled = share_prefill(any_model, ids, [method])[0]
    assert all(layer.stored == 20 and layer.seen == 60 for layer in prefilled.cache.layers)
    with after_attention(any_model, prefilled.cache, lambda _: None):
        compressed = any_model(prefilled.first, past_key_values=prefilled.cache).logits
    assert torch.allclose(compressed, masked_step(any_model, ids, kept), atol=1e-4)


@pytest.mark.parametrize(
    "method",
    [
        FullAttention(),
        SnapKV(20, 8),
        SnapKV(20, 8, per_query_head=True),
        H2O(20, 8),
        H2O(20, 8, decode_eviction=True),
        OneRun(GemFilter(layer=2, keep=20)),
    ],
    ids=lambda m: f"{m.name}",
)
def test_a_shared_prefill_answers_as_each_method_alone(any_model, ids, method):
    alone = method.generate(any_model, ids, max_new_tokens=6, do_sample=False)
    others = [FullAttention(), SnapKV(24, 8), method]
    shared = share_prefill(any_model, ids, others)
    assert torch.equal(shared[2].generate(any_model, max_new_tokens=6), alone)
    full = any_model.generate(ids, max_new_tokens=6, do_sample=False)
    assert torch.equal(shared[0].generate(any_model, max_new_tokens=6), full)
    assert torch.equal(shared[2].generate(any_model, max_new_tokens=1)[:, -1:], shared[2].first)


def test_snapkv_keeps_the_window_and_scores_at_most_its_rows(llama, ids):
    method, seen = SnapKV(20, window=8, kernel=1), []

    def look(layer):
        seen.append((method.scores(layer), method.positions(layer)))

    with after_attention(llama, cache := trimmed_cache(llama), look):
        llama(ids, past_key_values=cache)
    for scores, kept in seen:
        assert scores.shape == (1, 2, 52)
        assert scores.sum(dim=-1).max() <= 8
        assert kept[..., -8:].tolist() == [[list(range(52, 60))] * 2]
        assert all(row.tolist() == sorted(set(row.tolist())) for row in kept[0])


def test_index_sets_per_query_head_take_a_groups_size_more_memory(any_model, ids):
    grouped, apart = share_prefill(any_model, ids, [SnapKV(20, 8), SnapKV(20, 8, per_query_head=True)])
    group = any_model.config.num_attention_heads // any_model.config.num_key_value_heads
    assert stored_bytes(apart.cache) == group * stored_bytes(grouped.cache)
    usual = [layer.self_attn.num_key_value_groups for layer in any_model.model.layers]
    assert usual == [group] * 5
    made = apart.generate(any_model, max_new_tokens=5, return_dict_in_generate=True)
    assert made.past_key_values.layers[0].keys.shape[1:3] == (8, 24)
    assert [layer.self_attn.num_key_value_groups for layer in any_model.model.layers] == usual


def test_heads_of_one_group_choose_apart(llama, ids):
    method, seen = SnapKV(20, window=8, kernel=1, per_query_head=True), []
    with after_attention(llama, cache := trimmed_cache(llama), lambda layer: seen.append(method.positions(layer))):
        llama(ids, past_key_values=cache)
    assert all(kept.shape == (1, 8, 20) for kept in seen)
    sets = {tuple(row) for kept in seen for row in kept[0].tolist()}
    assert len(sets) == 5 * 8


def test_groups_are_as_before_when_decoding_raises(llama, ids):
    def burst(*_: object) -> None:
        raise RuntimeError("burst")

    one = share_prefill(llama, ids, [SnapKV(20, 8, per_query_head=True)])[0]
    handle = llama.model.layers[2].self_attn.o_proj.register_forward_pre_hook(burst)
    with pytest.raises(RuntimeError, match="burst"):
        one.generate(llama, max_new_tokens=4)
    handle.remove()
    assert [layer.self_attn.num_key_value_groups for layer in llama.model.layers] == [4] * 5


@torch.no_grad()
def test_h2o_in_blocks_equals_h2o_at_once(make_model, ids):
    model = make_model("Llama", "eager")
    found = {}
    for block in (1, 7, 16, 512):
        method, totals = H2O(20, 8, block=block), []
        with after_attention(
            model, cache := trimmed_cache(model), lambda layer, m=method, t=totals: t.append(m.totals(layer))
        ):
            model(ids, past_key_values=cache)
        found[block] = torch.stack(totals)
    attention = model(ids, output_attentions=True).attentions
    dense = torch.stack([part.unflatten(1, (2, 4)).mean(dim=2).sum(dim=2) for part in attention])
    for block, totals in found.items():
        assert torch.allclose(totals, dense, atol=1e-4), block
    assert torch.allclose(dense.sum(dim=-1), torch.tensor(60.0), atol=1e-3)


def test_h2o_that_evicts_while_decoding_stays_within_its_budget(llama, ids):
    lengths = []
    for method in (H2O(20, 8, decode_eviction=True), H2O(20, 8)):
        made = method.generate(llama, ids, max_new_tokens=10, do_sample=False, return_dict_in_generate=True)
        lengths.append((made.past_key_values.layers[0].stored, made.past_key_values.layers[0].seen))
    assert lengths == [(20, 69), (29, 69)]


def test_caches_hold_the_bytes_that_the_cost_model_says(llama, ids):
    shape = Shape.of(llama.config)
    for method, length in ((FullAttention(), 60), (SnapKV(20, 8), 20), (H2O(20, 8), 20)):
        prefilled = share_prefill(llama, ids, [method])[0]
        assert stored_bytes(prefilled.cache) == cache_bytes(shape, length, item=4)


def test_one_run_and_two_runs_agree_where_positions_and_layers_make_no_difference(make_model, ids):
    """One layer: nothing flows between tokens before their keys are made. Without rotation positions say nothing."""
    model = make_model("Llama", num_hidden_layers=1)
    model.model.rotary_emb.forward = lambda x, position_ids: (
        torch.ones(1, position_ids.shape[-1], 8),
        torch.zeros(1, position_ids.shape[-1], 8),
    )
    chosen = GemFilter(layer=0, keep=20, keep_last=1)
    kept = chosen.select(model, ids).input_ids
    second = model(kept[:, :-1], use_cache=True).past_key_values
    two_runs = model(kept[:, -1:], past_key_values=second).logits[0, -1]
    one_run = share_prefill(model, ids, [OneRun(chosen)])[0]
    # The last token stands in the cache already; asking again for its output needs its entry taken out.
    for layer in one_run.cache.layers:
        layer.keys, layer.values = layer.keys[:, :, :-1], layer.values[:, :, :-1]
    again = model(ids[:, -1:], past_key_values=one_run.cache).logits[0, -1]
    assert torch.allclose(again, two_runs, atol=1e-5)


def test_one_run_differs_from_two_runs_when_positions_count(llama, ids):
    chosen = GemFilter(layer=2, keep=20, keep_last=1)
    second = llama(chosen.select(llama, ids).input_ids).logits[0, -1]
    assert not torch.allclose(llama(ids).logits[0, -1], second, atol=1e-3)


def test_sliding_layers_are_left_alone(make_model, ids):
    model = make_model("Qwen2", use_sliding_window=True, sliding_window=16, max_window_layers=2)
    prefilled = share_prefill(model, ids, [SnapKV(20, 8)])[0]
    kinds = [type(layer).__name__ for layer in prefilled.cache.layers]
    assert kinds == ["TrimmedLayer"] * 2 + ["DynamicSlidingWindowLayer"] * 3
    assert prefilled.generate(model, max_new_tokens=4).shape == (1, 64)


def test_a_model_of_sliding_layers_has_nothing_to_compress(make_model, ids):
    with pytest.raises(ValueError, match="there is no cache to compress"):
        SnapKV(20, 8).generate(make_model("Mistral", sliding_window=128), ids, max_new_tokens=2)


def test_full_attention_is_the_models_own_generation(make_model, ids):
    """Of any family, with padding, and with beams: nothing is compressed."""
    import transformers

    torch.manual_seed(0)
    config = transformers.GraniteConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    padded, mask = ids.clone(), torch.ones_like(ids)
    padded[0, :5], mask[0, :5] = 0, 0
    for model in (transformers.GraniteForCausalLM(config).eval(), make_model("Mistral", sliding_window=16)):
        options = {"max_new_tokens": 4, "do_sample": False, "num_beams": 2}
        expected = model.generate(padded, attention_mask=mask, **options)
        assert torch.equal(FullAttention().generate(model, padded, attention_mask=mask, **options), expected)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SnapKV(8, 8), "must exceed the window"),
        (lambda: H2O(8, 32), "must exceed the window"),
        (lambda: SnapKV(0), "keep must be at least 1, not 0"),
        (lambda: SnapKV(40, 8, kernel=3.0), "kernel must be an integer"),
        (lambda: H2O(40, 8, block=0), "block must be at least 1"),
        (lambda: SnapKV(40, 8, kernel=4), "kernel must be odd"),
        (lambda: OneRun(GemFilter(layer="auto")), "needs a filter with a layer"),
    ],
)
def test_bad_budgets_are_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_what_a_compressed_cache_cannot_do_is_refused(llama, ids):
    method = SnapKV(20, 8)
    with pytest.raises(ValueError, match="beam search"):
        method.generate(llama, ids, num_beams=2)
    with pytest.raises(ValueError, match="has a cache_implementation of its own"):
        method.generate(llama, ids, cache_implementation="static")
    with pytest.raises(ValueError, match="does not go with assistant_model"):
        method.generate(llama, ids, assistant_model=llama)
    for name, value in {"prefill_chunk_size": 16, "use_cache": False}.items():
        config = copy.deepcopy(llama.generation_config)
        setattr(config, name, value)
        with pytest.raises(ValueError, match="compressed cache"):
            method.generate(llama, ids, generation_config=config)
    with pytest.raises(ValueError, match="not among its 5 layers"):
        OneRun(GemFilter(layer=9, keep=8)).generate(llama, ids, max_new_tokens=2)


def test_a_filter_shares_no_prefill(llama, ids):
    with pytest.raises(ValueError, match=r"gemfilter compresses no cache .* OneRun\(filter\) keeps"):
        share_prefill(llama, ids, [GemFilter(layer=2, keep=20)])


@pytest.mark.parametrize("name", ["snapkv", "one-run"])
def test_inputs_beyond_tokens_are_refused(llama, ids, name):
    with pytest.raises(ValueError, match="do not pass pixel_values"):
        METHODS[name](20).generate(llama, {"input_ids": ids, "pixel_values": torch.ones(1, 3)})


def test_nothing_is_left_behind_when_decoding_raises(llama, ids):
    def burst(*_: object) -> None:
        raise RuntimeError("burst")

    handle = llama.model.layers[3].register_forward_hook(burst)
    with pytest.raises(RuntimeError, match="burst"):
        SnapKV(20, 8).generate(llama, ids, max_new_tokens=2)
    handle.remove()
    for layer in llama.model.layers:
        assert not layer.self_attn._forward_hooks
        assert not layer.self_attn._forward_pre_hooks


def test_a_shared_prefill_can_be_decoded_again(llama, ids):
    one = share_prefill(llama, ids, [H2O(20, 8, decode_eviction=True)])[0]
    first = one.generate(llama, max_new_tokens=6)
    assert torch.equal(one.generate(llama, max_new_tokens=6, do_sample=False), first)
    with pytest.raises(ValueError, match="decoded greedily"):
        one.generate(llama, max_new_tokens=6, do_sample=True)


def test_one_run_drops_from_full_layers_where_the_last_one_slides(make_model, ids):
    model = make_model("Qwen2", use_sliding_window=True, sliding_window=16, max_window_layers=3)
    method = OneRun(GemFilter(layer=1, keep=20))
    alone = method.generate(model, ids, max_new_tokens=4, do_sample=False)
    shared = share_prefill(model, ids, [method])[0]
    assert [layer.stored for layer in shared.cache.layers[:3]] == [20] * 3
    assert torch.equal(shared.generate(model, max_new_tokens=4), alone)
    with pytest.raises(ValueError, match=r"layer 4 .*sliding window"):
        OneRun(GemFilter(layer=4, keep=20)).generate(model, ids, max_new_tokens=4)


def test_changing_rotations_and_odd_options_are_refused(make_model, llama, ids):
    for name, value in (("use_cache", False), ("prefill_chunk_size", 8)):
        with pytest.raises(ValueError, match="compressed cache"):
            SnapKV(20, 8).generate(llama, ids, **{name: value})
    factors = {
        "rope_type": "longrope",
        "short_factor": [1.0] * 2,
        "long_factor": [2.0] * 2,
        "rope_theta": 1e4,
        "original_max_position_embeddings": 256,
        "partial_rotary_factor": 0.5,
    }
    long = make_model("Phi3", rope_parameters=factors)
    with pytest.raises(ValueError, match="long RoPE"):
        share_prefill(long, ids, [SnapKV(20, 8)])


def test_prompts_with_the_padding_token_inside_are_read_whole(llama, ids):
    """Without a mask of its own, generate takes such tokens for padding."""
    ids = ids.clone()
    ids[0, 11:14] = llama.config.pad_token_id
    expected = llama.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False)
    assert torch.equal(SnapKV(60, 8).generate(llama, ids, max_new_tokens=6, do_sample=False), expected)
    assert torch.equal(share_prefill(llama, ids, [FullAttention()])[0].generate(llama, max_new_tokens=6), expected)
    guessed = llama.generate(ids, max_new_tokens=6, do_sample=False, output_logits=True, return_dict_in_generate=True)
    kept = llama.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=6,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
    )
    assert not torch.allclose(guessed.logits[0], kept.logits[0])


@pytest.mark.parametrize("method", [SnapKV(20, window=8), H2O(20, window=8), FullAttention()])
def test_a_baseline_is_no_custom_loop_and_says_so(llama, ids, method):
    """Generation passes over what cannot be called, and would answer with full attention."""
    with pytest.raises(ValueError, match=f"{method.name} is no custom_generate, since it needs its own cache"):
        llama.generate(ids, custom_generate=method, max_new_tokens=2)
