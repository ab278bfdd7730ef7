"""Queries and keys of one layer: how the families that are known by name project and rotate them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

# Attention classes whose projections are known by name; any other goes through the attention interface.
_SEPARATE = ("LlamaAttention", "MistralAttention", "Qwen2Attention", "Qwen3Attention")
_FUSED = ("Phi3Attention",)


@dataclass(frozen=True)
class Projected:
    """Rotated queries (batch, heads, rows, width) and keys (batch, kv_heads, n, width) of one layer, with what its
    attention does to their products: a factor, a soft cap, and learned ``sinks`` (heads,), logits beside those of the
    keys that take part in every row's softmax."""

    queries: Tensor
    keys: Tensor
    scaling: float
    softcap: float | None = None
    sinks: Tensor | None = None

    def of(self, row: int) -> Projected:
        """One row of the batch, without its dimension."""
        return replace(self, queries=self.queries[row], keys=self.keys[row])


def known_family(attention: nn.Module) -> bool:
    """Whether queries and keys can be projected by name, without running the attention."""
    return type(attention).__name__ in (*_SEPARATE, *_FUSED)


def project(attention: Any, hidden: Tensor, rotary: tuple[Tensor, Tensor], rows: Tensor | None) -> Projected:
    """Queries at ``rows`` (batch, r), or everywhere, and all keys of a layer, after norms and rotation."""
    cos, sin = (part.expand(hidden.shape[0], -1, -1) for part in rotary)
    wanted = (hidden, cos, sin) if rows is None else tuple(_at(part, rows) for part in (hidden, cos, sin))
    query, key = _linear(attention, wanted[0], "q"), _linear(attention, hidden, "k")
    # The model's own function: Phi-3 rotates a part of each head only. It takes a pair, so each side goes in twice.
    rotate = sys.modules[type(attention).__module__].apply_rotary_pos_emb
    query = rotate(query, query, *wanted[1:])[0]
    return Projected(query, rotate(key, key, cos, sin)[0], float(attention.scaling))


def project_queries(attention: Any, hidden: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Rotated queries of every position in ``hidden``: (batch, heads, rows, width)."""
    query = _linear(attention, hidden, "q")
    rotated: Tensor = sys.modules[type(attention).__module__].apply_rotary_pos_emb(query, query, *rotary)[0]
    return rotated


def _at(states: Tensor, rows: Tensor) -> Tensor:
    return states.gather(1, rows[..., None].expand(-1, -1, states.shape[-1]))


def _linear(attention: Any, hidden: Tensor, which: str) -> Tensor:
    """One projection, (batch, n, hidden) -> (batch, heads, n, width), with the head norm of families that have one."""
    width = attention.head_dim
    if type(attention).__name__ in _FUSED:
        config = attention.config
        split = config.num_attention_heads * width
        part = slice(0, split) if which == "q" else slice(split, split + config.num_key_value_heads * width)
        fused = attention.qkv_proj
        if type(fused) is nn.Linear:
            # Slicing the weight and not the result: the other parts are never computed.
            states = nn.functional.linear(hidden, fused.weight[part], None if fused.bias is None else fused.bias[part])
        else:  # adapters and packed weights compute their own way
            states = fused(hidden)[..., part]
    else:
        states = getattr(attention, f"{which}_proj")(hidden)
    heads: Tensor = states.reshape(*states.shape[:-1], -1, width)
    norm = getattr(attention, f"{which}_norm", None)
    return (heads if norm is None else norm(heads)).transpose(1, 2)
