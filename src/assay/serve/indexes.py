"""Indexes of documents that `assay index` made: those below one folder, known to the page by name alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.apps.documents.library import Library

MOST = 200  # folders that are looked at


@dataclass(frozen=True)
class Index:
    """An index: the folder it lies in, the filter layer it was made with, and the files it has read."""

    name: str
    folder: Path
    layer: int
    dtype: str
    files: tuple[str, ...]
    tokens: int

    def to_dict(self) -> dict[str, Any]:
        """What a page is told: no path, and no file that was read."""
        return {"name": self.name, "documents": len(self.files), "tokens": self.tokens, "layer": self.layer}


def listed(folder: Path | None) -> dict[str, Index]:
    """The indexes in a folder, or the one that it is, by name. What cannot be read, or lies elsewhere and is only
    linked, is left out."""
    if folder is None or not folder.is_dir():
        return {}
    root = folder.resolve()
    places = [root, *sorted(each for each in root.iterdir() if each.is_dir() and not each.is_symlink())[:MOST]]
    found = (_index(place) for place in places if (place / "manifest.json").is_file())
    return {each.name: each for each in found if each is not None}


def _index(folder: Path) -> Index | None:
    from assay.methods.gemfilter import FolderStore

    store = FolderStore(folder)
    try:
        settings, documents = store.settings() or {}, store.documents()
        tokens = sum(int(each["tokens"]) for each in documents.values())
        layer, dtype = int(settings["layer"]), str(settings["dtype"])
        return Index(folder.name, folder, layer, dtype, tuple(documents), tokens)
    except (ValueError, KeyError, TypeError, OSError):
        return None


def read(model: str, asked: dict[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    """Answer a question from the documents of an index, with the passages that the answer was given."""
    from assay.apps.documents import answered, chosen_passages
    from assay.apps.documents.answering import citation
    from assay.apps.documents.setup import filter_for, library_of, loaded_once

    files = [path for path in asked["files"] if Path(path).is_file()]
    if not files:
        raise ValueError("none of the files that this index has read is there any more")
    library = _named(library_of(files))
    models = loaded_once("cpu", tell=say)
    layer, dtype, place = str(asked["layer"]), asked["dtype"], Path(asked["folder"])
    used = filter_for(model, layer=layer, folder=place, dtype=dtype, models=models, whole=True, tell=say)
    took = used.prepare(library, lambda done, of, name: say(f"looking at {done + 1} of {of}: {name}"))
    tokenizer = models.tokenizer(model)
    say("finding passages")
    scores = used.scores(asked["question"], library)
    chosen = chosen_passages(
        library, scores, asked["keep"], lambda text: len(tokenizer(text, verbose=False)["input_ids"])
    )
    say("answering")
    text = answered(models.whole(model), asked["question"], chosen, library, new=asked["new"], tell=lambda _: None)
    again = f", {took.read} chunks read again" if took.read else ""
    return {
        "model": model,
        "answer": text,
        "facts": f"{len(library.documents)} documents, layer {layer}{again}",
        "found": [
            {"where": citation(one, library), "text": library.documents[one.document].text.text[one.begin : one.end]}
            for one in chosen
        ],
    }


def _named(library: Library) -> Library:
    """The documents by their place below the folder that all of them lie in: a page needs no more of a path."""
    top = os.path.commonpath([document.path.parent for document in library.documents.values()])
    short = [replace(each, name=os.path.relpath(each.path, top)) for each in library.documents.values()]
    return replace(library, documents={each.name: each for each in short})
