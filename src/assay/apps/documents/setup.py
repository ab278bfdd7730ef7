"""From names and options to a library, models and a retriever."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.apps.documents.library import Library
from assay.apps.documents.retrievers import BM25, Filter, Retriever, SentenceEncoder, framed
from assay.methods.gemfilter import FilterIndex, FolderStore, GemFilter, choose_filter_layer, load_filter
from assay.networks.pretrained import Loaded, cache_folder, context_length, folder_of, load_encoder, load_model

Tell = Callable[[str], None]
#: Layers that were measured on questions about documents, by the rule "window", with the wheel's model.
KNOWN = {"smollm2": 18}
#: How a document is cut, and how many of a question's last rows look at it.
CHUNK, WINDOW = 1024, 32
#: GiB of activations of the chunks that are read together. Their keys and values come on top, one and a half times as
#: much with SmolLM2; more makes the reading no faster on a CPU.
MEMORY = 0.5


def library_of(paths: Sequence[str]) -> Library:
    """The documents of some paths; the texts of PDFs are kept in the cache folder."""
    return Library.of(paths, cache=cache_folder() / "texts")


@dataclass
class Models:
    """Every model once, by name: whole, or the layers that a filter needs."""

    device: str
    tell: Tell
    _whole: dict[str, Loaded] = field(default_factory=dict)

    def whole(self, name: str) -> Loaded:
        if name not in self._whole:
            self.tell(f"loading {name}")
            self._whole[name] = load_model(name, device=self.device)
        return self._whole[name]

    def tokenizer(self, name: str) -> Any:
        if name in self._whole:
            return self._whole[name].tokenizer
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(folder_of(name))


def loaded_once(device: str, *, tell: Tell) -> Models:
    return Models(device, tell)


@dataclass
class StoredFilter(Filter):
    """A filter whose index lies in a folder."""

    folder: Path = Path()


def filter_for(
    name: str,
    *,
    layer: str = "auto",
    folder: Path | None = None,
    dtype: str = "auto",
    device: str = "cpu",
    models: Models | None = None,
    whole: bool = False,
    tell: Tell,
) -> StoredFilter:
    """A filter with its index: in ``folder``, or in the cache folder under the names of model and layer."""
    loaded, chosen = filter_of(name, layer=layer, device=device, models=models, whole=whole, tell=tell)
    head, _ = framed(loaded.tokenizer, "?")
    place = folder or _place(name, int(chosen.layer), dtype, head)
    index = FilterIndex(loaded.model, chosen, FolderStore(place), head=head, dtype=dtype)
    if not index.continues:
        tell(f"{name} cannot go on from keys and values alone: every question reads the documents anew")
    return StoredFilter(index, loaded.tokenizer, folder=place)


def filter_of(
    name: str, *, layer: str, device: str, models: Models | None = None, whole: bool = False, tell: Tell
) -> tuple[Loaded, GemFilter]:
    """A model up to its filter layer, or whole where it answers as well, and how documents are read with it."""
    number = _layer(name, layer, device, models, tell)
    if whole and models is not None:
        loaded = models.whole(name)
    else:
        tell(f"loading the first {number + 1} layers of {name}")
        loaded = load_filter(name, layer=number, device=device)
    if not getattr(loaded.tokenizer, "is_fast", False):
        raise ValueError(f"the tokenizer of {name} does not tell where its tokens stand: a fast tokenizer is needed")
    chunk = min(CHUNK, context_length(loaded.model, 4 * CHUNK) // 2)
    chosen = GemFilter(
        number, rule="window", pooling=None, window=WINDOW, chunk=chunk, tail=WINDOW, chunk_memory=MEMORY
    )
    return loaded, chosen


def _layer(name: str, layer: str, device: str, models: Models | None, tell: Tell) -> int:
    if layer == "auto" and name in KNOWN:
        return KNOWN[name]
    if layer != "auto":
        if not re.fullmatch("[0-9]+", layer):
            raise ValueError(f"--layer takes a number or 'auto', not '{layer}'")
        return int(layer)
    loaded = (models or Models(device, tell)).whole(name)
    base = GemFilter(layer=0, keep=256, rule="window", window=WINDOW, chunk=512, tail=128)
    choice = choose_filter_layer(
        loaded.model,
        loaded.tokenizer,
        keep=256,
        length=2048,
        rules=("window",),
        base=base,
        warn=False,
        progress=lambda text: tell(f"measuring the layer: {text}"),
    )
    tell(choice.sentence() if choice.reliable else f"not reliable: {choice.sentence()}")
    return choice.layer


def _place(name: str, layer: int, dtype: str, head: Sequence[int]) -> Path:
    short = re.sub(r"[^\w.-]+", "-", Path(name).name if "/" in name else name)
    mark = hashlib.blake2b(f"{folder_of(name)} {layer} {dtype} {list(head)} {CHUNK}".encode(), digest_size=5)
    return cache_folder() / "indexes" / f"{short}-layer{layer}-{mark.hexdigest()}"


def retriever_for(
    kind: str, filter_model: str, models: Models, *, whole: str | None, tell: Tell, **options: Any
) -> Retriever:
    """One of the three by name. A filter whose model answers as well shares its weights."""
    if kind == "bm25":
        return BM25()
    if kind == "minilm":
        tell("loading minilm")
        return SentenceEncoder(load_encoder(device=models.device), cache_folder() / "embeddings")
    return filter_for(
        filter_model, device=models.device, models=models, whole=filter_model == whole, tell=tell, **options
    )
