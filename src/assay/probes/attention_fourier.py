"""Is an attention head periodic in a family of cyclic tokens? For your own transformer or a Hugging Face model.

A head's key-query matrix means nothing in the model's own basis. Read on tokens it is a table: how much would token a,
as a query, attend to token b? Its two-dimensional spectrum shows whether the head knows the cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

_LAYERS = ("model.layers", "transformer.h", "gpt_neox.layers", "model.decoder.layers", "decoder.layers", "h", "layers",
           "encoder.layer", "bert.encoder.layer", "roberta.encoder.layer", "encoder.layers",
           "transformer.layers")  # fmt: skip
_EMBEDDINGS = ("model.embed_tokens", "transformer.wte", "wte", "gpt_neox.embed_in", "embed_tokens", "embedding",
               "embeddings.word_embeddings", "bert.embeddings.word_embeddings", "tok_embeddings")  # fmt: skip
_EMBEDDING_NORMS = ("embeddings.LayerNorm", "bert.embeddings.LayerNorm", "roberta.embeddings.LayerNorm")
_ATTENTION = ("self_attn", "attn", "attention.self", "attention")
_NORMS = ("input_layernorm", "ln_1", "self_attn_layer_norm", "norm1", "attention_norm")
_QUERIES, _KEYS = ("q_proj", "query", "wq", "query_proj"), ("k_proj", "key", "wk", "key_proj")
_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head")


@dataclass(frozen=True)
class ScoreSpectrum:
    """Folded two-dimensional spectra of score tables (..., p, p), double-centred.

    ``power`` (..., p//2, p//2) has key frequencies first and query frequencies second, both from 1. ``scores`` is the
    centred table. ``flat`` is the share of one mode in a flat spectrum; an untrained head of small rank lies above
    it, so compare with the same model at initialisation.
    """

    scores: Tensor
    power: Tensor

    @property
    def flat(self) -> float:
        return 1 / (self.power.shape[-1] * self.power.shape[-2])

    def share(self, modes: int = 1) -> Tensor:
        """The part of the power in the strongest ``modes`` modes: (...)."""
        if not 1 <= modes <= self.power.shape[-1] ** 2:
            raise ValueError(f"there are {self.power.shape[-1] ** 2} modes, so {modes} cannot be chosen")
        every = self.power.flatten(-2)
        return every.topk(modes, dim=-1).values.sum(-1) / every.sum(-1)

    def above_flat(self, modes: int = 1) -> Tensor:
        return self.share(modes) / (modes * self.flat)

    def peak(self) -> tuple[Tensor, Tensor]:
        """The frequencies (key, query) of the strongest mode."""
        best = self.power.flatten(-2).argmax(-1)
        width = self.power.shape[-1]
        return best // width + 1, best % width + 1


def score_spectrum(scores: Tensor) -> ScoreSpectrum:
    """Centre tables (..., p, p) along both axes, transform, and add up the modes (±j, ±l)."""
    p = scores.shape[-1]
    if scores.ndim < 2 or scores.shape[-2] != p or p < 3:
        raise ValueError(f"scores are tables (..., p, p) of at least 3 tokens, not {tuple(scores.shape)}")
    values = scores.detach().to(torch.promote_types(scores.dtype, torch.float32))
    values = values - values.mean(-1, keepdim=True)
    values = values - values.mean(-2, keepdim=True)
    whole = torch.fft.fft2(values).abs().square()[..., 1:, 1:]
    half = p // 2
    power = (whole + whole.flip(-1))[..., :half]
    power = (power + power.flip(-2))[..., :half, :]
    if p % 2 == 0:  # the frequency p/2 is its own mirror image
        power[..., -1, :] /= 2
        power[..., :, -1] /= 2
    return ScoreSpectrum(values, power)


def token_scores(embeddings: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """E W^K W^{Qᵀ} Eᵀ (..., p, p), keys along the rows, from what a head reads off the tokens (..., p, dim) and its
    weights (..., head_dim, dim), as in ``nn.Linear``."""
    return (embeddings @ key.mT) @ (embeddings @ query.mT).mT


def attention_fourier(model: nn.Module, layer: int, head: int, token_ids: Sequence[int]) -> ScoreSpectrum:
    """The spectrum of one head's scores among ``token_ids``, cyclic tokens in order (the seven weekdays, say).

    Understands the usual families by their attributes: separate projections (Llama, Mistral, Qwen, Gemma, OPT, BERT),
    the fused ones of GPT-2 and GPT-NeoX, grouped keys, normalised queries and keys, and ``nn.TransformerEncoder``.
    Embeddings that the model normalises before its first layer (BERT) are normalised, and so is what a pre-norm block
    reads. Biases, positions, segments and rotations are left out, and beyond the first layer the embeddings stand in
    for what earlier layers wrote.
    """
    ids = torch.as_tensor(list(token_ids))
    if ids.ndim != 1 or len(ids) < 3 or len(set(ids.tolist())) != len(ids):
        raise ValueError("token_ids must be at least 3 different tokens in the order of their cycle")
    table = _embedding(model)
    if int(ids.min()) < 0 or int(ids.max()) >= table.num_embeddings:
        raise ValueError(f"token_ids must lie in 0..{table.num_embeddings - 1}, the model's vocabulary")
    layers = _first(model, _LAYERS, "list of layers")
    if not 0 <= layer < len(layers):
        raise ValueError(f"the model has layers 0..{len(layers) - 1}, not {layer}")
    block = layers[layer]
    with torch.no_grad():
        embeddings = _apply(_find(model, _EMBEDDING_NORMS), table(ids.to(table.weight.device)))
        reads = _normalised(block, embeddings)
        query, key, norms = _head_weights(model, _first(block, _ATTENTION, "attention module"), head)
        queries, keys = (_apply(norm, reads @ w.mT) for norm, w in zip(norms, (query, key), strict=True))
        return score_spectrum((keys @ queries.mT).float())


def _head_weights(model: nn.Module, attention: nn.Module, head: int) -> tuple[Tensor, Tensor, tuple[Any, Any]]:
    """W^Q and W^K of one head as (head_dim, dim), and what normalises its queries and keys."""
    heads = _count(model, attention, _HEADS)
    if not 0 <= head < heads:
        raise ValueError(f"the layer has heads 0..{heads - 1}, not {head}")
    norms = getattr(attention, "q_norm", None), getattr(attention, "k_norm", None)
    fused = getattr(attention, "query_key_value", None)
    if fused is not None:  # GPT-NeoX: the three projections of a head lie together
        each = fused.weight.reshape(heads, 3, -1, fused.weight.shape[1])[head]
        return each[0], each[1], norms
    query, key = _projections(attention)
    width = len(query) // heads
    if len(query) % heads or len(key) % width:
        raise ValueError(f"projections of {len(query)} and {len(key)} rows do not divide among {heads} heads")
    shared = head * (len(key) // width) // heads  # several query heads may share a key head
    rows = slice(head * width, (head + 1) * width), slice(shared * width, (shared + 1) * width)
    return query[rows[0]], key[rows[1]], norms


def _projections(attention: nn.Module) -> tuple[Tensor, Tensor]:
    """W^Q and W^K of all heads, (heads · head_dim, dim)."""
    packed = getattr(attention, "in_proj_weight", None)  # nn.MultiheadAttention
    if packed is not None:
        query, key, _ = packed.chunk(3)
        return query, key
    fused = getattr(attention, "c_attn", None)  # GPT-2's Conv1D keeps (in, out)
    if fused is not None:
        query, key, _ = fused.weight.mT.chunk(3)
        return query, key
    found = [_first(attention, names, "query and key projections") for names in (_QUERIES, _KEYS)]
    return found[0].weight, found[1].weight


def _normalised(block: nn.Module, embeddings: Tensor) -> Tensor:
    """What the attention reads: normalised in a pre-norm block, the embeddings themselves otherwise."""
    if getattr(block, "norm_first", True) is False or getattr(block, "do_layer_norm_before", True) is False:
        return embeddings
    norm = _find(block, _NORMS)
    return embeddings if norm is None else _apply(norm, embeddings)


def _apply(norm: Any, values: Tensor) -> Tensor:
    found: Tensor = values if norm is None else norm(values)
    return found


def _embedding(model: nn.Module) -> nn.Embedding:
    ask = getattr(model, "get_input_embeddings", None)
    found = ask() if callable(ask) else _first(model, _EMBEDDINGS, "token embedding")
    if not hasattr(found, "num_embeddings"):
        raise ValueError(f"the token embedding is a {type(found).__name__}; the probe reads an nn.Embedding")
    embedding: nn.Embedding = found
    return embedding


def _count(model: nn.Module, attention: nn.Module, names: tuple[str, ...]) -> int:
    for holder in (attention, getattr(attention, "config", None), getattr(model, "config", None)):
        for name in names:
            if isinstance(count := getattr(holder, name, None), int):
                return count
    raise ValueError("the number of heads is neither an attribute of the attention module nor in the configuration")


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
