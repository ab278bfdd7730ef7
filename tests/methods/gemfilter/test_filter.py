import warnings

import numpy as np
import pytest
import torch
from torch import nn

from assay.methods.gemfilter import GemFilter
from assay.methods.gemfilter.prompts import prompt_of

RULES = ("logits", "softmax", "window")


@pytest.mark.parametrize("rule", RULES)
def test_projecting_by_name_equals_the_attention_interface(any_model, ids, rule):
    chosen = GemFilter(layer=3, keep=16, rule=rule, window=8)
    prompt = prompt_of(any_model, ids)
    usual = any_model.config._attn_implementation
    by_name = chosen.score(any_model, prompt, interface=False)
    by_interface = chosen.score(any_model, prompt, interface=True)
    assert torch.allclose(by_name, by_interface, rtol=1e-4, atol=1e-4 * by_name.abs().max())
    assert any_model.config._attn_implementation == usual


@pytest.mark.parametrize("family", ["Llama", "Mistral", "Qwen2", "Qwen3", "Phi3"])
def test_softmax_scores_are_the_models_own_attention(make_model, ids, family):
    model = make_model(family, "eager")
    attention = model(ids, output_attentions=True).attentions
    for layer in range(5):
        scores = GemFilter(layer=layer, rule="softmax", pooling=None).score(model, prompt_of(model, ids))
        assert torch.allclose(scores[0], attention[layer][0, :, -1].sum(dim=0), atol=1e-5)
        window = GemFilter(layer=layer, rule="window", window=7, pooling=None).score(model, prompt_of(model, ids))
        assert torch.allclose(window[0], attention[layer][0, :, -7:].mean(dim=1).sum(dim=0), atol=1e-5)


def test_an_unknown_architecture_goes_through_the_interface(ids):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GraniteConfig(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=2,
        pad_token_id=0,
        attn_implementation="eager",
    )
    model = transformers.GraniteForCausalLM(config).eval()
    attention = model(ids, output_attentions=True).attentions
    scores = GemFilter(layer=2, rule="softmax", pooling=None).score(model, prompt_of(model, ids))
    assert torch.allclose(scores[0], attention[2][0, :, -1].sum(dim=0), atol=1e-5)


def test_keeping_everything_is_generation(any_model, ids):
    expected = any_model.generate(ids, max_new_tokens=6, do_sample=False)
    for keep in (60, 1024):
        assert torch.equal(GemFilter(2, keep).generate(any_model, ids, max_new_tokens=6, do_sample=False), expected)


def test_generation_answers_from_the_kept_tokens(llama, ids):
    chosen = GemFilter(layer=2, keep=20)
    selection = chosen.select(llama, ids)
    made = chosen.generate(llama, ids, max_new_tokens=6, do_sample=False)
    expected = llama.generate(ids[:, selection.indices[0]], max_new_tokens=6, do_sample=False)
    assert torch.equal(made[:, :60], ids)
    assert torch.equal(made[:, 60:], expected[:, 20:])
    detailed = chosen.generate(llama, ids, max_new_tokens=6, do_sample=False, return_dict_in_generate=True)
    assert torch.equal(detailed.sequences, made)
    several = chosen.generate(llama, ids, max_new_tokens=2, num_beams=2, num_return_sequences=2)
    assert several.shape == (2, 62)


def test_a_share_of_the_prompt_is_of_each_prompts_own_length(llama, ids):
    batch, mask = torch.cat([ids, ids]), torch.ones(2, 60, dtype=torch.long)
    batch[1, :20], mask[1, :20] = 0, 0
    chosen = GemFilter(layer=2, keep=0.25)
    selection = chosen.select(llama, batch, attention_mask=mask)
    assert [len(selection.kept(row)) for row in (0, 1)] == [15, 10]
    assert selection.kept(0) == GemFilter(layer=2, keep=15).select(llama, ids).kept()
    assert chosen.budget(60) == 15
    assert chosen.generate(llama, ids, max_new_tokens=2, do_sample=False).shape == (1, 62)
    with pytest.raises(ValueError, match="a share of the prompt needs its length"):
        GemFilter(layer="auto", keep=0.25).resolved(llama, object())


