"""Prompts of several lengths as one batch, padded on the left: every row keeps and says what it does alone."""

import pytest
import torch

from assay.methods.gemfilter import H2O, GemFilter, OneRun, SnapKV, share_prefill
from assay.methods.gemfilter.adapter import after_attention, trimmed_cache

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
    initializer_range=0.15,
)
GPT = dict(vocab_size=97, n_embd=64, n_layer=4, n_head=8, n_positions=512, pad_token_id=0, eos_token_id=None)
EXPERTS = {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2}
MIXED = ["full_attention", "sliding_attention"] * 2
CHUNKED = ["full_attention", "chunked_attention"] * 2
FAMILIES = {
    "Llama": SIZES,
    "Mistral": {**SIZES, "sliding_window": None},
    "Qwen2": {**SIZES, "use_sliding_window": True, "sliding_window": 16, "layer_types": MIXED},
    "Qwen3": SIZES,
    "Phi3": SIZES,
    "Cohere": SIZES,
    "Gemma2": {**SIZES, "head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 16, "layer_types": MIXED},
    "GPT2": {**GPT, "initializer_range": 0.15},
    "GPTNeoX": {**SIZES, "rotary_pct": 0.25},
    "Granite": SIZES,
    "Llama4": {**EXPERTS, "head_dim": 8, "attention_chunk_size": 32, "layer_types": CHUNKED},
    "Mixtral": EXPERTS,
    "Olmo2": SIZES,
    "StableLm": SIZES,
}
METHODS = {
    "snapkv": SnapKV(20, window=8),
    "h2o": H2O(20, window=8, block=16),
    "h2o-evicting": H2O(20, window=8, block=7, decode_eviction=True),
    "one-run": OneRun(GemFilter(layer=2, keep=20, rule="window")),
}
#: The longest, some that are cut as well, one as long as the budget, one shorter, and one shorter than the window.
LENGTHS = (60, 47, 33, 20, 13, 5)


def made(family):
    torch.manual_seed(0)
    names = (f"{family}TextConfig", f"{family}Config")
    kind = next(getattr(transformers, name) for name in names if hasattr(transformers, name))
    model = getattr(transformers, f"{family}ForCausalLM", None) or getattr(transformers, f"{family}LMHeadModel")
    # transformers has no experts in float64, and its eager masks are not finite there.
    single = family in ("Gemma2", "Mixtral")
    return model(kind(**FAMILIES[family])).to(torch.float32 if single else torch.float64).eval()


def batch(lengths=LENGTHS, room=0):
    """Prompts of these lengths, and their padded batch, with ``room`` tokens of padding before the longest."""
    source = torch.Generator().manual_seed(5)
    rows = [torch.randint(3, 97, (1, length), generator=source) for length in lengths]
    most = max(lengths) + room
    ids = torch.cat([torch.nn.functional.pad(row, (most - row.shape[1], 0)) for row in rows])
    mask = torch.stack([torch.arange(most) >= most - length for length in lengths]).long()
    return rows, {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", METHODS)
def test_a_padded_row_says_what_it_says_alone(family, name):
    model, (rows, padded) = made(family), batch((60, 33, 13))
    answers = METHODS[name].generate(model, padded, max_new_tokens=10, do_sample=False)
    for number, row in enumerate(rows):
        alone = METHODS[name].generate(model, row, max_new_tokens=10, do_sample=False)
        assert answers[number, 60:].tolist() == alone[0, row.shape[1] :].tolist(), number


def kept_by(method, model, ids, mask=None):
    """The positions that every layer keeps, counted from each prompt's first token: (row, layer, head) to a list."""
    found, cache = {}, trimmed_cache(model)
    padding = None if mask is None else (mask == 0).sum(dim=1).tolist()
    where = {} if mask is None else {"attention_mask": mask, "position_ids": (mask.cumsum(dim=1) - 1).clamp_min(0)}

    def look(layer):
        kept = method.positions(layer)
        if isinstance(method, OneRun):
            kept = method._chosen.pop("index", torch.arange(ids.shape[1]).expand(len(ids), -1))[:, None]
        kept = torch.arange(ids.shape[1]).expand(len(ids), 1, -1) if kept is None else kept
        for row, heads in enumerate(kept):
            blank = 0 if padding is None else padding[row]
            for head, places in enumerate(heads):
                found[row, layer.index, head] = [place - blank for place in places.tolist() if place >= blank]

    with torch.no_grad(), after_attention(model, cache, look, padding):
        model(ids, past_key_values=cache, **where)
    return found


@pytest.mark.parametrize("family", ["Llama", "Phi3", "Gemma2", "GPTNeoX"])
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("room", [0, 9])
def test_a_padded_row_keeps_what_it_keeps_alone(family, name, room):
    model, (rows, padded) = made(family), batch(room=room)
    together = kept_by(METHODS[name], model, padded["input_ids"], padded["attention_mask"])
    for number, row in enumerate(rows):
        alone = kept_by(METHODS[name], model, row)
        for (of, layer, head), places in together.items():
            if of == number:  # where nothing is dropped there is one list for all heads
                assert places == alone.get((0, layer, head), alone[0, layer, 0])


def test_index_sets_per_query_head_go_with_padding():
    method, model, (rows, padded) = SnapKV(20, 8, per_query_head=True), made("Llama"), batch()
    answers = method.generate(model, padded, max_new_tokens=8, do_sample=False)
    for number, row in enumerate(rows):
        alone = method.generate(model, row, max_new_tokens=8, do_sample=False)
        assert answers[number, 60:].tolist() == alone[0, row.shape[1] :].tolist()


@pytest.mark.parametrize("row", ["middle", "largest", "largest-attention", 4])
def test_a_filter_of_one_run_finds_its_row_behind_the_padding(row):
    method, model, (rows, padded) = OneRun(GemFilter(layer=2, keep=20, row=row)), made("Llama"), batch()
    together = kept_by(method, model, padded["input_ids"], padded["attention_mask"])
    for number, one in enumerate(rows):
        assert together[number, 2, 0] == kept_by(method, model, one)[0, 2, 0]


def test_a_shared_prefill_takes_padding():
    model, (_, padded) = made("Llama"), batch(room=3)
    for method, shared in zip(METHODS.values(), share_prefill(model, padded, list(METHODS.values())), strict=True):
        alone = method.generate(model, padded, max_new_tokens=10, do_sample=False)
        assert torch.equal(shared.generate(model, max_new_tokens=10), alone)
        assert torch.equal(shared.generate(model, max_new_tokens=10), alone)


def test_padding_that_cannot_be_is_refused():
    model, (_, padded) = made("Llama"), batch()
    right = {name: part.flip(1) for name, part in padded.items()}
    for method in METHODS.values():
        with pytest.raises(ValueError, match="padding on the left only"):
            method.generate(model, right, max_new_tokens=2)
    with pytest.raises(ValueError, match="padding on the left only"):
        share_prefill(model, right, [SnapKV(20, 8)])
    with pytest.raises(ValueError, match="give keep as a number of tokens"):
        OneRun(GemFilter(layer=2, keep=0.3)).generate(model, padded, max_new_tokens=2)


def test_a_rotation_by_the_longest_prompt_does_not_go_with_padding(make_model):
    rope = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    model = make_model("Llama", max_position_embeddings=16, rope_parameters=rope)
    with pytest.raises(ValueError, match=r"turns all of them by the longest one \(dynamic NTK\)"):
        SnapKV(20, 8).generate(model, batch()[1], max_new_tokens=2)
