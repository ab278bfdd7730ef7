"""A text cut into passages that can be read and cited: some sentences or lines each, never across a blank line's end
where that would make it long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from assay.apps.documents.reading import Text

#: Words that a passage has at least, where its paragraph has them, and at most, where a sentence has no more.
LEAST, MOST = 25, 70
_END = re.compile(r"(?<=[.!?:;])\s+|\n")


@dataclass(frozen=True)
class Passage:
    """A stretch of characters of one document, with its score."""

    document: str
    begin: int
    end: int
    score: float = 0.0


def pieces(text: Text) -> list[tuple[int, int]]:
    """Stretches (begin, end) of characters that cover every word, in order."""
    found: list[tuple[int, int]] = []
    begin, words, last = None, 0, 0
    for start, stop, closes in _sentences(text.text):
        count = len(re.findall(r"\S{1,60}", text.text[start:stop]))
        if begin is not None and words + count > MOST:
            found.append((begin, last))
            begin, words = None, 0
        begin = start if begin is None else begin
        words, last = words + count, stop
        if closes and words >= LEAST:
            found.append((begin, last))
            begin, words = None, 0
    if begin is not None:
        found.append((begin, last))
    return found


def _sentences(text: str) -> Iterator[tuple[int, int, bool]]:
    """Sentences and lines, and whether a paragraph ends behind them; very long ones are cut at words."""
    places = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    for start, stop in pairwise(places):
        piece = text[start:stop]
        if not piece.strip():
            continue
        closes = bool(re.match(r"\s*\n\s*\n|\s*\n(?=\s*#)", text[stop - 1 :])) or stop == len(text)
        words = list(re.finditer(r"\S{1,60}\s*", piece))
        for first in range(0, len(words), MOST):
            part = words[first : first + MOST]
            ends = first + MOST >= len(words)
            yield start + part[0].start(), start + part[-1].start() + len(part[-1][0].rstrip()), closes and ends


def passages(chosen: Sequence[Passage], texts: dict[str, Text]) -> list[Passage]:
    """Neighbours as one passage, with the better score; the best first."""
    merged: list[Passage] = []
    for one in sorted(chosen, key=lambda passage: (passage.document, passage.begin)):
        before = merged[-1] if merged else None
        text = texts[one.document].text
        if before and before.document == one.document and not text[before.end : one.begin].strip():
            merged[-1] = Passage(one.document, before.begin, one.end, max(before.score, one.score))
        else:
            merged.append(one)
    return sorted(merged, key=lambda passage: -passage.score)


def cited(passage: Passage, text: Text) -> str:
    """Where a passage stands, as ``lines 3–7`` or ``page 2``."""
    first, last = text.place(passage.begin), text.place(max(passage.begin, passage.end - 1))
    return f"{text.unit} {first}" if first == last else f"{text.unit}s {first}–{last}"
