"""A cache that is compressed while the prompt is read, for one method or, after one prefill, for several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from assay.methods._precision import uncached_casts
from assay.methods.gemfilter.adapter import (
    Attended,
    after_attention,
    check_usable,
    compressible,
    positions_of,
    trimmed_cache,
    trimmed_copy,
    untouched_copy,
)
from assay.methods.gemfilter.cautions import warn_too_long
from assay.methods.gemfilter.prompts import Prompt, parts_of, prompt_of, tokens_alone


class Compression(ABC):
    """A rule for which entries of each layer's cache stay after the prefill; decoded tokens are appended."""

    name = "compression"

    def budget(self, length: int) -> int:
        """How many entries of each layer's cache stay after a prompt of ``length`` tokens."""
        return length

    @abstractmethod
    def positions(self, layer: Attended) -> Tensor | None:
        """The entries of a layer that stay, (batch, heads, kept) in rising order; None keeps all. ``heads`` are the
        key-value heads, or the query heads where each is to have keys and values of its own."""

    def finish(self, cache: Any) -> None:
        """Called when the prefill is over and every layer's cache is there."""
        return

    def step(self, layer: Attended) -> None:
        """Called after every layer's attention while decoding."""
        return

    def __call__(self, model: nn.Module, input_ids: Tensor, **_: Any) -> Any:
        """``model.generate(**inputs, custom_generate=...)`` prepares a cache of its own, and would pass over in silence
        what cannot be called."""
        raise ValueError(
            f"{self.name} is no custom_generate, since it needs its own cache: use its generate(model, ...)"
        )

    def generate(self, model: nn.Module, inputs: Any = None, **kwargs: Any) -> Any:
        """Prefill, compress layer by layer as it goes, decode. Takes and returns what ``model.generate`` does."""
        given, kwargs = parts_of(inputs, kwargs)
        check_usable(model)
        prompt = prompt_of(model, **given)
        check_decoding(model, kwargs, prompt.padding)
        kwargs = tokens_alone(kwargs)
        warn_too_long(model, prompt)
        cache = trimmed_cache(model)
        if not any(compressible(layer) for layer in cache.layers):
            raise ValueError("every layer of this model has a sliding window: there is no cache to compress")
        with after_attention(model, cache, _Compressing(self, cache), prompt.padding):
            # Without a mask generate would guess one from the tokens.
            kwargs |= {"attention_mask": _mask_of(prompt), "past_key_values": cache}
            return model.generate(prompt.input_ids, **kwargs)  # type: ignore[operator]


class _Compressing:
    """Tells the prefill of a layer from its decoding steps."""

    def __init__(self, method: Compression, cache: Any) -> None:
        self.method, self.cache = method, cache
        self.last = max((i for i, layer in enumerate(cache.layers) if compressible(layer)), default=-1)

    def __call__(self, layer: Attended) -> None:
        if layer.cache_layer.seen != layer.hidden.shape[1]:
            self.method.step(layer)
            return
        if (kept := self.method.positions(layer)) is not None:
            layer.cache_layer.gather(kept)
        if layer.index == self.last:
            self.method.finish(self.cache)


def _mask_of(prompt: Prompt) -> Tensor:
    return torch.ones_like(prompt.input_ids) if prompt.mask is None else prompt.mask.long()


def check_decoding(model: Any, kwargs: dict[str, Any], padding: Sequence[int] | None = None) -> None:
    """Refuse what a cache with two lengths cannot do."""
    config = kwargs.get("generation_config") or model.generation_config

    def asked(name: str, otherwise: Any = None) -> Any:
        """In the call, else in the configuration that holds for it."""
        value = kwargs[name] if kwargs.get(name) is not None else getattr(config, name, None)
        return otherwise if value is None else value

    scaling = getattr(model.config, "rope_parameters", None) or getattr(model.config, "rope_scaling", None) or {}
    kinds = {scaling.get("rope_type"), scaling.get("type")} if isinstance(scaling, dict) else set()
    others = ("past_key_values", "assistant_model", "prompt_lookup_num_tokens", "prefill_chunk_size", "inputs_embeds")
    for wrong, why in (
        (asked("num_beams", 1) > 1, "does not go with beam search: use num_beams=1"),
        (asked("cache_implementation", "dynamic") != "dynamic", "has a cache_implementation of its own: ask for none"),
        *((asked(name) is not None, f"does not go with {name}") for name in others),
        (asked("use_cache", True) is False, "needs use_cache=True"),
        ("longrope" in kinds, "needs one rotation, and this model changes its own with the length (long RoPE)"),
        (
            padding is not None and "dynamic" in kinds,
            "cannot hold prompts of several lengths of a model that turns all of them by the longest one (dynamic "
            "NTK): pass prompts of one length, or one by one",
        ),
    ):
        if wrong:
            raise ValueError(f"a compressed cache {why}")