def test_only_the_layers_below_run(llama, ids):
    calls = []
    for i, layer in enumerate(llama.model.layers):
        layer.self_attn.register_forward_hook(lambda *_, i=i: calls.append(("attention", i)))
        layer.mlp.register_forward_hook(lambda *_, i=i: calls.append(("mlp", i)))
    llama.lm_head.register_forward_hook(lambda *_: calls.append(("head", 0)))
    GemFilter(layer=3, keep=16).select(llama, ids)
    assert calls == [(part, i) for i in range(3) for part in ("attention", "mlp")]


def test_scores_do_not_depend_on_what_lies_above(llama, ids):
    chosen = GemFilter(layer=2, keep=16)
    before = chosen.score(llama, prompt_of(llama, ids))
    with torch.no_grad():
        for module in (*llama.model.layers[3:], llama.lm_head, llama.model.layers[2].mlp):
            for parameter in module.parameters():
                parameter.normal_()
    assert torch.equal(chosen.score(llama, prompt_of(llama, ids)), before)


@pytest.mark.parametrize("interface", [False, True])
def test_nothing_is_left_behind_when_a_forward_raises(llama, ids, interface, monkeypatch):
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    registered = set(ALL_ATTENTION_FUNCTIONS), set(ALL_MASK_ATTENTION_FUNCTIONS)

    def burst(*_: object, **__: object) -> None:
        raise RuntimeError("burst")

    handle = llama.model.layers[1].register_forward_pre_hook(burst)
    with pytest.raises(RuntimeError, match="burst"):
        GemFilter(layer=3, keep=8, mlp_chunk=4).score(llama, prompt_of(llama, ids), interface=interface)
    handle.remove()
    assert llama.config._attn_implementation == "sdpa"
    assert (set(ALL_ATTENTION_FUNCTIONS), set(ALL_MASK_ATTENTION_FUNCTIONS)) == registered
    for layer in llama.model.layers:
        assert not layer.self_attn._forward_pre_hooks
        assert "forward" not in layer.mlp.__dict__


def test_chunked_mlps_change_nothing_but_memory(any_model, ids):
    prompt = prompt_of(any_model, ids)
    whole = GemFilter(layer=4, mlp_chunk=None).score(any_model, prompt)
    for size in (1, 7, 60):
        chunked = GemFilter(layer=4, mlp_chunk=size).score(any_model, prompt)
        assert torch.allclose(chunked, whole, rtol=1e-4, atol=1e-4 * whole.abs().max())


def test_left_padding_changes_no_selection(any_model, ids):
    chosen = GemFilter(layer=3, keep=16, rule="window", window=8)
    short = ids[:, 7:]
    batch = torch.cat([ids, torch.cat([torch.zeros(1, 7, dtype=torch.long), short], dim=1)])
    mask = torch.ones_like(batch)
    mask[1, :7] = 0
    selection = chosen.select(any_model, {"input_ids": batch, "attention_mask": mask})
    assert selection.kept(0) == chosen.select(any_model, ids).kept()
    assert [i - 7 for i in selection.kept(1)] == chosen.select(any_model, short).kept()
    assert selection.scores[1, :7].eq(float("-inf")).all()


def test_right_padding_takes_the_last_real_row(llama, ids):
    chosen = GemFilter(layer=3, keep=16)
    batch = torch.cat([ids, torch.cat([ids[:, :50], torch.zeros(1, 10, dtype=torch.long)], dim=1)])
    mask = torch.ones_like(batch)
    mask[1, 50:] = 0
    assert chosen.select(llama, batch, attention_mask=mask).kept(1) == chosen.select(llama, ids[:, :50]).kept()


