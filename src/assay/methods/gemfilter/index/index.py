"""An index of documents: each is read once, up to the filter layer, and every question runs its own tokens alone."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from assay.evaluation.measure import now
from assay.methods._checks import all_finite, one_of
from assay.methods.gemfilter.adapter import check_layer, check_usable, sequence_bytes
from assay.methods.gemfilter.cautions import less_shared, too_far, too_long
from assay.methods.gemfilter.chunks import AUTO_CHUNK, Joined, Layout, shared_tokens
from assay.methods.gemfilter.filter import GemFilter
from assay.methods.gemfilter.index.found import Found
from assay.methods.gemfilter.index.reader import DTYPES, Reader
from assay.methods.gemfilter.index.shelf import Shelf, pieces
from assay.methods.gemfilter.index.store import DamagedIndex, MemoryStore, OtherIndex, Store
from assay.methods.gemfilter.remembered import fingerprint
from assay.methods.gemfilter.scoring import best_positions
from assay.networks.pretrained import context_length, text_config


@dataclass(frozen=True)
class Changes:
    """What bringing an index up to date took: chunks that were read, chunks that were there, documents removed."""

    read: int = 0
    reused: int = 0
    removed: int = 0
    seconds: float = 0.0


class FilterIndex:
    """Keys and values of documents below a filter layer, kept so that a new question costs its own tokens only.

    ``chosen`` says which layer, how a document is cut, and how a question scores; ``chunk`` left out is 1,024. Every
    chunk stands behind the tokens of ``head`` (a chat template's beginning, say). Chunks belong to one document each
    and are known by their content: a document that is added, changed or removed touches its own. Its selection is that
    of ``GemFilter`` over the same chunks.

    ``dtype`` is what keys and values are stored in: ``auto`` is the model's own where that has 16 bits, else float16.
    What this costs is measured when the index is begun: ``loss`` is the largest error of a score, in standard
    deviations of scores. A model that cannot go on from keys and values alone (recurrent layers, rotations that depend
    on the length) is found out then, and its chunks are read anew for every question: ``continues`` is False.
    """

    def __init__(
        self,
        model: nn.Module,
        chosen: GemFilter,
        store: Store | None = None,
        *,
        head: Sequence[int] = (),
        dtype: str = "auto",
    ) -> None:
        if chosen.layer == "auto":
            raise ValueError("an index needs a filter with a layer: call resolved(model, tokenizer) on it first")
        if chosen.row != "last":
            raise ValueError("an index is asked by a question's last rows: it goes with row='last' only")
        check_usable(model)
        check_layer(model, chosen.layer)
        self.model, self.head = model, list(head)
        self.store: Store = MemoryStore() if store is None else store
        size = _chunk_size(model, chosen, len(self.head))
        auto = not isinstance(chosen.chunk, int)
        overlap = shared_tokens(size, chosen.overlap, auto=auto)
        if auto and (wrong := less_shared(size, chosen.overlap)):
            warnings.warn(wrong, stacklevel=2)
        self.chosen = replace(chosen, chunk=size, overlap=overlap, tail=max(chosen.tail, chosen.rows))
        self.layer, self.size, self.overlap = chosen.layer, size, overlap
        one_of("dtype", dtype, ("auto", *DTYPES))
        own = str(next(model.parameters()).dtype).removeprefix("torch.")
        self.dtype = dtype if dtype != "auto" else own if own in ("float16", "bfloat16") else "float16"
        self.reader = Reader(model, self.layer, self.dtype, chosen.mlp_chunk)
        self._settings = self._settled()
        self.reader.continues = bool(self._settings["continues"])

    def _wanted(self) -> dict[str, Any]:
        return {
            "model": fingerprint(self.model, self.layer + 1),
            "layer": self.layer,
            "chunk": self.size,
            "overlap": self.overlap,
            "head": _digest(self.head),
            "dtype": self.dtype,
        }

    def _settled(self) -> dict[str, Any]:
        """The settings that the store has, which must be these, or new ones with what was measured of them."""
        wanted, there = self._wanted(), self.store.settings()
        if there is not None:
            names = {"model": "another model", "layer": "another layer", "head": "another beginning of its chunks"}
            for name, value in wanted.items():
                if there.get(name) != value:
                    what = names.get(name, f"another {name}")
                    told = "" if name in ("model", "head") else f" ({there.get(name)}, not {value})"
                    raise OtherIndex(f"the index was made with {what}{told}: index the texts again, in another place")
            return there
        settings = {**wanted, **self.reader.tried(self.head, self.size)}
        self.store.settle(settings)
        return settings

    @property
    def loss(self) -> float:
        """The largest error of a score that storing causes, in standard deviations of scores."""
        return float(self._settings["loss"])

    @property
    def continues(self) -> bool:
        """Whether a question runs its own tokens alone."""
        return self.reader.continues

    @property
    def documents(self) -> dict[str, int]:
        """Tokens of every document, by name."""
        return {name: int(made["tokens"]) for name, made in self.store.documents().items()}

    @property
    def stored_bytes(self) -> int:
        """Bytes of the tensors that are kept of all documents; chunks that several of them share count once."""
        kept: dict[str, int] = {}
        for made in self.store.documents().values():
            size = Layout.of(int(made["tokens"]), self.size, overlap=self.overlap, tail=0).size
            kept |= dict.fromkeys(made["chunks"], len(self.head) + size)
        numbers = int(self._settings["numbers"]) if self.continues else 0
        return sum(kept.values()) * (numbers * DTYPES[self.dtype].itemsize + torch.int32.itemsize)

    def source(self, name: str) -> dict[str, Any]:
        """What was noted beside a document when it was added."""
        return dict(self.store.documents()[name].get("source", {}))

    def add(
        self,
        name: str,
        ids: Sequence[int],
        *,
        source: Mapping[str, Any] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Changes:
        """Read a document, or what changed of it. Chunks that are there are not read again."""
        started, ids = now(self.reader.device), [int(i) for i in ids]
        if not ids:
            raise ValueError(f"{name} has no tokens: there is nothing to read")
        cut = pieces(ids, self.size, self.overlap)
        keys = [self._key(piece) for piece in cut]
        missing = [(key, piece) for key, piece in dict(zip(keys, cut, strict=True)).items() if not self.store.has(key)]
        done = 0
        for batch in self._batches(missing):
            states = self.reader.read([self.head + piece for _, piece in batch])
            for (key, _), state in zip(batch, states, strict=True):
                self.store.put(key, state)
            done += len(batch)
            if progress is not None:
                progress(done, len(missing))
        before = self.store.documents().get(name, {}).get("chunks", [])
        self.store.note(name, {"tokens": len(ids), "chunks": keys, "source": dict(source or {})})
        self._sweep(set(before) - set(keys))
        return Changes(len(missing), len(keys) - len(missing), 0, now(self.reader.device) - started)

    def remove(self, name: str) -> None:
        """Forget a document, and the chunks that no other one has."""
        chunks = self.store.documents().get(name, {}).get("chunks", [])
        self.store.forget(name)
        self._sweep(set(chunks))

    def update(self, documents: Mapping[str, Sequence[int]]) -> Changes:
        """Hold these documents and no others."""
        gone = [name for name in self.documents if name not in documents]
        for name in gone:
            self.remove(name)
        made = [self.add(name, ids) for name, ids in documents.items()]
        read, reused = sum(one.read for one in made), sum(one.reused for one in made)
        return Changes(read, reused, len(gone), sum(one.seconds for one in made))

    def select(
        self,
        tail: Sequence[int],
        *,
        among: Sequence[str] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Found:
        """The tokens that a question points at, in all documents or ``among`` some. ``tail`` is the question as it
        stands behind a text, template and all; where a window of rows scores, it ends where the question begins."""
        started, tail = now(self.reader.device), [int(i) for i in tail]
        if not tail:
            raise ValueError("the question is empty: there is nothing to ask")
        rows = min(self.chosen.rows, len(tail))
        known = self.store.documents()
        names = list(known) if among is None else list(among)
        if unknown := [name for name in names if name not in known]:
            raise ValueError(f"the index has no document '{unknown[0]}'")
        if not names:
            raise ValueError("the index is empty: add a document first")
        longest = len(self.head) + self.size + len(tail)
        for wrong in (too_far(self.model, self.layer, longest), too_long(self.model, longest)):
            if wrong:
                warnings.warn(wrong, stacklevel=2)
        lengths = [int(known[name]["tokens"]) for name in names]
        sizes = {"overlap": self.overlap, "head": len(self.head), "tail": len(tail), "sink": self.chosen.sink}
        shelf = Shelf(lengths, self.size, **sizes)
        keys = [key for name in names for key in known[name]["chunks"]]
        if len(keys) != shelf.chunks:
            raise DamagedIndex("the index does not list every chunk of its documents: index the texts again")
        joined = Joined(self.chosen.rule, shelf)
        for batch in self.batches(shelf, continues=self.continues):
            states = [self.store.get(keys[number]) for number in batch]
            projected = self.reader.behind(states, tail, rows)
            for place, number in enumerate(batch):
                joined.add(number, projected.of(place))
            if progress is not None:
                progress(len(joined.chunks), shelf.chunks)
        raw = joined.scores().cpu()
        scores = {name: self.chosen.pooled(shelf.of(raw, place)) for place, name in enumerate(names)}
        kept = self._kept(scores)
        return Found(scores, kept, now(self.reader.device) - started, shelf.chunks)

    def _kept(self, scores: dict[str, Tensor]) -> dict[str, list[int]]:
        together = torch.cat(list(scores.values()))
        all_finite("the scores of tokens", together)
        best = best_positions(together, self.chosen.budget(len(together)))
        kept, begin = {}, 0
        for name, part in scores.items():
            here = best[(best >= begin) & (best < begin + len(part))] - begin
            kept[name], begin = here.tolist(), begin + len(part)
        return kept

    def _batches(self, missing: list[tuple[str, list[int]]]) -> Iterator[list[tuple[str, list[int]]]]:
        """Chunks of one length, as many together as the stated memory holds."""
        for length, group in groupby(missing, key=lambda pair: len(pair[1])):
            same = list(group)
            count = max(1, int(self.chosen.chunk_memory * 2**30 // sequence_bytes(self.model, length)))
            yield from (same[start : start + count] for start in range(0, len(same), count))

    def batches(self, shelf: Shelf, *, continues: bool) -> Iterator[list[int]]:
        """Numbers of chunks of one length, as many together as the stated memory holds with their keys and values."""
        sizes = [layout.chunk_length for layout in shelf.layouts]
        order = sorted(range(shelf.chunks), key=lambda number: sizes[shelf.numbers[number][0]])
        for length, group in groupby(order, key=lambda number: sizes[shelf.numbers[number][0]]):
            same, one = list(group), sequence_bytes(self.model, length)
            if continues:
                one = length * self._bytes_of_a_token
            count = max(1, int(self.chosen.chunk_memory * 2**30 // one))
            yield from (same[start : start + count] for start in range(0, len(same), count))

    @cached_property
    def _bytes_of_a_token(self) -> int:
        """Of a chunk's token while a question is asked: the keys and values of two layers, of one also repeated for all
        query heads, and everything that was stored where it is not in memory anyway."""
        numbers, config = int(self._settings["numbers"]), text_config(self.model)
        heads = int(getattr(config, "num_attention_heads", 1))
        repeats = heads // int(getattr(config, "num_key_value_heads", None) or heads)
        layer = numbers / (self.layer + 0.5) * next(self.model.parameters()).element_size()
        stored = 0 if self.store.in_memory else numbers * DTYPES[self.dtype].itemsize
        return int((2 + repeats) * layer) + stored

    def _key(self, piece: list[int]) -> str:
        return _digest([self._settings["model"], self.layer, self.head, self.dtype, piece])

    def _sweep(self, keys: set[str]) -> None:
        """Drop chunks that no document has any more."""
        if keys:
            used = {key for made in self.store.documents().values() for key in made["chunks"]}
            self.store.drop(keys - used)


def _chunk_size(model: nn.Module, chosen: GemFilter, head: int) -> int:
    """A chunk's tokens: those that were asked for, or as many as leave most of a short context free."""
    if isinstance(chosen.chunk, int):
        return chosen.chunk
    context = context_length(model, 4 * AUTO_CHUNK)
    return max(2, min(AUTO_CHUNK, context // 2 - head))


def _digest(value: Any) -> str:
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=16).hexdigest()