@dataclass(frozen=True)
class Prefilled:
    """A prompt that was run once, with one method's cache, ready to decode."""

    method: Compression
    cache: Any
    prompt: Prompt
    first: Tensor

    @property
    def input_ids(self) -> Tensor:
        return self.prompt.input_ids

    def generate(self, model: Any, *, max_new_tokens: int, do_sample: bool = False, **kwargs: Any) -> Tensor:
        """Greedy decoding, as often as you like: the prompt and the new tokens behind it."""
        if do_sample:
            raise ValueError("a shared prefill is decoded greedily: its first token is already chosen")
        ids = torch.cat([self.prompt.input_ids, self.first], dim=1)
        ends = model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        ended = sum((self.first == end for end in ends if end is not None), torch.zeros_like(self.first)).bool()
        if bool(ended.any()) and len(ids) > 1:
            raise ValueError("a prompt of the batch ends at once: share prefills of one prompt at a time")
        if max_new_tokens == 1 or bool(ended.any()):
            return ids
        cache = untouched_copy(model, self.cache)
        with after_attention(model, cache, self.method.step, self.prompt.padding):
            made: Tensor = model.generate(
                ids,
                attention_mask=torch.cat([_mask_of(self.prompt), torch.ones_like(self.first)], dim=1),
                past_key_values=cache,
                max_new_tokens=max_new_tokens - 1,
                do_sample=False,
                **kwargs,
            )
        return made


@torch.no_grad()
def share_prefill(model: Any, inputs: Any, methods: Sequence[Compression]) -> list[Prefilled]:
    """Run the prompt once and give each method a cache of its own. Needs the memory of the full cache and of every
    compressed one; a method that runs alone compresses layer by layer instead."""
    for method in methods:
        if not isinstance(method, Compression):
            raise ValueError(
                f"{getattr(method, 'name', method)} compresses no cache and cannot share a prefill: OneRun(filter) "
                "keeps what a filter selects, and GemFilter itself answers with generate"
            )
    check_usable(model)
    prompt = prompt_of(model, inputs)
    check_decoding(model, {}, prompt.padding)
    warn_too_long(model, prompt, stacklevel=4)  # behind no_grad
    mask = _mask_of(prompt)
    where = {} if prompt.mask is None else {"attention_mask": mask, "position_ids": positions_of(mask)}
    full = trimmed_cache(model)
    kept: dict[tuple[int, int], Tensor] = {}
    totals: dict[tuple[int, int], Tensor] = {}

    def look(layer: Attended) -> None:
        for which, method in enumerate(methods):
            if (index := method.positions(layer)) is not None:
                kept[which, layer.index] = index
            if "totals" in vars(layer.cache_layer):
                totals[which, layer.index] = vars(layer.cache_layer).pop("totals")

    with uncached_casts(), after_attention(model, full, look, prompt.padding):
        logits = model(prompt.input_ids, past_key_values=full, use_cache=True, logits_to_keep=1, **where).logits
    first = logits[:, -1].argmax(dim=-1, keepdim=True)
    made = []
    for which, method in enumerate(methods):
        cache = trimmed_copy(model, full, lambda layer, which=which: kept.get((which, layer)))  # type: ignore[misc]
        for layer, cache_layer in enumerate(cache.layers):
            if (which, layer) in totals:
                cache_layer.totals = totals[which, layer]
        method.finish(cache)
        made.append(Prefilled(method, cache, prompt, first))
    return made
