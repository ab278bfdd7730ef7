"""Long texts of a request cut down to the passages that its question points at."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.apps.documents.library import Document, Library
from assay.apps.documents.passages import Passage, pieces
from assay.apps.documents.reading import Text
from assay.apps.documents.retrievers import Filter, chosen_passages
from assay.apps.proxy.messages import Request, request_of
from assay.apps.proxy.settings import Settings
from assay.methods.gemfilter import FilterIndex

#: Stands where something was left out.
GAP = "\n…\n"


class Cancelled(Exception):
    """Nobody waits for the result any more."""


@dataclass(frozen=True)
class Shortening:
    """A body that was shortened, tokens before and after, and the seconds that it took."""

    body: dict[str, Any]
    before: int
    after: int
    seconds: float

    def usage(self) -> dict[str, Any]:
        return {"tokens_before": self.before, "tokens_after": self.after, "filter_seconds": round(self.seconds, 3)}

    def headers(self, waited: float) -> dict[str, str]:
        """What an answer's headers tell; ``waited`` are the seconds since the request came."""
        return {
            "x-assay-tokens-before": str(self.before),
            "x-assay-tokens-after": str(self.after),
            "x-assay-filter-seconds": f"{self.seconds:.3f}",
            "x-assay-total-seconds": f"{waited:.3f}",
        }


class Shortener:
    """A filter for requests. Texts are read for one question and not kept. One thread at a time may use it."""

    def __init__(self, index: FilterIndex, tokenizer: Any, settings: Settings) -> None:
        self.index, self.tokenizer, self.settings = index, tokenizer, settings
        index.reader.continues = False  # one question for every text: nothing is worth keeping

    def offsets(self, text: str) -> list[int]:
        """The characters that a text's tokens begin at."""
        made = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return [begin for begin, _ in made["offset_mapping"]]

    def count(self, text: str) -> int:
        return len(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def request(self, body: Mapping[str, Any], chat: bool, whole_turn: int | None = None) -> Request | None:
        """The texts of a request with their tokens counted; None for what is no request."""
        return request_of(body, chat, self.settings, self.offsets, whole_turn)

    def shorten(self, request: Request, keep: int, go_on: Callable[[], bool] = lambda: True) -> Shortening:
        """Keep ``keep`` tokens of what may be shortened. Between two batches of chunks ``go_on`` is asked."""
        started = time.monotonic()

        def look(*_: object) -> None:
            if not go_on():
                raise Cancelled

        texts = {f"{number}": slot.text[slot.begin : slot.end] for number, slot in enumerate(request.long)}
        library = Library({name: _document(name, text) for name, text in texts.items() if text.strip()}, {}, ())
        used = Filter(self.index, self.tokenizer)
        try:
            used.prepare(library, look)
            scores = used.scores(request.question, library, look)
        finally:
            for name in list(self.index.documents):
                self.index.remove(name)
        chosen = chosen_passages(library, scores, keep, self.count)
        after = request.tokens
        for number, slot in enumerate(request.long):
            text = texts[f"{number}"]
            short = _joined(text, sorted((one for one in chosen if one.document == f"{number}"), key=_place))
            after += self.count(short) - self.count(text)
            slot.put(slot.text[: slot.begin] + short + slot.text[slot.end :])
        return Shortening(request.body, request.tokens, after, time.monotonic() - started)


def _document(name: str, text: str) -> Document:
    made = Text(text, "line", (0,), (1,))
    return Document(name, Path(name), made, pieces(made))


def _place(one: Passage) -> int:
    return one.begin


def _joined(text: str, inside: list[Passage]) -> str:
    """The passages of a text in their order, with a mark where something was left out."""
    if not inside:
        return GAP.strip()
    parts = [text[one.begin : one.end] for one in inside]
    before = "" if not text[: inside[0].begin].strip() else GAP.lstrip()
    behind = "" if not text[inside[-1].end :].strip() else GAP.rstrip()
    return before + GAP.join(parts) + behind
