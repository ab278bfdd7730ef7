"""Decoders of other families: where their attention is, what is read there, and what is refused with its reason."""

from dataclasses import replace

import pytest
import torch

from assay.methods.gemfilter import H2O, FilterIndex, GemFilter, OneRun, SnapKV, layer_scan, share_prefill
from assay.methods.gemfilter.adapter import attention_at, attentions_of, read_layers, sliding_window
from assay.methods.gemfilter.prompts import prompt_of
from assay.methods.gemfilter.remembered import fingerprint
from assay.methods.gemfilter.scoring import causal_logits

transformers = pytest.importorskip("transformers")
SIZES = dict(
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
)
GPT = dict(vocab_size=97, n_embd=64, n_layer=4, n_head=8, n_positions=512, pad_token_id=0, eos_token_id=None)
OPT = dict(
    vocab_size=97, hidden_size=64, word_embed_proj_dim=64, ffn_dim=96, num_hidden_layers=4, num_attention_heads=8
)
OPT |= dict(max_position_embeddings=512, pad_token_id=0, bos_token_id=1, eos_token_id=None)
HYBRID = ["mamba", "attention", "mamba", "attention"]
MAMBA = dict(mamba_n_heads=8, mamba_d_head=16, mamba_d_state=8, mamba_expand=2, mamba_n_groups=1)
WIDE = {**SIZES, "head_dim": 16}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
SHARED = {**EXPERTS, "shared_expert_intermediate_size": 32}
ROUTED = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_group": 1, "topk_group": 1}
LATENT = dict(q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8)
DEEPSEEK = {**SIZES, **LATENT, **ROUTED, "num_key_value_heads": 8, "n_shared_experts": 1, "first_k_dense_replace": 1}
NEMOTRON = dict(mamba_num_heads=8, mamba_head_dim=16, ssm_state_size=8, n_groups=1, chunk_size=16)
LINEAR = dict(linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=16, linear_value_head_dim=16)
GPT_OSS = {**WIDE, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 64}
#: Class, options, and the layers that attend.
READ = {
    "attn": ("GPT2", GPT, range(4)),
    "attention": ("GPTNeoX", {**SIZES, "rotary_pct": 0.25}, range(4)),
    "hybrid": ("GraniteMoeHybrid", {**SIZES, **MAMBA, "layer_types": HYBRID, "num_local_experts": 4}, [1, 3]),
    "linear": ("MiniMax", {**SIZES, "num_local_experts": 4, "head_dim": 8}, [0, 2]),
    "chunked": ("Llama4", {**SIZES, "head_dim": 8, "num_local_experts": 4, "attention_chunk_size": 32}, range(4)),
    "mask by name": ("Doge", SIZES, range(4)),
    "Cohere": ("Cohere", SIZES, range(4)),
    "DeepseekV2": ("DeepseekV2", DEEPSEEK, range(4)),
    "DeepseekV3": ("DeepseekV3", DEEPSEEK, range(4)),
    "Gemma": ("Gemma", WIDE, range(4)),
    "Gemma2": ("Gemma2", {**WIDE, "sliding_window": 64}, range(4)),
    "Gemma3": ("Gemma3", {**WIDE, "sliding_window": 64}, range(4)),
    "Glm": ("Glm", WIDE, range(4)),
    "GptOss": ("GptOss", GPT_OSS, range(4)),
    "Granite": ("Granite", SIZES, range(4)),
    "Jamba": (
        "Jamba",
        {**SIZES, "attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 4, "mamba_d_state": 8},
        [1, 3],
    ),
    "Mixtral": ("Mixtral", {**SIZES, "num_local_experts": 4}, range(4)),
    "a head called decoder": ("ModernBertDecoder", {**SIZES, "local_attention": 128}, range(4)),
    "NemotronH": (
        "NemotronH",
        {
            **WIDE,
            **NEMOTRON,
            **ROUTED,
            "layers_block_type": ["mamba", "attention", "moe", "attention"],
            "moe_shared_expert_intermediate_size": 32,
        },
        [1, 3],
    ),
    "Olmo": ("Olmo", SIZES, range(4)),
    "Olmo2": ("Olmo2", SIZES, range(4)),
    "OPT": ("OPT", OPT, range(4)),
    "Phi": ("Phi", SIZES, range(4)),
    "Qwen2Moe": ("Qwen2Moe", {**SIZES, **SHARED}, range(4)),
    "Qwen3Moe": ("Qwen3Moe", {**WIDE, **EXPERTS}, range(4)),
    "Qwen3Next": ("Qwen3Next", {**WIDE, **SHARED, **LINEAR}, [3]),
}
CUT = {"chunk": 20, "overlap": 6, "tail": 10, "window": 8}
REFUSED = {
    "Bloom": dict(vocab_size=97, hidden_size=64, n_layer=2, n_head=8),
    "XGLM": dict(vocab_size=97, d_model=64, num_layers=2, attention_heads=8, ffn_dim=96),
}


def made(family, options, attention=None):
    torch.manual_seed(0)
    names = (f"{family}TextConfig", f"{family}Config")
    config = next(getattr(transformers, name) for name in names if hasattr(transformers, name))(**options)
    if attention:
        config._attn_implementation = attention
    model = getattr(transformers, f"{family}ForCausalLM", None) or getattr(transformers, f"{family}LMHeadModel")
    return model(config).eval()


@pytest.mark.parametrize("kind", READ)
def test_attention_is_found_layer_by_layer(ids, kind):
    family, options, layers = READ[kind]
    model = made(family, options)
    assert list(attention_at(model)) == list(layers)
    for layer in list(layers)[-1:]:
        for chosen in (GemFilter(layer, 16), GemFilter(layer, 16, chunk=20, tail=10)):
            answer = chosen.generate(model, ids, max_new_tokens=2, do_sample=False)
            assert answer.shape == (1, 62)
            assert len(chosen.select(model, ids).kept()) == 16
    expected = model.generate(ids, max_new_tokens=3, do_sample=False)
    assert torch.equal(GemFilter(layers[0], 60).generate(model, ids, max_new_tokens=3, do_sample=False), expected)


@pytest.mark.parametrize("kind", READ)
def test_chunks_are_exact_in_every_family(ids, kind):
    """One chunk that holds the prompt selects as the whole prompt does, and chunks of a batch score as one by one."""
    family, options, layers = READ[kind]
    model, layer = made(family, options), list(layers)[-1]
    prompt = prompt_of(model, ids)
    for rule in ("logits", "window"):
        whole, one = (GemFilter(layer, 16, rule, window=8, **cut) for cut in ({}, {"chunk": 50, "tail": 10}))
        expected, found = whole.select(model, ids), one.select(model, ids)
        assert torch.equal(found.scores, expected.scores)
        assert found.kept() == expected.kept()
        together, alone = (
            GemFilter(layer, 16, rule, **CUT, chunk_memory=memory).score(model, prompt) for memory in (1.0, 1e-9)
        )
        assert torch.allclose(together, alone, rtol=1e-3, atol=1e-4 * float(alone.abs().max()))


@pytest.mark.parametrize("kind", ["attn", "attention", "a head called decoder"])
def test_scores_of_other_families_are_their_own_attention(ids, kind):
    family, options, _ = READ[kind]
    model = made(family, options, "eager")
    attention = model(ids, output_attentions=True).attentions
    for layer in (1, 3):
        scores = GemFilter(layer, rule="window", window=7, pooling=None).score(model, prompt_of(model, ids))
        assert torch.allclose(scores[0], attention[layer][0, :, -7:].mean(dim=1).sum(dim=0), atol=1e-5)


def test_scores_are_under_the_models_soft_cap(ids):
    cap = {"attn_logit_softcapping": 0.05, "head_dim": 16, "query_pre_attn_scalar": 16, "initializer_range": 0.3}
    model = made("Gemma2", {**SIZES, **cap}, "eager")
    attention = model(ids, output_attentions=True).attentions[1]
    prompt = prompt_of(model, ids)
    scores = GemFilter(1, rule="softmax", pooling=None).score(model, prompt)
    assert torch.allclose(scores[0], attention[0, :, -1].sum(dim=0), atol=1e-5)
    chunked = GemFilter(1, rule="softmax", pooling=None, chunk=25, tail=10).score(model, prompt)[0]
    assert chunked.max() < 2 * chunked.min()  # a cap this low makes attention almost flat in chunks, too


@pytest.mark.parametrize("rule", ["softmax", "window"])
def test_learned_sinks_take_attention_off_the_tokens(ids, rule):
    """Of gpt-oss: the scores are its own attention weights, whole and in chunks, in the filter and in SnapKV."""
    model = made("GptOss", GPT_OSS, "eager")
    for layer in model.model.layers:
        torch.nn.init.uniform_(layer.self_attn.sinks, 1.0, 3.0)
    rows, prompt = 7 if rule == "window" else 1, prompt_of(model, ids)
    attention = model(ids, output_attentions=True).attentions[1][0, :, -rows:]
    assert attention.sum(dim=-1).max() < 0.99  # the sinks have the rest
    chosen = GemFilter(1, rule=rule, window=7, pooling=None)
    scores = chosen.score(model, prompt)
    assert torch.allclose(scores[0], attention.mean(dim=1).sum(dim=0), atol=1e-5)
    cut = replace(chosen, chunk=20, overlap=6, tail=10, sink=0)
    layout, logits, sinks = cut.layout(model, 60), [], model.model.layers[1].self_attn.sinks
    for number in range(layout.chunks):
        found = []
        read_layers(model, ids[:, layout.positions(number)], None, [1], None, lambda _, one, to=found: to.append(one))
        one = found[0].of(0)
        logits.append(causal_logits(one.queries[:, -rows:], one.keys, one.scaling))
    together = torch.cat([*logits, sinks[:, None, None].expand(-1, rows, 1)], dim=-1).softmax(dim=-1)
    values = together[..., :-1].mean(dim=1).sum(dim=0)
    places = torch.cat([layout.positions(number) for number in range(layout.chunks)])
    expected = torch.stack([values[places == place].max() for place in range(60)])
    assert torch.allclose(cut.score(model, prompt)[0], expected, atol=1e-5)


def test_snapkv_sees_learned_sinks(ids):
    model = made("GptOss", {**GPT_OSS, "layer_types": ["full_attention"] * 4}, "eager")
    for layer in model.model.layers:
        torch.nn.init.uniform_(layer.self_attn.sinks, 1.0, 3.0)
    attention = model(ids, output_attentions=True).attentions[0][0, :, -8:, :52].sum(dim=1).reshape(2, 4, 52).mean(1)
    seen = []

    class Noting(SnapKV):
        def scores(self, layer):
            seen.append(super().scores(layer))
            return seen[-1]

    Noting(20, window=8, kernel=1).generate(model, ids, max_new_tokens=1, do_sample=False)
    assert torch.allclose(seen[0][0], attention, atol=1e-5)


def test_layers_without_attention_are_named_and_keep_nothing(ids):
    from assay.evaluation import Needle, NeedlePrompt

    model = made(*READ["hybrid"][:2])
    with pytest.raises(ValueError, match="layer 2 of this model has no attention that can be read: choose one of 1, 3"):
        GemFilter(2, 16).select(model, ids)
    with pytest.raises(ValueError, match="the layers 0, 2 of GraniteMoeHybridForCausalLM have no attention"):
        attentions_of(model)
    needle = NeedlePrompt(ids[0].tolist(), Needle("", "", ""), [5, 6, 7], [7], 0.1, False)
    scan = layer_scan(model, [needle], keep=50)
    assert scan.recall[:, [0, 2]].eq(0).all()
    assert scan.recall[:, [1, 3]].sum() > 0


def test_chunked_attention_is_a_window():
    family, options, _ = READ["chunked"]
    windows = [sliding_window(made(family, options), layer) for layer in range(4)]
    assert windows == [32, 32, 32, None]


@pytest.mark.parametrize("family", REFUSED)
def test_attention_in_code_of_its_own_is_refused_with_its_name(ids, family):
    model = made(family, REFUSED[family])
    with pytest.raises(ValueError, match=f"{family}Attention does not go through transformers' attention interface"):
        GemFilter(1, 16).select(model, ids)


def test_attention_in_an_unusual_place_is_refused_with_its_true_reason(llama, ids):
    """Two in a layer, as LongCat-Flash has them, or one inside another module: neither is code of its own."""
    for layer in llama.model.layers:
        layer.self_attn = torch.nn.ModuleList([layer.self_attn])
    with pytest.raises(ValueError, match="its layers keep LlamaAttention in a place that is not known, or several"):
        GemFilter(1, 16).select(llama, ids)


def test_an_indexer_is_refused(llama, ids):
    llama.model.layers[0].self_attn.indexer = torch.nn.Identity()
    with pytest.raises(ValueError, match=r"what an indexer picks \(LlamaAttention\)"):
        GemFilter(1, 16).select(llama, ids)


COMPRESSED = {
    **WIDE,
    **ROUTED,
    "num_hidden_layers": 2,
    "num_key_value_heads": 1,
    "q_lora_rank": 16,
    "n_shared_experts": 1,
    "layer_types": ["heavily_compressed_attention", "compressed_sparse_attention"],
}


@pytest.mark.parametrize("layer", [0, 1])
def test_keys_of_several_tokens_are_refused_by_every_method(ids, layer):
    """DeepSeek-V4's layers attend to compressed keys behind those of the tokens."""
    if not hasattr(transformers, "DeepseekV4ForCausalLM"):
        pytest.skip("this release of transformers has no DeepSeek-V4")
    model = made("DeepseekV4", COMPRESSED)
    gem = GemFilter(layer, 16)
    for read in (
        lambda: gem.select(model, ids),
        lambda: replace(gem, chunk=20, tail=10).select(model, ids),
        lambda: SnapKV(20, window=8).generate(model, ids, max_new_tokens=2),
        lambda: H2O(20, window=8).generate(model, ids, max_new_tokens=2),
        lambda: OneRun(gem).generate(model, ids, max_new_tokens=2),
        lambda: share_prefill(model, ids, [SnapKV(20, window=8)]),
        lambda: FilterIndex(model, gem),
    ):
        with pytest.raises(ValueError, match=r"number of keys than it reads tokens \(DeepseekV4Attention\), so that"):
            read()


@pytest.mark.parametrize("chunk", [None, 20])
def test_a_layer_with_more_keys_than_tokens_is_refused_when_it_is_read(ids, chunk):
    """Also where nothing in its configuration says so."""
    model = made("OPT", OPT)
    project = model.model.decoder.layers[1].self_attn.k_proj
    project.register_forward_hook(lambda *args: torch.cat([args[2], args[2][:, :3]], dim=1))
    with pytest.raises(ValueError, match=r"another number of keys than it reads tokens \(OPTAttention\)"):
        GemFilter(1, 16, chunk=chunk, tail=10).select(model, ids)


def test_a_model_without_weights_in_memory_is_refused(llama, ids):
    with pytest.raises(ValueError, match="has no weights in memory"):
        GemFilter(1, 16).select(llama.to("meta"), ids)


def test_pass_2_turns_by_its_own_length(make_model, ids):
    """Dynamic NTK: the rotation grows with the longest prompt, and the kept tokens are fewer."""
    rope = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    model, fresh = (make_model("Llama", max_position_embeddings=16, rope_parameters=dict(rope)) for _ in range(2))
    gem = GemFilter(layer=2, keep=24, chunk=30, tail=16)
    before = model.model.rotary_emb.inv_freq.clone()
    with pytest.warns(UserWarning, match="46 tokens at once exceed the 16"):
        kept = gem.select(model, ids)
    assert torch.equal(model.model.rotary_emb.inv_freq, before)
    with pytest.warns(UserWarning, match="exceed"):
        answer = gem.generate(model, ids, max_new_tokens=4, do_sample=False)
    expected = fresh.generate(kept.input_ids, max_new_tokens=4, do_sample=False)
    assert torch.equal(answer[:, 60:], expected[:, 24:])


def test_packed_weights_have_a_fingerprint(llama, monkeypatch):
    class Packed:
        def __init__(self, inner, unpacks):
            self.inner, self.unpacks, self.shape = inner, unpacks, inner.shape

        def detach(self):
            raise NotImplementedError("aten.detach is not implemented for packed weights")

        def dequantize(self):
            if not self.unpacks:
                raise RuntimeError("no")
            return self.inner

    usual = fingerprint(llama)
    parameters = list(llama.named_parameters())
    for unpacks, same in ((True, True), (False, False)):
        packed = [(name, Packed(value, unpacks)) for name, value in parameters]
        monkeypatch.setattr(llama, "named_parameters", lambda packed=packed: iter(packed))
        assert (fingerprint(llama) == usual) is same


def test_a_cache_for_every_query_head_says_that_it_takes_no_second_turn(llama, ids):
    method = SnapKV(20, window=8, per_query_head=True)
    made_by = method.generate(llama, ids, max_new_tokens=3, do_sample=False, return_dict_in_generate=True)
    more = torch.cat([made_by.sequences, ids[:, :4]], dim=1)
    with pytest.raises(ValueError, match="goes on only within the method that made it"):
        llama.generate(more, past_key_values=made_by.past_key_values, max_new_tokens=2)
