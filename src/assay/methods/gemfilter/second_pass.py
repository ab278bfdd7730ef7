"""Pass 2: ordinary generation on the tokens that were kept, for callers who count in the whole prompt's tokens."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from assay.methods.gemfilter.adapter import added_by_the_caller, positions_of, refuse_a_streamer, turned_off
from assay.methods.gemfilter.cautions import no_room
from assay.methods.gemfilter.prompts import prompt_of, tokens_alone
from assay.methods.gemfilter.selection import Selection

if TYPE_CHECKING:
    from assay.methods.gemfilter.filter import GemFilter


def answer_from(model: Any, selection: Selection, input_ids: Tensor, **kwargs: Any) -> Any:
    """Generation from the kept tokens; what comes back has the whole prompt in front.

    A cache belongs to the kept tokens and not to these sequences: it is handed out as ``kept_cache``, and
    ``past_key_values`` is None unless everything was kept."""
    if not hasattr(model, "generate"):
        raise ValueError(
            f"{type(model).__name__} has no head and cannot answer: select with it, and give the kept tokens to a "
            "whole model"
        )
    kept = selection.input_ids.shape[1]
    dropped = input_ids.shape[1] - kept
    kwargs = _without_dropped(kwargs, dropped, input_ids.shape[1], model.generation_config)
    if wrong := no_room(model, kept, _new_tokens(kwargs, kept, model.generation_config)):
        warnings.warn(wrong, stacklevel=4)
    made = model.generate(input_ids=selection.input_ids, attention_mask=selection.attention_mask, **kwargs)
    bare = isinstance(made, Tensor)
    sequences = made if bare else made.sequences
    copies = sequences.shape[0] // len(input_ids)
    whole = input_ids.repeat_interleave(copies, dim=0).to(sequences.device)
    sequences = torch.cat([whole, sequences[:, kept:]], dim=1)
    if bare:
        return sequences
    cache = made.get("past_key_values")
    changes = {"sequences": sequences, "past_key_values": None if dropped else cache}
    made = type(made)(**{**made, **changes})
    made.kept_cache = cache
    return made


def _without_dropped(kwargs: dict[str, Any], dropped: int, whole: int, usual: Any) -> dict[str, Any]:
    """``max_length`` and ``min_length`` count prompt and answer: shorten them by the tokens that were dropped, wherever
    they stand: in the call, in its configuration, or in the model's own. Counts of new tokens go before them."""
    kwargs = dict(kwargs)
    for name, counted in (("max_length", "max_new_tokens"), ("min_length", "min_new_tokens")):
        length = _said(kwargs, name, usual)
        if length is None or _said(kwargs, counted, usual) is not None:
            continue
        if name == "max_length" and length <= whole:
            raise ValueError(
                f"max_length counts the prompt, too: {length} leaves no room for an answer behind its {whole} tokens; "
                "max_new_tokens counts the answer alone"
            )
        length = max(0, length - dropped)
        if kwargs.get(name) is not None:
            kwargs[name] = length
        else:
            config = copy.deepcopy(kwargs.get("generation_config") or usual)
            setattr(config, name, length)
            kwargs["generation_config"] = config
    return kwargs


def _said(kwargs: dict[str, Any], name: str, usual: Any) -> Any:
    """What holds of an option: the call's word, else its configuration's, else the model's own."""
    words = kwargs.get(name), getattr(kwargs.get("generation_config"), name, None), getattr(usual, name, None)
    return next((word for word in words if word is not None), None)


def _new_tokens(kwargs: dict[str, Any], kept: int, usual: Any) -> int:
    """How long the answer behind the kept tokens may become, 0 where nothing says it."""
    new, length = (_said(kwargs, name, usual) for name in ("max_new_tokens", "max_length"))
    return max(0, (length or 0) - kept) if new is None else int(new)


def decode_for(
    method: GemFilter,
    model: Any,
    input_ids: Tensor,
    *,
    logits_processor: Any = None,
    stopping_criteria: Any = None,
    generation_config: Any = None,
    **prepared: Any,
) -> Any:
    """Stand in for the decoding loop of ``model.generate``, which has prepared everything for the whole prompt.

    Copies of a prompt for beams are taken back, lengths become those that the caller asked for, and of processors and
    criteria only the caller's own go on: generation makes the others again, for the kept tokens."""
    if method.layer == "auto":
        raise ValueError(
            "layer='auto' needs the tokenizer, which custom_generate does not get: use gem.resolved(model, tokenizer)"
        )
    cache = prepared.pop("past_key_values", None)
    if cache is not None and cache.get_seq_length() > 0:
        raise ValueError("GemFilter answers from a fresh cache: do not pass past_key_values")
    refuse_a_streamer(method)
    places, mask = prepared.pop("position_ids", None), prepared.pop("attention_mask", None)
    rest = tokens_alone(prepared)
    config = copy.deepcopy(generation_config)
    copies = max(config.num_beams or 1, config.num_return_sequences or 1)
    ids = input_ids[::copies]
    mask = torch.ones_like(ids) if mask is None else mask[::copies]
    if places is not None and bool(((places[..., ::copies, :] != positions_of(mask)) & mask.bool()).any()):
        raise ValueError("a prompt is read as tokens alone, at positions of its own: do not pass position_ids")
    for name, counted in (("max_length", "max_new_tokens"), ("min_length", "min_new_tokens")):
        if getattr(config, counted) is not None:
            setattr(config, name, None)
    processors, criteria = added_by_the_caller(model, generation_config, ids, logits_processor, stopping_criteria)
    rest = {name: value for name, value in rest.items() if name not in ("use_cache", "logits_to_keep")}
    prompt = prompt_of(model, ids, attention_mask=mask)
    selection = method.select(model, ids, attention_mask=mask)
    options = {"generation_config": config, "logits_processor": processors, "stopping_criteria": criteria}
    options |= turned_off(model, config)
    return answer_from(model, selection, prompt.input_ids, **options, **rest)
