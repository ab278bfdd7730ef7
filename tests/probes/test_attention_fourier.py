from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from assay.probes import attention_fourier, score_spectrum, token_scores

DIM, HEADS, VOCABULARY = 16, 4, 30
TOKENS = [3, 9, 4, 11, 25, 6, 17]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def wave(p: int, key: int, query: int) -> Tensor:
    a = 2 * math.pi * torch.arange(p, dtype=torch.float64) / p
    return torch.cos(key * a[:, None] + query * a + 0.4)


@pytest.mark.parametrize("p", [7, 12])
def test_one_wave_is_one_mode_whatever_is_added_to_rows_and_columns(p):
    table = wave(p, 2, 3) + normal(p, 1) + normal(p, seed=1)
    found = score_spectrum(table)
    assert float(found.share(1)) == pytest.approx(1)
    assert [int(f) for f in found.peak()] == [2, 3]
    assert found.power.shape == (p // 2, p // 2)
    two = score_spectrum(wave(p, 2, 3) + 0.5 * wave(p, 1, 1))
    assert float(two.share(1)) == pytest.approx(0.8)
    assert float(two.share(2)) == pytest.approx(1)


@pytest.mark.parametrize("p", [7, 12])
def test_power_is_that_of_the_centred_table(p):
    table = normal(3, p, p)
    found = score_spectrum(table)
    centred = table - table.mean(1, keepdim=True) - table.mean(2, keepdim=True) + table.mean((1, 2), keepdim=True)
    torch.testing.assert_close(found.scores, centred)
    torch.testing.assert_close(found.power.sum((1, 2)), p * p * centred.square().sum((1, 2)))


def test_noise_is_flat_and_low_rank_noise_less_so():
    tables = normal(400, 31, 31)
    flat = score_spectrum(tables)
    assert float(flat.power.mean(0).div(flat.power.mean()).sub(1).abs().max()) < 0.4
    low_rank = score_spectrum(normal(400, 31, 2) @ normal(400, 2, 31, seed=1))
    assert float(low_rank.share(1).mean()) > 1.5 * float(flat.share(1).mean())
    torch.testing.assert_close(flat.above_flat(1), flat.share(1) * 225)


class GroupedAttention(nn.Module):
    """Separate projections, one key head for two query heads, as in Llama."""

    def __init__(self, norms: bool = False) -> None:
        super().__init__()
        self.q_proj = nn.Linear(DIM, DIM, bias=False)
        self.k_proj = nn.Linear(DIM, DIM // 2, bias=True)
        if norms:
            self.q_norm, self.k_norm = nn.RMSNorm(DIM // HEADS), nn.RMSNorm(DIM // HEADS)


class Conv1D(nn.Module):
    """GPT-2's linear layer, which keeps (in, out)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(DIM, 3 * DIM))


def stand_in(kind: str) -> nn.Module:
    """A model with the attributes of a family, and nothing else."""
    torch.manual_seed(0)
    model, block = nn.Module(), nn.Module()
    embedding = nn.Embedding(VOCABULARY, DIM)
    if kind in ("llama", "qwen"):
        block.self_attn, block.input_layernorm = GroupedAttention(kind == "qwen"), nn.RMSNorm(DIM)
        model.model = nn.Module()
        model.model.embed_tokens, model.model.layers = embedding, nn.ModuleList([block])
    elif kind == "gpt2":
        block.attn, block.ln_1 = nn.Module(), nn.LayerNorm(DIM)
        block.attn.c_attn = Conv1D()
        model.transformer = nn.Module()
        model.transformer.wte, model.transformer.h = embedding, nn.ModuleList([block])
    elif kind == "neox":
        block.attention, block.input_layernorm = nn.Module(), nn.LayerNorm(DIM)
        block.attention.query_key_value = nn.Linear(DIM, 3 * DIM)
        model.gpt_neox = nn.Module()
        model.gpt_neox.embed_in, model.gpt_neox.layers = embedding, nn.ModuleList([block])
    else:
        layer = nn.TransformerEncoderLayer(DIM, HEADS, norm_first=kind == "pre-norm", batch_first=True)
        model.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        model.embedding = embedding
        return model.eval()
    model.config = SimpleNamespace(num_attention_heads=HEADS)
    return model.eval()


def expected(kind: str, model: nn.Module, head: int) -> Tensor:
    """The same table, written out per family."""
    ids, width = torch.tensor(TOKENS), DIM // HEADS
    rows = slice(head * width, (head + 1) * width)
    if kind in ("llama", "qwen"):
        block = model.model.layers[0]
        x = block.input_layernorm(model.model.embed_tokens(ids))
        query = x @ block.self_attn.q_proj.weight[rows].T
        group = head // 2
        key = x @ block.self_attn.k_proj.weight[group * width : (group + 1) * width].T
        if kind == "qwen":
            query, key = block.self_attn.q_norm(query), block.self_attn.k_norm(key)
        return key @ query.T
    if kind == "gpt2":
        block = model.transformer.h[0]
        x, weight = block.ln_1(model.transformer.wte(ids)), block.attn.c_attn.weight
        return (x @ weight[:, DIM : 2 * DIM][:, rows]) @ (x @ weight[:, :DIM][:, rows]).T
    if kind == "neox":
        block = model.gpt_neox.layers[0]
        x = block.input_layernorm(model.gpt_neox.embed_in(ids))
        weight = block.attention.query_key_value.weight[head * 3 * width : (head + 1) * 3 * width]
        return (x @ weight[width : 2 * width].T) @ (x @ weight[:width].T).T
    layer = model.encoder.layers[0]
    x = model.embedding(ids)
    x = layer.norm1(x) if kind == "pre-norm" else x
    query, key, _ = layer.self_attn.in_proj_weight.chunk(3)
    return (x @ key[rows].T) @ (x @ query[rows].T).T


@pytest.mark.parametrize("head", [0, 3])
@pytest.mark.parametrize("kind", ["llama", "qwen", "gpt2", "neox", "pre-norm", "post-norm"])
def test_every_family_gives_its_own_scores(kind, head):
    model = stand_in(kind)
    before = {name: part.clone() for name, part in model.state_dict().items()}
    found = attention_fourier(model, 0, head, TOKENS)
    torch.testing.assert_close(found.power, score_spectrum(expected(kind, model, head).detach()).power)
    assert all(torch.equal(part, before[name]) for name, part in model.state_dict().items())


def test_a_head_that_knows_the_week_is_told_from_one_that_does_not():
    model = stand_in("llama")
    block, table = model.model.layers[0], model.model.embed_tokens.weight.data
    block.input_layernorm = nn.Identity()
    a = 2 * math.pi * torch.arange(7) / 7
    table[TOKENS, :2] = 5 * torch.stack([a.cos(), a.sin()], 1)
    for proj in (block.self_attn.q_proj, block.self_attn.k_proj):
        proj.weight.data[:4] = 0.01 * torch.randn(4, DIM)
        proj.weight.data[:2, :2] = torch.eye(2)
    knows, other = (attention_fourier(model, 0, head, TOKENS) for head in (0, 3))
    assert float(knows.share(1)) > 0.95
    assert [int(f) for f in knows.peak()] == [1, 1]
    assert float(other.share(1)) < float(knows.share(1))
    shuffled = [TOKENS[i] for i in (0, 2, 1, 5, 3, 6, 4)]
    assert float(attention_fourier(model, 0, 0, shuffled).share(1)) < 0.8, "the order is what makes the cycle"


def test_plain_weights_need_no_model():
    x, query, key = normal(7, DIM), normal(4, DIM, seed=1), normal(4, DIM, seed=2)
    slow = torch.stack([torch.stack([(key @ x[b]) @ (query @ x[a]) for a in range(7)]) for b in range(7)])
    torch.testing.assert_close(token_scores(x, query, key), slow)


def test_refusals():
    model = stand_in("llama")
    for arguments, words in (
        ((0, 9, TOKENS), r"head must lie in \[0, 3\]"),
        ((2, 0, TOKENS), r"layer must lie in \[0, 0\]"),
        ((0, 0, [1, 2]), "at least 3"),
        ((0, 0, [1, 2, 2]), "different tokens"),
    ):
        with pytest.raises(ValueError, match=words):
            attention_fourier(model, *arguments)
    with pytest.raises(ValueError, match="token_scores"):
        attention_fourier(nn.Linear(3, 3), 0, 0, TOKENS)
    with pytest.raises(ValueError, match="tables"):
        score_spectrum(torch.zeros(3, 4))
    with pytest.raises(ValueError, match=r"modes must lie in \[1, 9\]"):
        score_spectrum(normal(7, 7)).share(10)
    del model.config
    with pytest.raises(ValueError, match="number of heads"):
        attention_fourier(model, 0, 0, TOKENS)


SMALL = dict(vocab_size=VOCABULARY, hidden_size=DIM, num_attention_heads=HEADS, num_hidden_layers=2)
FAMILIES = {
    "Llama": ("LlamaConfig", "LlamaForCausalLM", SMALL | dict(num_key_value_heads=2, intermediate_size=32)),
    "Qwen3": ("Qwen3Config", "Qwen3ForCausalLM", SMALL | dict(num_key_value_heads=2, intermediate_size=32, head_dim=4)),
    "GPT2": ("GPT2Config", "GPT2LMHeadModel", dict(vocab_size=VOCABULARY, n_embd=DIM, n_head=HEADS, n_layer=2)),
    "GPTNeoX": ("GPTNeoXConfig", "GPTNeoXForCausalLM", SMALL | dict(intermediate_size=32)),
    "OPT": ("OPTConfig", "OPTForCausalLM", SMALL | dict(ffn_dim=32, word_embed_proj_dim=DIM)),
    "Bert": ("BertConfig", "BertModel", SMALL | dict(intermediate_size=32)),
}


@pytest.mark.parametrize("family", list(FAMILIES))
def test_hugging_face_models(family):
    """On tiny random models: the probe's table is made of the queries and keys that the model itself computes."""
    transformers = pytest.importorskip("transformers")
    config, model, options = FAMILIES[family]
    torch.manual_seed(0)
    built = getattr(transformers, model)(getattr(transformers, config)(**options)).eval()
    found = attention_fourier(built, 1, 2, TOKENS)
    layer = next(layers for layers in built.modules() if isinstance(layers, nn.ModuleList) and len(layers) == 2)[1]
    x = built.get_input_embeddings()(torch.tensor(TOKENS))
    x = built.embeddings.LayerNorm(x) if family == "Bert" else x
    for norm in ("input_layernorm", "ln_1", "self_attn_layer_norm"):
        x = getattr(layer, norm)(x) if hasattr(layer, norm) else x
    attention = next(m for n, m in layer.named_modules() if n in ("self_attn", "attn", "attention.self", "attention"))
    attention = getattr(attention, "self", attention)
    width = DIM // HEADS
    with torch.no_grad():
        if hasattr(attention, "c_attn"):
            query, key, _ = attention.c_attn(x).split(DIM, dim=1)
            query, key = query[:, 2 * width : 3 * width], key[:, 2 * width : 3 * width]
        elif hasattr(attention, "query_key_value"):
            query, key, _ = attention.query_key_value(x).view(7, HEADS, 3, width)[:, 2].unbind(1)
        else:
            query = getattr(attention, "q_proj", None) or attention.query
            key = getattr(attention, "k_proj", None) or attention.key
            query, key = query(x)[:, 2 * width : 3 * width], key(x)
            key = key[:, width : 2 * width] if key.shape[1] < DIM else key[:, 2 * width : 3 * width]
            if hasattr(attention, "q_norm"):
                query, key = attention.q_norm(query), attention.k_norm(key)
    # Fresh models have zero biases, so that leaving biases out changes nothing here.
    torch.testing.assert_close(found.power, score_spectrum(key @ query.mT).power, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("model", ["BertModel", "BertForMaskedLM"])
def test_bert_is_read_as_its_first_layer_reads_it(model):
    """Without positions and segments, the keys and queries of BERT's own forward pass make the probe's table."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    built = getattr(transformers, model)(transformers.BertConfig(**FAMILIES["Bert"][2])).eval()
    base = getattr(built, "bert", built)
    for name in ("position_embeddings", "token_type_embeddings"):
        getattr(base.embeddings, name).weight.data.zero_()
    nn.init.normal_(base.embeddings.LayerNorm.weight)
    nn.init.normal_(base.embeddings.LayerNorm.bias)
    seen = {}
    attention = base.encoder.layer[0].attention.self
    for name in ("query", "key"):
        getattr(attention, name).register_forward_hook(lambda _, __, out, name=name: seen.update({name: out[0]}))
    with torch.no_grad():
        built(torch.tensor([TOKENS]))
    table = seen["key"][:, 4:8] @ seen["query"][:, 4:8].mT
    found = attention_fourier(built, 0, 1, TOKENS)
    torch.testing.assert_close(found.power, score_spectrum(table).power, rtol=1e-4, atol=1e-9)


WIDE = SMALL | dict(num_key_value_heads=2, intermediate_size=32)
READ = {
    "Phi": ("PhiConfig", "PhiForCausalLM", WIDE | dict(qk_layernorm=True)),
    "StableLM": ("StableLmConfig", "StableLmForCausalLM", WIDE | dict(qk_layernorm=True)),
    "OLMo2": ("Olmo2Config", "Olmo2ForCausalLM", WIDE),
    "Cohere": ("CohereConfig", "CohereForCausalLM", WIDE | dict(use_qk_norm=True)),
    "Persimmon": ("PersimmonConfig", "PersimmonForCausalLM", SMALL | dict(intermediate_size=32, qk_layernorm=True)),
    "OPT": ("OPTConfig", "OPTForCausalLM", SMALL | dict(ffn_dim=32, word_embed_proj_dim=8)),
    "OPT after": ("OPTConfig", "OPTForCausalLM", FAMILIES["OPT"][2] | dict(do_layer_norm_before=False)),
    "Electra": ("ElectraConfig", "ElectraModel", SMALL | dict(intermediate_size=32, embedding_size=8)),
    "ElectraLM": ("ElectraConfig", "ElectraForMaskedLM", SMALL | dict(intermediate_size=32, embedding_size=8)),
    "GPT": ("OpenAIGPTConfig", "OpenAIGPTLMHeadModel", dict(vocab_size=30, n_embd=DIM, n_head=HEADS, n_layer=2)),
    "XGLM": (
        "XGLMConfig",
        "XGLMModel",
        dict(vocab_size=30, d_model=DIM, attention_heads=HEADS, num_layers=2, ffn_dim=32),
    ),
}


def built(config: str, model: str, options: dict) -> nn.Module:
    """A tiny random model whose norms do something, without what the probe leaves out: positions and biases."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    found = getattr(transformers, model)(getattr(transformers, config)(**options, pad_token_id=0)).eval()
    for name, part in found.named_modules():
        if "norm" in type(part).__name__.lower() and not list(part.children()):
            for weight in part.parameters():
                nn.init.normal_(weight)
        if "position" in name or "token_type" in name:
            for weight in (*part.parameters(), *part.buffers()):
                weight.data.zero_()
    return found


@pytest.mark.parametrize("family", list(READ))
def test_the_table_is_made_of_the_models_own_queries_and_keys(family):
    """Every token alone, at the first position, where rotations turn nothing: the first layer's queries and keys, after
    their norms, as the model's forward pass has them."""
    model = built(*READ[family])
    seen: dict[str, Tensor] = {}
    layers = next(each for each in model.modules() if isinstance(each, nn.ModuleList) and len(each) == 2)
    for name, part in layers[0].named_modules():
        own = name.split(".")[-1]
        if own in ("q_proj", "query", "q_norm", "q_layernorm"):
            part.register_forward_hook(lambda _, __, out: seen.update(query=out))
        elif own in ("k_proj", "key", "k_norm", "k_layernorm"):
            part.register_forward_hook(lambda _, __, out: seen.update(key=out))
        elif own == "c_attn":
            part.register_forward_hook(
                lambda _, __, out: seen.update(query=out[..., :DIM], key=out[..., DIM : 2 * DIM])
            )
    with torch.no_grad():
        model(torch.tensor(TOKENS)[:, None])
    queries, keys = (seen[side].reshape(7, -1, DIM // HEADS) for side in ("query", "key"))
    for head in (0, 3):
        table = keys[:, head * keys.shape[1] // HEADS] @ queries[:, head].mT
        found = attention_fourier(model, 0, head, TOKENS)
        torch.testing.assert_close(found.power, score_spectrum(table).power, rtol=1e-4, atol=1e-9)


BART = dict(
    vocab_size=VOCABULARY,
    d_model=DIM,
    encoder_attention_heads=HEADS,
    decoder_attention_heads=HEADS,
    encoder_layers=2,
    decoder_layers=2,
    encoder_ffn_dim=32,
    decoder_ffn_dim=32,
)
REFUSED = {
    "BART": ("BartConfig", "BartModel", BART, "two stacks"),
    "BART's decoder": ("BartConfig", "BartForCausalLM", BART, "self_attn_layer_norm"),
    "BigCode": ("GPTBigCodeConfig", "GPTBigCodeForCausalLM", FAMILIES["GPT2"][2], "c_attn"),
    "RoBERTa, norm first": (
        "RobertaPreLayerNormConfig",
        "RobertaPreLayerNormModel",
        FAMILIES["Bert"][2],
        "'LayerNorm'",
    ),
    "ESM": ("EsmConfig", "EsmModel", FAMILIES["Bert"][2] | dict(mask_token_id=1), "'LayerNorm'"),
    "DeBERTa, widened": ("DebertaV2Config", "DebertaV2Model", FAMILIES["Bert"][2] | dict(embedding_size=8), "not fit"),
}


@pytest.mark.parametrize("family", list(REFUSED))
def test_what_would_be_guessed_is_refused_with_a_way_out(family):
    *arguments, words = REFUSED[family]
    with pytest.raises(ValueError, match=f"{words}.*token_scores"):
        attention_fourier(built(*arguments), 0, 0, TOKENS)


def test_a_norm_of_an_unknown_name_is_not_left_out_in_silence():
    model = stand_in("llama")
    block = model.model.layers[0]
    block.strange, block.input_layernorm = block.input_layernorm, None
    with pytest.raises(ValueError, match=r"'strange'.*token_scores"):
        attention_fourier(model, 0, 0, TOKENS)
    model = stand_in("llama")
    model.model.layers[0].self_attn.strange = nn.RMSNorm(DIM)
    with pytest.raises(ValueError, match=r"'strange'.*token_scores"):
        attention_fourier(model, 0, 0, TOKENS)
    model = stand_in("qwen")
    model.model.layers[0].self_attn.q_norm = nn.RMSNorm(DIM // 2)
    with pytest.raises(ValueError, match=r"norm of shape.*token_scores"):
        attention_fourier(model, 0, 0, TOKENS)
    model = stand_in("llama")
    model.config.head_dim = DIM // HEADS // 2  # as where queries and their gates share a projection
    with pytest.raises(ValueError, match=r"do not fit.*token_scores"):
        attention_fourier(model, 0, 0, TOKENS)