def test_short_rows_of_a_batch_are_padded_on_the_left(llama, ids):
    batch = torch.cat([ids, torch.cat([torch.zeros(1, 50, dtype=torch.long), ids[:, 50:]], dim=1)])
    mask = torch.ones_like(batch)
    mask[1, :50] = 0
    chosen = GemFilter(layer=2, keep=16)
    selection = chosen.select(llama, batch, attention_mask=mask)
    assert selection.kept(1) == list(range(50, 60))
    assert selection.attention_mask[1].tolist() == [0] * 6 + [1] * 10
    made = chosen.generate(llama, batch, attention_mask=mask, max_new_tokens=4, do_sample=False)
    alone = llama.generate(ids[:, 50:], max_new_tokens=4, do_sample=False)
    assert torch.equal(made[1, 60:], alone[0, 10:])


def test_equal_prompts_of_a_batch_get_equal_selections(llama, ids):
    selection = GemFilter(layer=3, keep=16).select(llama, ids.repeat(3, 1))
    assert torch.equal(selection.indices, selection.indices[:1].expand(3, -1))


def test_positive_scaling_of_queries_changes_nothing(llama, ids):
    chosen = GemFilter(layer=3, keep=16)
    before = chosen.select(llama, ids).indices
    with torch.no_grad():
        llama.model.layers[3].self_attn.q_proj.weight.mul_(3.0)
    assert torch.equal(chosen.select(llama, ids).indices, before)


def test_changing_the_last_token_changes_the_query_row_alone(llama, ids):
    from assay.methods.gemfilter.adapter import read_layers

    found = []
    changed = ids.clone()
    changed[0, -1] = (changed[0, -1] + 1) % 90 + 3
    for tokens in (ids, changed):
        read_layers(llama, tokens, None, [3], None, lambda _, projected: found.append(projected))
    assert torch.equal(found[0].keys[:, :, :-1], found[1].keys[:, :, :-1])
    assert not torch.allclose(found[0].queries[:, :, -1], found[1].queries[:, :, -1])


def test_other_rows_are_the_rows_they_say(make_model, ids):
    from assay.methods.gemfilter.adapter import read_layers

    model = make_model("Llama", "eager")
    attention = model(ids, output_attentions=True).attentions[3][0]
    prompt = prompt_of(model, ids)
    for row, place in (("middle", 30), (11, 11), (-2, 58)):
        scores = GemFilter(layer=3, rule="softmax", pooling=None, row=row).score(model, prompt)[0]
        assert torch.allclose(scores, attention[:, place].sum(dim=0), atol=1e-5)
    largest = GemFilter(layer=3, rule="softmax", pooling=None, row="largest").score(model, prompt)[0]
    places = [i for i in range(60) if torch.allclose(largest, attention[:, i].sum(dim=0), atol=1e-5)]
    found = []
    read_layers(model, ids, None, [3], None, lambda _, projected: found.append(projected.queries[0]))
    assert places == [int(found[0].square().sum(dim=(0, 2)).argmax())]


@pytest.mark.parametrize("rule", ["logits", "softmax"])
def test_the_largest_row_of_attention_is_found_in_blocks(make_model, ids, rule):
    from assay.methods.gemfilter.adapter import read_layers
    from assay.methods.gemfilter.scoring import largest_row

    model, found = make_model("Llama", "eager"), []
    read_layers(model, ids, None, [3], None, lambda _, projected: found.append(projected))
    queries, keys, scaling = found[0].queries[0], found[0].keys[0], found[0].scaling
    logits = torch.einsum("hid,hjd->hij", queries, keys.repeat_interleave(4, dim=0)) * scaling
    causal = torch.ones(60, 60).tril().bool()
    attention = model(ids, output_attentions=True).attentions[3][0]
    dense = logits.masked_fill(~causal, 0) if rule == "logits" else attention
    place = int(dense.square().sum(dim=(0, 2)).argmax())
    assert (place == 0) is (rule == "softmax")  # the first token attends to itself alone: no row has a larger norm
    assert {largest_row(rule, queries, keys, scaling, block) for block in (1, 7, 64)} == {place}
    prompt = prompt_of(model, ids)
    by_name = GemFilter(layer=3, rule=rule, row="largest-attention").score(model, prompt)
    assert torch.allclose(by_name, GemFilter(layer=3, rule=rule, row=place).score(model, prompt), atol=1e-4)


