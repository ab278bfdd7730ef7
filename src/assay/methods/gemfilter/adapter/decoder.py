"""Where a decoder keeps its layers, what it must be to be read, and how its queries and keys are projected."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from assay.networks.pretrained import text_config

# Attention classes whose projections are known by name; any other goes through the attention interface.
_SEPARATE = ("LlamaAttention", "MistralAttention", "Qwen2Attention", "Qwen3Attention")
_FUSED = ("Phi3Attention",)


@dataclass(frozen=True)
class Projected:
    """Rotated queries (batch, heads, rows, width) and keys (batch, kv_heads, n, width) of one layer, with what its
    attention does to their products."""

    queries: Tensor
    keys: Tensor
    scaling: float
    softcap: float | None = None

    def of(self, row: int) -> Projected:
        """One row of the batch, without its dimension."""
        return Projected(self.queries[row], self.keys[row], self.scaling, self.softcap)


def decoder_of(model: nn.Module) -> nn.Module:
    """The stack of decoder layers inside a causal language model, or a sentence that says why there is none."""
    both = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    decoder = model.get_decoder() if hasattr(model, "get_decoder") and not both else None  # type: ignore[operator]
    layers = getattr(decoder, "layers", None)
    if layers is None or not all(hasattr(layer, "self_attn") for layer in layers):
        raise ValueError(
            f"{type(model).__name__} is not a decoder-only Hugging Face language model: queries and keys are read from "
            "get_decoder().layers[i].self_attn"
        )
    assert isinstance(decoder, nn.Module)
    return decoder


def attentions_of(model: nn.Module) -> list[nn.Module]:
    """The attention modules of all layers, from the first."""
    return [layer.self_attn for layer in decoder_of(model).layers]  # type: ignore[union-attr]


def check_usable(model: nn.Module) -> None:
    """Refuse models on which a selection would be wrong rather than slow."""
    decoder_of(model)
    places = set((getattr(model, "hf_device_map", None) or {}).values())
    places = places if len(places) > 1 else {parameter.device for parameter in model.parameters()}
    names = ", ".join(sorted(map(str, places)))
    split = any(type(parameter.data).__name__ == "DTensor" for parameter in model.parameters())
    for wrong, why in (
        (model.training and _drops(model), "is in training mode with dropout: call model.eval() first"),
        (len(places) > 1, f"is spread over several devices ({names}); load it on one device"),
        (split, "has its weights split over several processes (tensor parallel); load it whole"),
    ):
        if wrong:
            raise ValueError(f"the model {why}")


def _drops(model: nn.Module) -> bool:
    config: Any = model.config
    rates = [
        getattr(config, name, 0.0) for name in ("attention_dropout", "resid_pdrop", "hidden_dropout", "embd_pdrop")
    ]
    modules = [module.p for module in model.modules() if isinstance(module, nn.Dropout)]
    return any(float(rate or 0.0) > 0 for rate in [*rates, *modules])


def check_layer(model: nn.Module, layer: int) -> None:
    """A filter layer must exist."""
    count = len(attentions_of(model))
    if not 0 <= layer < count:
        raise ValueError(f"layer must lie between 0 and {count - 1} for this model of {count} layers, not {layer}")


def sliding_window(model: nn.Module, layer: int) -> int | None:
    """The window of a layer that attends to the last tokens only, None where it attends to all."""
    config = text_config(model)
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        return window if kinds[layer] == "sliding_attention" else None
    return window if window and getattr(config, "use_sliding_window", True) else None


def positions_of(mask: Tensor) -> Tensor:
    """Position ids that count real tokens only, so that padding shifts nothing."""
    return (mask.long().cumsum(dim=-1) - 1).clamp_min(0)


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
