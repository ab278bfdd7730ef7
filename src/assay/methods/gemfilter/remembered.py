"""Measured layers on disk: choices, and what was measured of a choice that was interrupted."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from assay.methods.gemfilter.adapter import layers_of
from assay.networks.pretrained import cache_folder, text_config

# What a configuration says of the whole model, of its file or of generation.
_NOT_OF_THE_LAYERS = (
    "num_hidden_layers",
    "n_layer",
    "layer_types",
    "architectures",
    "dtype",
    "transformers_version",
    "_name_or_path",
    "use_cache",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "tie_word_embeddings",
    "is_llama_config",
)


class Remembered:
    """One small file per model, tokenizer and settings, and beside it, until the choice is made, a line per prompt
    that was measured. What cannot be read or written is measured again."""

    def __init__(self, model: nn.Module, tokenizer: Any, settings: dict[str, Any], *, use: bool = True) -> None:
        self.use = use
        text = json.dumps([fingerprint(model), _words(tokenizer), settings], sort_keys=True, default=str)
        name = hashlib.blake2b(text.encode(), digest_size=10).hexdigest()
        self.path: Path = cache_folder() / "filter_layers" / f"{name}.json"
        self.lines = self.path.with_suffix(".jsonl")

    def read(self) -> dict[str, Any] | None:
        """The choice, None when there is none."""
        try:
            made = json.loads(self.path.read_text()) if self.use else None
        except (OSError, ValueError):
            return None
        return made if isinstance(made, dict) else None

    def write(self, choice: dict[str, Any]) -> None:
        """Replaces what was noted on the way."""
        if not self.use:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(choice))
            self.lines.unlink(missing_ok=True)
        except OSError:
            return

    def noted(self) -> dict[str, Any]:
        """What was measured before an interruption, by the name of the prompt."""
        found = {}
        try:
            for line in self.lines.read_text().splitlines() if self.use else []:
                name, value = json.loads(line)
                found[name] = value
        except (OSError, ValueError, TypeError):  # a line that was cut off is the last one
            pass
        return found

    def note(self, name: str, value: Any) -> None:
        """One more prompt that need not be measured again."""
        if not self.use:
            return
        try:
            self.lines.parent.mkdir(parents=True, exist_ok=True)
            with self.lines.open("a") as file:
                file.write(json.dumps([name, value]) + "\n")
        except OSError:
            return


def fingerprint(model: nn.Module, layers: int | None = None) -> str:
    """Tells models apart: configuration, and numbers from all over every parameter, so that training any part shows.

    With ``layers`` only the embedding and the first so many layers count, so that a model of which no more was loaded
    is the same."""
    if layers is not None:
        return _fingerprint_below(model, layers)
    config: Any = model.config
    digest = hashlib.blake2b(config.to_json_string(use_diff=False).encode(), digest_size=12)
    for name, parameter in model.named_parameters():
        digest.update(name.encode() + _sample(parameter))
    return digest.hexdigest()


def _fingerprint_below(model: nn.Module, layers: int) -> str:
    """Weights, and of the configuration the numbers that say how they are used."""
    config = text_config(model).to_dict()
    kinds = (config.get("layer_types") or [])[:layers]
    told = {name: value for name, value in config.items() if name not in _NOT_OF_THE_LAYERS}
    digest = hashlib.blake2b(json.dumps([told, kinds], sort_keys=True, default=str).encode(), digest_size=12)
    stack = layers_of(model)[:layers]
    for part in (model.get_input_embeddings(), *stack):  # type: ignore[operator]
        for name, parameter in part.named_parameters():
            digest.update(name.encode() + _sample(parameter))
    return digest.hexdigest()


def _sample(parameter: Any) -> bytes:
    """Numbers from all over a parameter. One that is packed (quantized) is unpacked first, and where that cannot be
    done its kind and shape have to do."""
    for packed in (False, True):
        try:
            flat = (parameter.dequantize() if packed else parameter).detach().flatten()
            places = torch.linspace(0, max(len(flat) - 1, 0), min(len(flat), 64), dtype=torch.float64).round().long()
            return bytes(flat[places.to(flat.device)].float().cpu().numpy().tobytes())
        except (AttributeError, NotImplementedError, RuntimeError, TypeError, IndexError):
            continue
    return f"{type(parameter).__name__} {tuple(parameter.shape)}".encode()


def _words(tokenizer: Any) -> str:
    """Tells tokenizers apart: the prompts that measured a layer are made of its tokens."""
    parts = [type(tokenizer).__name__, getattr(tokenizer, "chat_template", None)]
    if hasattr(tokenizer, "get_vocab"):
        parts.append(sorted(tokenizer.get_vocab().items()))
    text = json.dumps(parts, default=str)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
