"""Less memory while the long prompt runs: activations in pieces, and nothing kept that is not read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as every_module

from assay.methods.gemfilter.adapter.decoder import decoder_of, layers_of
from assay.networks.pretrained import text_config

# Decoders whose forward is known not to come back to the embedded prompt after the first layer.
_FORGETFUL = ("LlamaModel", "MistralModel", "Qwen2Model", "Qwen3Model", "Phi3Model")


@contextmanager
def embedding_released(model: nn.Module) -> Iterator[None]:
    """Give back the embedded prompt once the first layer has read it. The model's forward keeps its name for the whole
    run, which at 120,000 tokens of width 4,096 is a GiB that nothing reads. Nothing is given back where the decoder is
    not known, where the embedding is not a plain table, or where anyone else may hold the tensor."""
    decoder: Any = decoder_of(model)
    if not _forgetful(decoder) or _watched(decoder):
        yield
        return
    embedding, first = decoder.get_input_embeddings(), decoder.layers[0]
    embedded: list[Tensor] = []

    def release(_: nn.Module, __: Any, output: Any) -> None:
        after = output[0] if isinstance(output, tuple) else output
        storage = embedded.pop().untyped_storage()
        if storage.data_ptr() != after.untyped_storage().data_ptr():
            storage.resize_(0)

    handles = [
        embedding.register_forward_hook(lambda _, __, output: embedded.append(output)),
        first.register_forward_hook(release),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _forgetful(decoder: Any) -> bool:
    """A subclass, or a table that hands out a tensor of its own, may read the embedded prompt again."""
    kind = type(decoder)
    known = kind.__name__ in _FORGETFUL and kind.__module__.startswith("transformers.models.")
    return known and "forward" not in vars(decoder) and type(decoder.get_input_embeddings()) is nn.Embedding


def _watched(decoder: Any) -> bool:
    """Whether somebody's hook sees the tensor: torch's, on a module or on all, or accelerate's, which replace
    ``forward``."""
    first = decoder.layers[0]
    for module in (decoder.get_input_embeddings(), decoder.rotary_emb, first, first.input_layernorm):
        if module._forward_hooks or module._forward_pre_hooks or "forward" in vars(module):
            return True
    return bool(every_module._global_forward_hooks or every_module._global_forward_pre_hooks)


@contextmanager
def rotation_kept(model: nn.Module) -> Iterator[None]:
    """Rotations that grow with the longest prompt (dynamic NTK) are afterwards as they were before: the short pass that
    follows is not to turn by a long one's angles."""
    turning = [module for module in decoder_of(model).modules() if hasattr(module, "max_seq_len_cached")]
    before = [
        ({name: value for name, value in vars(module).items() if name[0] != "_"}, dict(module._buffers))
        for module in turning
    ]
    try:
        yield
    finally:
        for module, (attributes, buffers) in zip(turning, before, strict=True):
            vars(module).update(attributes)
            module._buffers.update(buffers)


@contextmanager
def chunked_mlp(model: nn.Module, size: int | None, below: int) -> Iterator[None]:
    """Run the MLPs of the layers below ``below`` on ``size`` tokens at a time: the intermediate activation, several
    times the hidden width, then never exists for the whole prompt."""
    if size is None:
        yield
        return
    mlps: list[Any] = [layer.mlp for layer in layers_of(model)[:below] if hasattr(layer, "mlp")]
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


def sequence_bytes(model: nn.Module, length: int) -> int:
    """About what the activations of one sequence take at the widest place of a layer: some copies of its hidden states,
    and an MLP's; with eager attention also the square of its logits, twice and once in float32."""
    config: Any = text_config(model)
    hidden = int(config.hidden_size)
    wide = getattr(config, "intermediate_size", None)
    wide = max(wide) if isinstance(wide, (list, tuple)) else wide or 4 * hidden
    item = next(model.parameters()).element_size()
    token = item * (6 * hidden + 3 * int(wide))
    if (getattr(config, "_attn_implementation", None) or "eager") == "eager":
        token += (2 * item + 4) * int(config.num_attention_heads) * length
    return token * length
