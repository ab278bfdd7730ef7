"""Three ways to rank the passages of a library by a question: counted words, a sentence encoder, an early layer."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from assay.apps.documents.library import Document, Library
from assay.apps.documents.passages import Passage, passages
from assay.evaluation.retrieval import bm25, unit_vectors
from assay.methods.gemfilter import FilterIndex
from assay.methods.gemfilter.index import Changes, DamagedIndex
from assay.networks.pretrained import Loaded

#: The first is the default: docs/ask.md shows what each cites on questions about this repository's guides.
RETRIEVERS = ("bm25", "minilm", "gemfilter")
Tell = Callable[[int, int, str], None]


def _quiet(done: int, of: int, name: str) -> None:
    """Nobody wants to hear how far the work is."""


class Retriever(Protocol):
    """``prepare`` reads what a question does not change; ``scores`` has a number for every piece of every document."""

    def prepare(self, library: Library, progress: Tell = _quiet) -> Changes: ...
    def scores(self, question: str, library: Library) -> dict[str, list[float]]: ...


def chosen_passages(
    library: Library, scores: Mapping[str, Sequence[float]], keep: int, count: Callable[[str], int]
) -> list[Passage]:
    """The best pieces as long as ``keep`` tokens hold them, one at least; neighbours merged, the best passage first."""
    ranked = [
        Passage(name, begin, end, score)
        for name, document in library.documents.items()
        for (begin, end), score in zip(document.pieces, scores[name], strict=True)
    ]
    ranked.sort(key=lambda passage: -passage.score)
    taken: list[Passage] = []
    left = keep
    for one in ranked:
        tokens = count(library.documents[one.document].text.text[one.begin : one.end])
        if taken and tokens > left:
            break
        taken.append(one)
        left -= tokens
    return passages(taken, {name: document.text for name, document in library.documents.items()})


@dataclass
class BM25:
    """Counted words, rare ones more, after Robertson and Walker; long passages gain nothing by their length."""

    saturation: float = 1.5
    by_length: float = 0.75

    def prepare(self, library: Library, progress: Tell = _quiet) -> Changes:
        return Changes()

    def scores(self, question: str, library: Library) -> dict[str, list[float]]:
        texts = [text for one in library.documents.values() for text in one.words]
        found = iter(bm25(question, texts, k=self.saturation, b=self.by_length))
        return {name: list(islice(found, len(one.pieces))) for name, one in library.documents.items()}


@dataclass
class SentenceEncoder:
    """The cosine of a sentence encoder's vectors. Those of passages are kept in ``cache``, by their text."""

    loaded: Loaded
    cache: Path | None = None
    batch: int = 32
    _vectors: dict[str, Tensor] = field(default_factory=dict, repr=False)

    def prepare(self, library: Library, progress: Tell = _quiet) -> Changes:
        read = reused = 0
        for done, (name, document) in enumerate(library.documents.items()):
            progress(done, len(library.documents), name)
            kept = None if self.cache is None else self.cache / f"{_mark(document)}.safetensors"
            try:
                if kept is None or not kept.exists():
                    raise FileNotFoundError
                self._vectors[name] = load_file(kept)["vectors"]
                reused += len(document.pieces)
            except (OSError, SafetensorError, KeyError):
                self._vectors[name] = self.encode(document.words)
                read += len(document.pieces)
                if kept is not None:
                    _keep(self._vectors[name], kept)
        return Changes(read, reused)

    def scores(self, question: str, library: Library) -> dict[str, list[float]]:
        asked = self.encode([question])[0]
        return {name: (self._vectors[name] @ asked).tolist() for name in library.documents}

    def encode(self, texts: Sequence[str]) -> Tensor:
        """Unit vectors (texts, width)."""
        return unit_vectors(self.loaded, texts, batch=self.batch)


def _keep(vectors: Tensor, place: Path) -> None:
    """Where nothing can be kept (a full disk), passages are encoded again next time."""
    unfinished = place.with_suffix(f".{os.getpid()}")
    with suppress(OSError, SafetensorError):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        save_file({"vectors": vectors}, unfinished)
        unfinished.replace(place)


def _mark(document: Document) -> str:
    return hashlib.blake2b("\0".join(document.words).encode(), digest_size=16).hexdigest()


@dataclass
class Filter:
    """An early layer's attention from the question to every token. A passage has the mean of its best tokens."""

    index: FilterIndex
    tokenizer: Any
    best: int = 20
    _offsets: dict[str, list[tuple[int, int]]] = field(default_factory=dict, repr=False)

    def prepare(self, library: Library, progress: Tell = _quiet) -> Changes:
        """Bring the index up to date: files that changed are read again, those that are gone are forgotten."""
        here = {str(document.path) for document in library.documents.values()}
        gone = [name for name in self.index.documents if name not in here and library.holds(Path(name))]
        for name in gone:
            self.index.remove(name)
        done = [self._add(document, number, library, progress) for number, document in enumerate(_all(library))]
        return Changes(
            sum(one.read for one in done), sum(one.reused for one in done), len(gone), sum(one.seconds for one in done)
        )

    def _add(self, document: Document, number: int, library: Library, progress: Tell) -> Changes:
        encoded = self.tokenizer(
            document.text.text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        self._offsets[document.name] = encoded["offset_mapping"]
        progress(number, len(library.documents), document.name)

        def told(_: int, __: int) -> None:
            progress(number, len(library.documents), document.name)

        return self.index.add(str(document.path), encoded["input_ids"], progress=told)

    def scores(self, question: str, library: Library, progress: Tell = _quiet) -> dict[str, list[float]]:
        """A chunk that is damaged is read again. ``progress`` may raise to end it all."""
        _, tail = framed(self.tokenizer, question)
        among = [str(document.path) for document in _all(library)]
        for _ in range(1 + sum(self.index.documents.values())):
            try:
                found = self.index.select(tail, among=among, progress=lambda done, of: progress(done, of, ""))
                break
            except DamagedIndex as error:
                if error.key is None:
                    raise
                self.index.store.drop([error.key])
                self.prepare(library)
        return {one.name: self._of_pieces(one, found.scores[str(one.path)]) for one in _all(library)}

    def _of_pieces(self, document: Document, scores: Tensor) -> list[float]:
        begins = torch.tensor([begin for begin, _ in self._offsets[document.name]])
        made = []
        for begin, end in document.pieces:
            first, last = (int(torch.searchsorted(begins, place)) for place in (begin, end))
            inside = scores[first : max(last, first + 1)]
            made.append(float(inside.topk(min(self.best, len(inside))).values.mean()) if len(inside) else -math.inf)
        return made


def _all(library: Library) -> list[Document]:
    return list(library.documents.values())


def framed(tokenizer: Any, question: str) -> tuple[list[int], list[int]]:
    """What stands before a text and behind it: the chat template's beginning, and the question. What a template puts
    behind a question is left out: its rows look at everything alike, and the question's own rows do not see it."""
    mark, before = "⁂", ""
    if getattr(tokenizer, "chat_template", None):
        turns = [{"role": "user", "content": mark}]
        rendered = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        before, _, _ = rendered.partition(mark)
    parts = (before, f"\n\nQuestion: {question}")
    head, tail = (tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"] for part in parts)
    return list(head), list(tail)