def test_a_selection_reads_as_text(llama, ids):
    class Words:
        def decode(self, tokens):
            return " ".join(f"w{token}" for token in tokens)

        def convert_ids_to_tokens(self, tokens):
            return [f"w{token}" for token in tokens]

    selection = GemFilter(layer=2, keep=6).select(llama, ids)
    words = [f"w{token}" for token in ids[0, selection.indices[0]].tolist()]
    assert selection.tokens(Words()) == words
    assert selection.text(Words()).replace(" … ", " ").split() == words
    gaps = sum(b != a + 1 for a, b in zip(selection.kept(), selection.kept()[1:], strict=False))
    assert selection.text(Words()).count("…") == gaps
    assert selection.recall(selection.kept()[:3]) == 1.0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"layer": -1}, "layer must be at least 0"),
        ({"layer": 1.5}, "layer must be an integer"),
        ({"keep": 0}, "keep must be at least 1"),
        ({"keep": 10.0}, "keep must be an integer, or a share of the prompt between 0 and 1"),
        ({"keep": 0.0}, "keep must be an integer, or a share"),
        ({"keep": float("nan")}, "keep must be a number"),
        ({"keep": True}, "keep must be an integer"),
        ({"kernel": 4}, "kernel must be odd"),
        ({"rule": "best"}, "rule must be one of"),
        ({"pooling": "sum"}, "pooling must be"),
        ({"row": "first"}, "row must be"),
        ({"rule": "window", "row": "middle"}, "last rows"),
        ({"keep": 4, "keep_first": 3, "keep_last": 2}, "more than keep = 4"),
        ({"mlp_chunk": 0}, "mlp_chunk must be at least 1"),
    ],
)
def test_bad_options_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        GemFilter(**{"layer": 1, **options})


def test_bad_models_and_prompts_are_refused(llama, ids, make_model):
    chosen = GemFilter(layer=2, keep=8)
    with pytest.raises(ValueError, match=r"between 0 and 4 .*not 5"):
        GemFilter(layer=5, keep=8).select(llama, ids)
    with pytest.raises(ValueError, match="and not empty"):
        chosen.select(llama, torch.zeros(1, 0, dtype=torch.long))
    with pytest.raises(ValueError, match="needs input_ids"):
        chosen.select(llama, inputs_embeds=torch.zeros(1, 4, 64))
    with pytest.raises(ValueError, match="must be integers"):
        chosen.select(llama, torch.zeros(1, 4))
    with pytest.raises(ValueError, match="no real token"):
        chosen.select(llama, ids, attention_mask=torch.zeros_like(ids))
    with pytest.raises(ValueError, match="attention_mask has shape"):
        chosen.select(llama, ids, attention_mask=torch.ones(1, 3))
    with pytest.raises(ValueError, match="ends in padding"):
        chosen.select(llama, torch.cat([ids, torch.zeros(1, 2, dtype=torch.long)], dim=1))
    with pytest.raises(ValueError, match="do not pass past_key_values"):
        chosen.generate(llama, ids, past_key_values=object())
    with pytest.raises(ValueError, match="Hugging Face"):
        chosen.select(nn.Linear(2, 2), ids)
    with pytest.raises(ValueError, match=r"call model\.eval\(\)"):
        chosen.select(make_model("Llama", attention_dropout=0.1).train(), ids)
    with pytest.raises(ValueError, match="outside a prompt of 60 tokens"):
        GemFilter(layer=2, keep=8, row=60).select(llama, ids)
    llama.hf_device_map = {"model": 0, "lm_head": 1}
    with pytest.raises(ValueError, match="several devices"):
        chosen.select(llama, ids)


def test_encoder_decoders_and_models_without_layers_are_refused(ids):
    transformers = pytest.importorskip("transformers")
    sizes = dict(vocab_size=97, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2)
    with pytest.raises(ValueError, match="decoder-only"):
        GemFilter(layer=0, keep=8).select(transformers.T5ForConditionalGeneration(transformers.T5Config(**sizes)), ids)
    config = transformers.MambaConfig(vocab_size=97, hidden_size=16, num_hidden_layers=2)
    with pytest.raises(ValueError, match="MambaForCausalLM"):
        GemFilter(layer=0, keep=8).select(transformers.MambaForCausalLM(config).eval(), ids)


