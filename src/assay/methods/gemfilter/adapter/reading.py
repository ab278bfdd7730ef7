"""One forward pass that stops at the filter layer and hands over queries and keys on its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from assay.methods._precision import uncached_casts
from assay.methods.gemfilter.adapter.decoder import attention_at, decoder_of, positions_of, uneven
from assay.methods.gemfilter.adapter.interface import attention_seen
from assay.methods.gemfilter.adapter.memory import chunked_mlp, embedding_released, rotation_kept
from assay.methods.gemfilter.adapter.projecting import Projected, known_family, project


class Stop(Exception):
    """Raised when the filter layer's projections are in hand, so that nothing above them runs."""


Take = Callable[[int, Projected], None]


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
    attentions = attention_at(model)
    by_name = all(known_family(attentions[layer]) for layer in layers) if interface is None else not interface
    reader = _by_name if by_name else _by_interface
    arguments: dict[str, Any] = {"input_ids": input_ids, "use_cache": False}

    def even(layer: int, projected: Projected) -> None:
        if projected.keys.shape[-2] != input_ids.shape[1]:
            raise ValueError(f"the model {uneven(type(attentions[layer]).__name__)}")
        take(layer, projected)

    if mask is not None:
        arguments |= {"attention_mask": mask, "position_ids": positions_of(mask)}
    with (
        uncached_casts(),
        # First of all hooks, while every hook that it finds is somebody else's.
        embedding_released(model),
        rotation_kept(model),
        reader(model, list(layers), rows, even),
        chunked_mlp(model, mlp_chunk, max(layers)),
    ):
        try:
            decoder_of(model)(**arguments)
        except Stop:
            return
    kind = type(attentions[max(layers)]).__name__
    raise ValueError(
        f"layer {max(layers)} was never reached: its {kind} does not use transformers' attention interface"
    )


@contextmanager
def _by_name(model: nn.Module, layers: list[int], rows: Tensor | None, take: Take) -> Iterator[None]:
    """Hooks before the attention of the wanted layers, which project by themselves."""

    def hook(layer: int) -> Callable[..., None]:
        def read(attention: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            hidden = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
            take(layer, project(attention, hidden, kwargs["position_embeddings"], rows))
            if layer == max(layers):
                raise Stop

        return read

    attentions = attention_at(model)
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
    """For one forward pass, through the attention interface."""

    def see(layer: int, projected: Projected) -> None:
        if layer in layers:
            wanted = projected if rows is None else replace(projected, queries=_rows_of(projected.queries, rows))
            take(layer, wanted)
            if layer == max(layers):
                raise Stop

    with attention_seen(model, see):
        yield


def _rows_of(query: Tensor, rows: Tensor) -> Tensor:
    return query.gather(2, rows[:, None, :, None].expand(-1, query.shape[1], -1, query.shape[3]))
