"""Where a decoder keeps its layers and their attention, and what it must be to be read."""

from __future__ import annotations

import inspect
from typing import Any

from torch import Tensor, nn

from assay.networks.pretrained import text_config

_STACKS = ("layers", "h", "blocks")
_ATTENTIONS = ("self_attn", "attn", "attention", "self_attention", "mixer")


def decoder_of(model: nn.Module) -> nn.Module:
    """The stack of decoder layers inside a causal language model, or a sentence that says why there is none."""
    both = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    found = model.get_decoder() if hasattr(model, "get_decoder") and not both else None  # type: ignore[operator]
    # A model whose head is called decoder (ModernBERT's) answers with that.
    base = getattr(model, "base_model", None) if hasattr(model, "generate") and not both else None
    for decoder in (found, getattr(found, "model", None), base):
        if isinstance(decoder, nn.Module) and any(hasattr(decoder, name) for name in _STACKS):
            return decoder
    raise ValueError(
        f"{type(model).__name__} is not a decoder-only Hugging Face language model: it has no stack of layers to read"
    )


def layers_of(model: nn.Module) -> list[nn.Module]:
    """The decoder's layers, from the first."""
    decoder = decoder_of(model)
    return list(next(getattr(decoder, name) for name in _STACKS if hasattr(decoder, name)))


def attention_at(model: nn.Module) -> dict[int, nn.Module]:
    """By its layer, every attention whose queries and keys can be read; layers of another kind have none."""
    found, others = {}, []
    for index, layer in enumerate(layers_of(model)):
        parts = [part for name in _ATTENTIONS if (part := getattr(layer, name, None)) is not None]
        readable = [part for part in parts if _attends_through_the_interface(part)]
        if readable:
            found[index] = readable[0]
        others += parts
    if not found:
        raise ValueError(f"the queries and keys of {type(model).__name__} cannot be read: {_why(model, others)}")
    return found


def _why(model: nn.Module, parts: list[nn.Module]) -> str:
    """Why no attention is read: one that stands elsewhere in the layers, one with code of its own, or none."""
    inner = [part for layer in layers_of(model) for part in layer.modules()]
    if elsewhere := _kinds([part for part in inner if _attends_through_the_interface(part)]):
        return f"its layers keep {elsewhere} in a place that is not known, or several of them"
    kinds = _kinds(parts) or _kinds([part for part in inner if "Attention" in type(part).__name__])
    return f"{kinds} does not go through transformers' attention interface" if kinds else "its layers have none"


def _kinds(parts: list[nn.Module]) -> str:
    return ", ".join(sorted({type(part).__name__ for part in parts}))


def attentions_of(model: nn.Module) -> list[nn.Module]:
    """The attention modules of all layers, from the first, for what needs one in every layer."""
    found, count = attention_at(model), len(layers_of(model))
    if len(found) < count:
        missing = ", ".join(str(layer) for layer in range(count) if layer not in found)
        raise ValueError(f"the layers {missing} of {type(model).__name__} have no attention that can be read")
    return list(found.values())


def _attends_through_the_interface(part: nn.Module) -> bool:
    """Read off the code of its forward, which names the registry that it takes its function from."""
    code = getattr(inspect.unwrap(type(part).forward), "__code__", None)
    return code is not None and "ALL_ATTENTION_FUNCTIONS" in code.co_names


def check_usable(model: nn.Module) -> None:
    """Refuse models on which a selection would be wrong rather than slow."""
    attended = attention_at(model)
    places = set((getattr(model, "hf_device_map", None) or {}).values())
    places = places if len(places) > 1 else {parameter.device for parameter in model.parameters()}
    names = ", ".join(sorted(map(str, places)))
    indexed = sorted({type(one).__name__ for one in attended.values() if hasattr(one, "indexer")})
    more = sorted({type(one).__name__ for one in attended.values() if getattr(one, "compressor", None) is not None})
    split = any(type(parameter.data).__name__ == "DTensor" for parameter in model.parameters())
    for wrong, why in (
        (model.training and _drops(model), "is in training mode with dropout: call model.eval() first"),
        (names == "meta", "has no weights in memory (offloaded to disk, or never loaded); load it whole"),
        (bool(indexed), f"attends to what an indexer picks ({', '.join(indexed)}), which no row of attention shows"),
        (bool(more), uneven(*more)),
        (len(places) > 1, f"is spread over several devices ({names}); load it on one device"),
        (split, "has its weights split over several processes (tensor parallel); load it whole"),
    ):
        if wrong:
            raise ValueError(f"the model {why}")


def uneven(*kinds: str) -> str:
    """Why a layer is refused whose keys are not those of the tokens, one each."""
    return f"attends to another number of keys than it reads tokens ({', '.join(kinds)}), so that no score is a token's"


def _drops(model: nn.Module) -> bool:
    config: Any = model.config
    rates = [
        getattr(config, name, 0.0) for name in ("attention_dropout", "resid_pdrop", "hidden_dropout", "embd_pdrop")
    ]
    modules = [module.p for module in model.modules() if isinstance(module, nn.Dropout)]
    return any(float(rate or 0.0) > 0 for rate in [*rates, *modules])


def check_layer(model: nn.Module, layer: int) -> None:
    """A filter layer must exist, and attend."""
    count, attended = len(layers_of(model)), attention_at(model)
    if not 0 <= layer < count:
        raise ValueError(f"layer must lie between 0 and {count - 1} for this model of {count} layers, not {layer}")
    if layer not in attended:
        those = ", ".join(map(str, attended))
        raise ValueError(f"layer {layer} of this model has no attention that can be read: choose one of {those}")


def sliding_window(model: nn.Module, layer: int) -> int | None:
    """The window of a layer that attends to the last tokens only, None where it attends to all."""
    config = text_config(model)
    window = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        near = {"sliding_attention": window, "chunked_attention": getattr(config, "attention_chunk_size", None)}
        return near.get(kinds[layer])
    return window if window and getattr(config, "use_sliding_window", True) else None


def positions_of(mask: Tensor) -> Tensor:
    """Position ids that count real tokens only, so that padding shifts nothing."""
    return (mask.long().cumsum(dim=-1) - 1).clamp_min(0)
