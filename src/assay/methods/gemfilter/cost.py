"""What a long prompt costs: operations and bytes of full attention, cache compression and GemFilter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.methods._checks import one_of, whole
from assay.methods.gemfilter.budget import budget_of, check_keep
from assay.methods.gemfilter.chunks import Layout, shared_tokens

METHODS = ("full", "snapkv", "h2o", "gemfilter", "one-run")


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder that its cost depends on."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool = False

    @classmethod
    def of(cls, config: Any) -> Shape:
        """From a Hugging Face configuration."""
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return cls(
            layers=config.num_hidden_layers,
            hidden=config.hidden_size,
            intermediate=config.intermediate_size,
            heads=config.num_attention_heads,
            kv_heads=config.num_key_value_heads,
            head_dim=width,
            vocabulary=config.vocab_size,
            tied=bool(config.tie_word_embeddings),
        )

    @property
    def layer_weights(self) -> int:
        """Matrix weights of one layer: query and output, key and value, and a gated MLP."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return attention + 3 * self.hidden * self.intermediate

    @property
    def embedding_weights(self) -> int:
        return self.vocabulary * self.hidden


@dataclass(frozen=True)
class Cost:
    """Operations (a multiplication and an addition are two) and bytes of the two phases."""

    prefill_flops: float
    decode_flops: float
    prefill_bytes: float
    decode_bytes: float
    cache_bytes: float


def cost_model(
    method: str,
    shape: Shape,
    *,
    n: int,
    keep: int | float = 1024,
    new: int = 50,
    layer: int | None = None,
    item: int = 2,
    resident: bool = True,
    per_query_head: bool = False,
    chunk: int | None = None,
    overlap: int | None = None,
    tail: int = 128,
) -> Cost:
    """The cost of a prompt of ``n`` tokens and ``new`` decoded ones, with grouped caches and the terms linear in ``n``.

    Causal attention computes half of the square. GemFilter's second, short prefill belongs to its decoding, as in the
    text's table. ``resident`` keeps the whole model in memory during GemFilter's pass 1; without it only the filter's
    layers are loaded, which is what the text's formula assumes. ``per_query_head`` is SnapKV with an index set, and so
    keys and values, for every query head. ``keep`` below 1 is a share of the prompt. ``chunk``, ``overlap`` and
    ``tail`` are GemFilter's, one chunk at a time; ``auto`` depends on a model's context, of which a shape says nothing.
    Bytes are weights, caches and, in the prefill, the keys and values of the layer at work; activations are not
    counted.
    """
    one_of("method", method, METHODS)
    whole("n", n, 1)
    whole("new", new, 0)
    check_keep(keep)
    if method in ("gemfilter", "one-run"):
        if layer is None or not 0 <= layer < shape.layers:
            raise ValueError(f"{method} needs a layer between 0 and {shape.layers - 1}, not {layer}")
        whole("layer", layer)
    if per_query_head and method != "snapkv":
        raise ValueError(f"only SnapKV has index sets per query head, not {method}")
    if chunk is not None and method != "gemfilter":
        raise ValueError(f"only GemFilter reads in chunks, not {method}")
    if chunk is not None:
        check_chunk(chunk, overlap)
        whole("tail", tail, 1)
    k = n if method == "full" else budget_of(keep, n)
    weights = item * (shape.layers * shape.layer_weights + shape.embedding_weights * (1 if shape.tied else 2))
    entry = 2 * shape.kv_heads * shape.head_dim * item
    head = 2 * shape.embedding_weights
    kept = entry * (shape.heads // shape.kv_heads if per_query_head else 1)
    cache = kept * shape.layers * (k + new)
    decode = shape.layers * _decode(shape, k, new) + new * head
    if method != "gemfilter":
        prefill = full_prefill(shape, n)
        if method == "h2o":  # every query's attention is computed a second time, for its sums
            prefill += shape.layers * shape.heads * shape.head_dim * n * (n + 1)
        held = entry * shape.layers * n if method in ("full", "one-run") else entry * n + kept * shape.layers * k
        return Cost(prefill, decode, weights + held, weights + cache, cache)
    assert layer is not None
    size = n if chunk is None else chunk
    layout = Layout.of(n, size, overlap=shared_tokens(size, overlap), tail=0 if chunk is None else tail)
    read = layout.chunk_length
    prefill = layout.chunks * (layer * prefill_layer(shape, read) + scoring(shape, read))
    loaded = weights if resident else item * ((layer + 1) * shape.layer_weights + shape.embedding_weights)
    decode += shape.layers * prefill_layer(shape, k) + head
    return Cost(prefill, decode, loaded + entry * read, weights + cache, cache)


def check_chunk(chunk: Any, overlap: int | None) -> None:
    """Refuse a size that is none, and an overlap that leaves no step between chunks."""
    if chunk == "auto":
        raise ValueError("chunk='auto' depends on the model's context, which a shape does not have: give a number")
    whole("chunk", chunk, 2)
    if overlap is not None and whole("overlap", overlap, 0) >= chunk:
        raise ValueError(f"overlap must be smaller than a chunk of {chunk} tokens, not {overlap}")


def cache_bytes(shape: Shape, length: int, item: int = 2) -> int:
    """2 · layers · kv_heads · head_dim · length · bytes: what a cache of this length holds."""
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * length * item


def full_prefill(shape: Shape, n: int) -> float:
    """The whole model on a prompt of ``n`` tokens, up to the logits of the last one."""
    return shape.layers * prefill_layer(shape, n) + 2 * shape.embedding_weights


def prefill_layer(shape: Shape, n: int) -> float:
    """One layer on a prompt of ``n`` tokens."""
    return 2 * n * shape.layer_weights + 2 * shape.heads * shape.head_dim * n * (n + 1)


def scoring(shape: Shape, n: int) -> float:
    """The filter layer's keys, its last query, and their products."""
    keys = 2 * n * shape.hidden * shape.kv_heads * shape.head_dim
    query = 2 * shape.hidden * shape.heads * shape.head_dim
    return keys + query + 2 * n * shape.kv_heads * shape.head_dim


def _decode(shape: Shape, length: int, new: int) -> float:
    """One layer on ``new`` tokens, one after the other, behind ``length`` cached ones."""
    seen = new * length + new * (new + 1) / 2
    return 2 * new * shape.layer_weights + 4 * shape.heads * shape.head_dim * seen
