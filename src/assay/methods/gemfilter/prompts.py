"""What people hand over, made uniform: token ids and a mask of real tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from assay.networks.pretrained import text_config


@dataclass(frozen=True)
class Prompt:
    """Token ids (batch, n) and the mask of real tokens, None when every token is real."""

    input_ids: Tensor
    mask: Tensor | None = None

    @property
    def batch(self) -> int:
        return self.input_ids.shape[0]

    @property
    def longest(self) -> int:
        """Real tokens of the longest prompt."""
        return self.input_ids.shape[1] if self.mask is None else int(self.mask.sum(dim=1).max())

    @property
    def padding(self) -> list[int] | None:
        """How many tokens on the left of every row are none, for what reads prompts that all end at the last place."""
        if self.mask is None:
            return None
        if bool((self.mask[:, :-1] & ~self.mask[:, 1:]).any()):
            raise ValueError("a compressed cache takes padding on the left only: set tokenizer.padding_side = 'left'")
        return [int(count) for count in (~self.mask).sum(dim=1)]

    def real(self, row: int) -> Tensor:
        """The positions of a row's real tokens, in order."""
        if self.mask is None:
            return torch.arange(self.input_ids.shape[1], device=self.input_ids.device)
        return self.mask[row].nonzero().squeeze(1)


_TOKENS = ("input_ids", "attention_mask")
# Tensors that say nothing about single tokens of the prompt.
_HARMLESS = ("negative_prompt_ids", "negative_prompt_attention_mask", "logits_to_keep")

# What generation makes of other inputs before a decoding loop sees them.
_ENCODED = {"mm_encoder_outputs": "pixel_values"}


def parts_of(inputs: Any, kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tokens of a call with their mask, and everything else: what a tokenizer returns may hold more than tokens."""
    given = dict(inputs) if isinstance(inputs, Mapping) else {} if inputs is None else {"input_ids": inputs}
    if given.get("input_ids") is not None and kwargs.get("input_ids") is not None:
        raise ValueError("input_ids came twice, as inputs and by name: pass them once")
    given |= kwargs
    return {name: given.pop(name) for name in _TOKENS if name in given}, given


def tokens_alone(others: dict[str, Any]) -> dict[str, Any]:
    """What goes on to generation beside the tokens. Inputs that belong to single tokens, or stand for some, are
    refused, since they would be lost or misplaced; types of tokens that are all 0 say nothing and are left out."""
    others = dict(others)
    for name, why in (("past_key_values", "answers from a fresh cache"), ("inputs_embeds", "gathers tokens")):
        if others.get(name) is not None:
            raise ValueError(f"GemFilter {why}: do not pass {name}")
    kinds = others.get("token_type_ids")
    if kinds is not None and not bool(torch.as_tensor(kinds).any()):
        del others["token_type_ids"]
    for name, value in others.items():
        if name not in _HARMLESS and (_holds_tensors(value) or name == "token_type_ids"):
            said = _ENCODED.get(name, name)
            raise ValueError(f"a prompt is read as tokens alone, at positions of its own: do not pass {said}")
    return others


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, (Mapping, list, tuple)):
        return any(map(_holds_tensors, value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, Tensor)


def prompt_of(model: nn.Module, inputs: Any = None, **given: Any) -> Prompt:
    """A prompt from a tensor of ids, a list of ids, or a mapping as tokenizers return it; on the model's device."""
    given, others = parts_of(inputs, given)
    if given.get("input_ids") is None:
        raise ValueError("GemFilter needs input_ids: there are no tokens to gather from inputs_embeds alone")
    left = [name for name, value in tokens_alone(others).items() if value is not None and name not in _HARMLESS]
    if left:
        raise ValueError(f"a prompt is read as tokens alone, and {', '.join(left)} would be lost: do not pass that")
    device = next(model.parameters()).device
    ids = _as_tensor(given["input_ids"], device)
    ids = ids[None] if ids.dim() == 1 else ids
    if ids.dim() != 2 or ids.is_floating_point() or ids.numel() == 0:
        what = f"{ids.dtype} {tuple(ids.shape)}"
        raise ValueError(f"input_ids must be integers, (tokens,) or (batch, tokens), and not empty, not {what}")
    mask = given.get("attention_mask")
    if mask is None:
        _refuse_hidden_padding(model, ids)
        return Prompt(ids)
    mask = _as_tensor(mask, device).bool()
    mask = mask[None] if mask.dim() == 1 else mask
    if mask.shape != ids.shape:
        raise ValueError(f"attention_mask has shape {tuple(mask.shape)}, input_ids {tuple(ids.shape)}")
    if not bool(mask.any(dim=1).all()):
        raise ValueError("a prompt of the batch is empty: its attention_mask has no real token")
    return Prompt(ids) if bool(mask.all()) else Prompt(ids, mask)


def _as_tensor(numbers: Any, device: torch.device) -> Tensor:
    try:
        return torch.as_tensor(numbers, device=device)
    except (TypeError, ValueError):
        raise ValueError(
            "input_ids must be integers, (tokens,) or (batch, tokens): give a text to the tokenizer first, and pad "
            "prompts of several lengths"
        ) from None


def _refuse_hidden_padding(model: nn.Module, ids: Tensor) -> None:
    """Without a mask padding would be read as text, and at the end of a prompt its query would score the tokens."""
    config = text_config(model)
    pad, eos, bos = (getattr(config, f"{name}_token_id", None) for name in ("pad", "eos", "bos"))
    others = {bos, *(eos if isinstance(eos, list) else [eos])}
    if pad is not None and pad not in others and bool((ids[:, [0, -1]] == pad).any()):
        raise ValueError("a prompt begins or ends in padding tokens: pass the attention_mask")
