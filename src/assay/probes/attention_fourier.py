"""Is an attention head periodic in a family of cyclic tokens? For your own transformer or a Hugging Face model.

A head's key-query matrix means nothing in the model's own basis. Read on tokens it is a table: how much would token a,
as a query, attend to token b? Its two-dimensional spectrum shows whether the head knows the cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from assay.methods._checks import all_finite, whole
from assay.methods._precision import full_precision

from .score_spectrum import ScoreSpectrum, score_spectrum

_LAYERS = (
    "model.layers",
    "transformer.h",
    "gpt_neox.layers",
    "model.decoder.layers",
    "decoder.layers",
    "h",
    "layers",
    "encoder.layer",
    "bert.encoder.layer",
    "roberta.encoder.layer",
    "electra.encoder.layer",
    "encoder.layers",
    "transformer.layers",
)
_EMBEDDINGS = (
    "model.embed_tokens",
    "transformer.wte",
    "wte",
    "gpt_neox.embed_in",
    "embed_tokens",
    "embedding",
    "embeddings.word_embeddings",
    "bert.embeddings.word_embeddings",
    "tok_embeddings",
)
_EMBEDDING_NORMS = (
    "embeddings.LayerNorm",
    "bert.embeddings.LayerNorm",
    "roberta.embeddings.LayerNorm",
    "electra.embeddings.LayerNorm",
)
_WIDENINGS = ("model.decoder.project_in", "decoder.project_in", "embeddings_project", "electra.embeddings_project")
_ATTENTION = ("self_attn", "attn", "attention.self", "attention")
_NORMS = ("input_layernorm", "ln_1", "self_attn_layer_norm", "norm1", "attention_norm")
_PRE_NORM, _POST_NORM = ("xglm", "biogpt"), ("openai-gpt",)  # kinds of models whose names alone do not tell the order
_LATER_NORMS = (
    "post_attention_layernorm",
    "post_feedforward_layernorm",
    "pre_feedforward_layernorm",
    "ln_2",
    "final_layer_norm",
    "norm2",
    "norm3",
    "ffn_norm",
)
_QUERY_NORMS, _KEY_NORMS = ("q_norm", "q_layernorm"), ("k_norm", "k_layernorm")
_CHANGES = ("norm", "normperhead", "convolution")  # how the names of classes end that change what they are given
_HEAD_WIDTHS = ("head_dim", "attention_head_size", "head_size")
_QUERIES, _KEYS = ("q_proj", "query", "wq", "query_proj"), ("k_proj", "key", "wk", "key_proj")
_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head")


def attention_fourier(model: nn.Module, layer: int, head: int, token_ids: Sequence[int]) -> ScoreSpectrum:
    """The spectrum of one head's scores among ``token_ids``, cyclic tokens in order (the seven weekdays, say).

    Understands the usual families by their attributes: separate projections (Llama, Mistral, Qwen, Gemma, Phi, OLMo,
    StableLM, Cohere, OPT, BERT, ELECTRA), the fused ones of GPT-2 and GPT-NeoX, grouped keys, normalised queries and
    keys, and ``nn.TransformerEncoder``. Refuses what it would have to guess: a norm that may come before or after
    attention, or two stacks of layers. Embeddings that the model normalises or widens before its first layer (BERT,
    ELECTRA) are treated so, and so is what a pre-norm block reads. Biases, positions, segments and rotations are left
    out, and beyond the first layer the embeddings stand in for what earlier layers wrote.
    """
    found = head_scores(model, token_ids, [layer])
    whole("head", head, 0, found.shape[1] - 1)
    return score_spectrum(found[0, head])


@torch.no_grad()
@full_precision()
def head_scores(model: nn.Module, token_ids: Sequence[int], layers: Sequence[int] | None = None) -> Tensor:
    """The score tables of every head in these layers (all when None): (layers, heads, p, p), keys along the rows."""
    ids = torch.as_tensor(list(token_ids))
    if ids.ndim != 1 or len(ids) < 3 or len(set(ids.tolist())) != len(ids):
        raise ValueError("token_ids must be at least 3 different tokens in the order of their cycle")
    table = _embedding(model)
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False) is True:
        raise ValueError(f"{type(model).__name__} has an encoder and a decoder, two stacks of layers; use token_scores")
    blocks = _first(model, _LAYERS, "list of layers")
    embeddings = _apply(_find(model, _EMBEDDING_NORMS), table(ids.to(table.weight.device)))
    wide = _apply(_find(model, _WIDENINGS), embeddings)
    found = []
    for layer in range(len(blocks)) if layers is None else layers:
        block = blocks[whole("layer", layer, 0, len(blocks) - 1)]
        attention = _first(block, _ATTENTION, "attention module")
        reads = _normalised(model, block, wide)
        sides = [_queries_and_keys(model, attention, reads, head) for head in range(_count(model, attention, _HEADS))]
        found.append(torch.stack([(keys @ queries.mT).float() for queries, keys in sides]))
    scores = torch.stack(found)
    all_finite("the scores of heads", scores)
    return scores


def _queries_and_keys(model: nn.Module, attention: nn.Module, reads: Tensor, head: int) -> tuple[Tensor, Tensor]:
    """One head's queries and keys (p, head_dim) of what the attention reads (p, dim)."""
    heads = _count(model, attention, _HEADS)
    whole("head", head, 0, heads - 1)
    _refuse_unknown(attention, (*_QUERY_NORMS, *_KEY_NORMS))
    query, key = _projections(attention, heads)
    width = len(query) // heads
    stated = _stated(model, attention, _HEAD_WIDTHS)
    divides = len(query) % heads == 0 and len(key) % width == 0
    if not divides or stated not in (None, width) or query.shape[1] != reads.shape[-1]:
        raise ValueError(
            f"projections {tuple(query.shape)} and {tuple(key.shape)} do not fit inputs of {reads.shape[-1]} entries "
            f"and {heads} heads of {stated or width}; use token_scores"
        )
    shared = head * (len(key) // width) // heads  # several query heads may share a key head
    sides = ((query, head, _QUERY_NORMS), (key, shared, _KEY_NORMS))
    queries, keys = (_one_head(reads, w, at, width, _find(attention, names)) for w, at, names in sides)
    return queries, keys


def _one_head(reads: Tensor, weight: Tensor, at: int, width: int, norm: Any) -> Tensor:
    """One head's part of a projection (heads · width, dim), normalised as the model does: each head by the same norm,
    by one of its own (StableLM), by its row of a common weight (Cohere), or all heads together (OLMo 2)."""
    own = reads @ weight[at * width : (at + 1) * width].mT
    shape = tuple(getattr(getattr(norm, "weight", None), "shape", (width,)))
    if norm is None:
        return own
    if hasattr(norm, "norms"):
        return _apply(norm.norms[at], own)
    if shape == (width,):
        return _apply(norm, own)
    heads = len(weight) // width
    if shape not in ((heads, width), (heads * width,)):
        raise ValueError(f"a norm of shape {shape} does not fit {heads} heads of {width} entries; use token_scores")
    together = (reads @ weight.mT).reshape(len(reads), *shape)
    return _apply(norm, together).reshape(len(reads), heads, width)[:, at]


def _projections(attention: nn.Module, heads: int) -> tuple[Tensor, Tensor]:
    """W^Q and W^K of all heads, (heads · head_dim, dim)."""
    together = getattr(attention, "query_key_value", None)
    if together is not None:  # GPT-NeoX: the three projections of a head lie together
        each = together.weight.unflatten(0, (heads, 3, -1))
        return each[:, 0].flatten(0, 1), each[:, 1].flatten(0, 1)
    packed = getattr(attention, "in_proj_weight", None)  # nn.MultiheadAttention
    if packed is not None:
        query, key, _ = packed.chunk(3)
        return query, key
    fused = getattr(attention, "c_attn", None)  # GPT-2's Conv1D keeps (in, out)
    if fused is not None:
        if fused.weight.shape[1] != 3 * fused.weight.shape[0]:
            raise ValueError(f"c_attn of shape {tuple(fused.weight.shape)} is not GPT-2's; use token_scores")
        query, key, _ = fused.weight.mT.chunk(3)
        return query, key
    found = [_first(attention, names, "query and key projections") for names in (_QUERIES, _KEYS)]
    return found[0].weight, found[1].weight


def _normalised(model: nn.Module, block: nn.Module, embeddings: Tensor) -> Tensor:
    """What the attention reads: normalised in a pre-norm block, the embeddings themselves otherwise."""
    if getattr(block, "norm_first", True) is False or getattr(block, "do_layer_norm_before", True) is False:
        return embeddings
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if kind in _POST_NORM:
        return embeddings
    told = hasattr(block, "do_layer_norm_before") or kind in _PRE_NORM
    if hasattr(block, "self_attn_layer_norm") and not told:
        raise ValueError(
            f"the self_attn_layer_norm of a {type(block).__name__} may come before attention or, as in BART, after it; "
            "use token_scores"
        )
    norm = _find(block, _NORMS)
    if norm is None:
        for part in (block, getattr(block, "attention", None)):  # BERT's attention module holds its projections deeper
            _refuse_unknown(part, (*_LATER_NORMS, *_QUERY_NORMS, *_KEY_NORMS))
    return _apply(norm, embeddings)


def _refuse_unknown(module: nn.Module | None, known: tuple[str, ...]) -> None:
    """A norm or convolution of another name may be part of what the head computes; left out, it would not be missed."""
    for name, part in module.named_children() if module is not None else ():
        counts = isinstance(part, (nn.LayerNorm, nn.RMSNorm)) or type(part).__name__.lower().endswith(_CHANGES)
        if counts and name not in known:
            owner = type(module).__name__
            raise ValueError(f"it is not known whether {name!r} of a {owner} comes before its scores; use token_scores")


def _apply(norm: Any, values: Tensor) -> Tensor:
    if norm is None:
        return values
    entries = getattr(norm, "weight", values).shape[-1]
    if entries != values.shape[-1]:
        kind = type(norm).__name__
        raise ValueError(f"a {kind} of {entries} entries does not fit {values.shape[-1]}; use token_scores")
    found: Tensor = norm(values)
    return found


def _embedding(model: nn.Module) -> nn.Embedding:
    ask = getattr(model, "get_input_embeddings", None)
    found = ask() if callable(ask) else _first(model, _EMBEDDINGS, "token embedding")
    if not hasattr(found, "num_embeddings"):
        raise ValueError(f"the token embedding is a {type(found).__name__}; the probe reads an nn.Embedding")
    embedding: nn.Embedding = found
    return embedding


def _count(model: nn.Module, attention: nn.Module, names: tuple[str, ...]) -> int:
    return whole("the number of heads, stated by the attention or the configuration,", _stated(model, attention, names))


def _stated(model: nn.Module, attention: nn.Module, names: tuple[str, ...]) -> int | None:
    """A number that the attention module states, or the configuration."""
    for holder in (attention, getattr(attention, "config", None), getattr(model, "config", None)):
        for name in names:
            if isinstance(count := getattr(holder, name, None), int):
                return count
    return None


def _find(module: nn.Module, paths: tuple[str, ...]) -> Any:
    for path in paths:
        found: Any = module
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is not None:
            return found
    return None


def _first(module: nn.Module, paths: tuple[str, ...], what: str) -> Any:
    found = _find(module, paths)
    if found is None:
        known = ", ".join(paths)
        raise ValueError(f"{type(module).__name__} has no {what} under a known name ({known}); use token_scores")
    return found