def test_a_sliding_filter_layer_is_warned_about(make_model, ids):
    sliding = make_model("Mistral", sliding_window=16)
    with pytest.warns(UserWarning, match="last 16 tokens"):
        GemFilter(layer=2, keep=8).select(sliding, ids)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GemFilter(layer=2, keep=8).select(make_model("Mistral", sliding_window=128), ids)


def test_auto_needs_a_tokenizer_only_when_it_filters(llama, ids):
    with pytest.raises(ValueError, match="needs the tokenizer"):
        GemFilter(layer="auto", keep=8).select(llama, ids)
    assert GemFilter(layer="auto", keep=60).select(llama, ids).kept() == list(range(60))


def test_lengths_that_count_the_prompt_count_the_whole_one(llama, ids):
    transformers = pytest.importorskip("transformers")
    chosen = GemFilter(layer=2, keep=20)
    assert chosen.generate(llama, ids, max_length=66, do_sample=False).shape == (1, 66)
    config = transformers.GenerationConfig(max_length=66, do_sample=False)
    assert chosen.generate(llama, ids, generation_config=config).shape == (1, 66)
    assert config.max_length == 66


def test_adapters_on_a_fused_projection_count(make_model, ids):
    model = make_model("Phi3")
    chosen = GemFilter(layer=2)
    before = chosen.score(model, prompt_of(model, ids))

    class Shifted(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.weight, self.bias = inner, inner.weight, None

        def forward(self, hidden):
            return self.inner(hidden) + 0.5

    attention = model.model.layers[2].self_attn
    attention.qkv_proj = Shifted(attention.qkv_proj)
    after = chosen.score(model, prompt_of(model, ids))
    assert not torch.allclose(before, after)
    assert torch.allclose(after, chosen.score(model, prompt_of(model, ids), interface=True), rtol=1e-3, atol=1e-3)


def test_padding_without_a_mask_is_refused_on_both_sides(llama, ids):
    for place in (0, -1):
        padded = ids.clone()
        padded[0, place] = 0
        with pytest.raises(ValueError, match="begins or ends in padding tokens"):
            GemFilter(layer=2, keep=8).select(llama, padded)


def test_a_length_in_the_models_own_configuration_counts_the_whole_prompt(llama, ids):
    llama.generation_config.max_length = 66
    assert llama.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False).shape[1] == 66
    assert GemFilter(layer=2, keep=20).generate(llama, ids, do_sample=False).shape[1] == 66
    made = GemFilter(layer=2, keep=20).generate(llama, ids, do_sample=False, max_new_tokens=3)
    assert made.shape[1] == 63


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"row": 2.7}, "row must be"),
        ({"row": None}, "row must be"),
        ({"mlp_chunk": "8"}, "mlp_chunk must be an integer"),
        ({"mlp_chunk": 0}, "mlp_chunk must be at least 1"),
    ],
)
def test_options_of_the_wrong_kind_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        GemFilter(layer=2, **options)


def test_numpys_integers_are_integers(llama, ids):
    chosen = GemFilter(layer=np.int64(2), keep=np.int32(8))
    assert (type(chosen.layer), type(chosen.keep)) == (int, int)
    assert chosen == GemFilter(layer=2, keep=8)


@pytest.mark.parametrize("rule", ["logits", "softmax", "window"])
def test_filtering_works_under_autocast(llama, ids, rule):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        kept = GemFilter(layer=2, keep=16, rule=rule).select(llama, ids).kept()
    assert len(set(kept) & set(GemFilter(layer=2, keep=16, rule=rule).select(llama, ids).kept())) >= 12


def test_a_model_in_two_places_is_refused(llama, ids):
    llama.lm_head.to("meta")
    with pytest.raises(ValueError, match="spread over several devices"):
        GemFilter(layer=2, keep=8).select(llama, ids)
