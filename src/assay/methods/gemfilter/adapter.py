"""The private touches of transformers: where a decoder keeps its layers, and how to read queries and keys from it.
The cache's are in ``cache_adapter``.

Nothing is patched for good. Hooks, registry entries and replaced forwards live inside context managers, and are gone
when these end, however they end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

# Attention classes whose projections are known by name; any other goes through the attention interface.
_SEPARATE = ("LlamaAttention", "MistralAttention", "Qwen2Attention", "Qwen3Attention")
_FUSED = ("Phi3Attention",)
_PROBE = "assay_probe"


@dataclass(frozen=True)
class Projected:
    """Rotated queries (batch, heads, rows, width) and keys (batch, kv_heads, n, width) of one layer."""

    queries: Tensor
    keys: Tensor
    scaling: float


class _Stop(Exception):
    """Raised when the filter layer's projections are in hand, so that nothing above them runs."""


Take = Callable[[int, Projected], None]


def decoder_of(model: nn.Module) -> nn.Module:
    """The stack of decoder layers inside a causal language model, or a sentence that says why there is none."""
    config = getattr(model, "config", None)
    if config is None or not hasattr(model, "get_decoder"):
        raise ValueError(f"{type(model).__name__} is not a Hugging Face language model: it has no get_decoder()")
    if getattr(config, "is_encoder_decoder", False):
        raise ValueError(f"{type(model).__name__} is an encoder-decoder model; GemFilter needs a decoder-only one")
    decoder = model.get_decoder()  # type: ignore[operator]
    layers = getattr(decoder, "layers", None)
    if layers is None or not all(hasattr(layer, "self_attn") for layer in layers):
        raise ValueError(f"{type(model).__name__} has no layers[i].self_attn to read queries and keys from")
    assert isinstance(decoder, nn.Module)
    return decoder


def attentions_of(model: nn.Module) -> list[nn.Module]:
    """The attention modules of all layers, from the first."""
    return [layer.self_attn for layer in decoder_of(model).layers]  # type: ignore[union-attr]


def check_usable(model: nn.Module) -> None:
    """Refuse models on which a selection would be wrong rather than slow."""
    decoder_of(model)
    if model.training and _drops(model):
        raise ValueError("the model is in training mode with dropout: call model.eval() first")
    places = set((getattr(model, "hf_device_map", None) or {}).values())
    if len(places) > 1:
        names = ", ".join(sorted(map(str, places)))
        raise ValueError(f"the model is spread over several devices ({names}); load it on one device")


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
    config: Any = model.config
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


@torch.no_grad()
def read_layers(
    model: nn.Module,
    input_ids: Tensor,
    mask: Tensor | None,
    layers: Sequence[int],
    rows: Tensor | None,
    take: Take,
    *,
    mlp_chunk: int | None = None,
    interface: bool | None = None,
) -> None:
    """Run the prompt up to the last of ``layers`` and hand every one's queries and keys to ``take``.

    ``rows`` (batch, r) are the positions whose queries are wanted, None wants all. Of the last layer only the
    projections run. ``interface`` forces or forbids the way through the attention interface, which serves architectures
    that are not known by name.
    """
    attentions = attentions_of(model)
    by_name = all(known_family(attentions[layer]) for layer in layers) if interface is None else not interface
    reader = _by_name if by_name else _by_interface
    arguments: dict[str, Any] = {"input_ids": input_ids, "use_cache": False}
    if mask is not None:
        arguments |= {"attention_mask": mask, "position_ids": positions_of(mask)}
    with reader(model, list(layers), rows, take), chunked_mlp(model, mlp_chunk, max(layers)):
        try:
            decoder_of(model)(**arguments)
        except _Stop:
            return
    raise RuntimeError(f"layer {max(layers)} was never reached")


@contextmanager
def _by_name(model: nn.Module, layers: list[int], rows: Tensor | None, take: Take) -> Iterator[None]:
    """Hooks before the attention of the wanted layers, which project by themselves."""

    def hook(layer: int) -> Callable[..., None]:
        def read(attention: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            hidden = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
            take(layer, project(attention, hidden, kwargs["position_embeddings"], rows))
            if layer == max(layers):
                raise _Stop

        return read

    attentions = attentions_of(model)
    handles = []
    try:
        for layer in layers:
            handles.append(attentions[layer].register_forward_pre_hook(hook(layer), with_kwargs=True))  # noqa: PERF401
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _by_interface(model: nn.Module, layers: list[int], rows: Tensor | None, take: Take) -> Iterator[None]:
    """An attention function of our own, for one forward pass: it sees queries and keys after everything the
    architecture does to them, and hands on to the function that the model uses."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    attentions = attentions_of(model)
    index = {id(attention): i for i, attention in enumerate(attentions)}
    config: Any = attentions[0].config
    usual = config._attn_implementation or "eager"

    def probe(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, **kwargs: Any) -> Any:
        layer = index[id(module)]
        if layer in layers:
            wanted = query if rows is None else _rows_of(query, rows)
            scaling = kwargs.get("scaling") or query.shape[-1] ** -0.5
            take(layer, Projected(wanted, key, float(scaling)))
            if layer == max(layers):
                raise _Stop
        eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
        return ALL_ATTENTION_FUNCTIONS.get_interface(usual, eager)(module, query, key, value, mask, **kwargs)

    functions, masks = type(ALL_ATTENTION_FUNCTIONS), type(ALL_MASK_ATTENTION_FUNCTIONS)
    functions.register(_PROBE, probe)
    masks.register(_PROBE, ALL_MASK_ATTENTION_FUNCTIONS[usual])
    config._attn_implementation = _PROBE
    try:
        yield
    finally:
        config._attn_implementation = usual
        functions._global_mapping.pop(_PROBE, None)
        masks._global_mapping.pop(_PROBE, None)


def _rows_of(query: Tensor, rows: Tensor) -> Tensor:
    return query.gather(2, rows[:, None, :, None].expand(-1, query.shape[1], -1, query.shape[3]))


@contextmanager
def chunked_mlp(model: nn.Module, size: int | None, below: int) -> Iterator[None]:
    """Run the MLPs of the layers below ``below`` on ``size`` tokens at a time: the intermediate activation, several
    times the hidden width, then never exists for the whole prompt."""
    if size is None:
        yield
        return
    mlps = [layer.mlp for layer in decoder_of(model).layers[:below] if hasattr(layer, "mlp")]  # type: ignore[index]
    # Mixtures of experts return more than a tensor, and route tokens: they are left alone.
    mlps = [mlp for mlp in mlps if type(mlp).__name__.endswith("MLP")]
    before = [mlp.__dict__.get("forward") for mlp in mlps]
    try:
        for mlp in mlps:
            mlp.forward = _in_chunks(mlp.forward, size)
        yield
    finally:
        for mlp, forward in zip(mlps, before, strict=True):
            if forward is None:
                mlp.__dict__.pop("forward", None)
            else:
                mlp.forward = forward


def _in_chunks(forward: Callable[[Tensor], Tensor], size: int) -> Callable[[Tensor], Tensor]:
    def chunked(hidden: Tensor) -> Tensor:
        if hidden.shape[1] <= size:
            return forward(hidden)
        out = torch.empty_like(hidden)
        for start in range(0, hidden.shape[1], size):
            out[:, start : start + size] = forward(hidden[:, start : start + size])
        return out

    return chunked
