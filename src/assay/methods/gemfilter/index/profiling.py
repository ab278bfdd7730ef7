"""What an index takes on this machine: reading texts once, and every question beside reading them anew."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from assay._reports import Report, curves
from assay.evaluation.measure import now, timed
from assay.methods.gemfilter.chunks import Joined
from assay.methods.gemfilter.index.cost import first_worth
from assay.methods.gemfilter.index.index import FilterIndex
from assay.methods.gemfilter.index.shelf import Shelf


@dataclass(frozen=True, repr=False)
class IndexProfile(Report):
    """Seconds and bytes of an index and its questions, up to the tokens that these select.

    ``build`` reads the texts once; ``question`` and ``anew`` are medians, of questions to the index and of passes that
    read the same chunks with the question behind them. Peaks are None where memory cannot be measured; what they count
    differs between devices, see ``measure.peak_counts``. ``index_bytes`` are those of the stored tensors.
    """

    tokens: int
    chunks: int
    build: float
    question: float
    anew: float
    build_peak: int | None
    question_peak: int | None
    index_bytes: int

    def headline(self) -> str:
        worth = f"from {self.break_even} questions on it is worth it" if self.break_even else "it is not worth it"
        return f"{self.tokens:,} tokens in {self.chunks} chunks and {self.index_bytes:,} bytes: {worth}"

    def table(self) -> list[dict[str, Any]]:
        """Seconds of a question by the number that is asked, with the index and without."""
        counts = sorted({1, 2, 5, 10, 20, 50, 100, max(1, self.break_even)})
        return [{"questions": n, "with_index": self.per_question(n), "anew": self.anew} for n in counts]

    def figure(self) -> Any:
        """Both over the number of questions."""
        rows = [
            {"questions": row["questions"], "seconds": row[how], "how": how.replace("_", " ")}
            for row in self.table()
            for how in ("with_index", "anew")
        ]
        return curves(rows, "questions", "seconds", "how", seconds="seconds a question")

    def per_question(self, questions: int) -> float:
        """Seconds of a question when the index is made for so many."""
        return self.build / questions + self.question

    @property
    def break_even(self) -> int:
        """The number of questions from which on the index takes less time than reading anew for each; 0 for never."""
        return first_worth(self.build, self.question, self.anew)


def profile_index(
    make: Callable[[], FilterIndex],
    lengths: int | Sequence[int],
    *,
    question: int = 32,
    questions: int = 3,
    seed: int = 0,
) -> IndexProfile:
    """Fill the empty index that ``make`` returns with texts of random tokens and ask it ``questions`` questions of
    ``question`` tokens, each beside a pass over the same chunks, after a first question that warms up."""
    if questions < 1 or question < 1:
        raise ValueError("at least one question of at least one token is measured")
    index = make()
    if index.documents:
        raise ValueError("an index is measured from its beginning: make an empty one")
    draw = torch.Generator().manual_seed(seed)
    words = int(index.model.get_input_embeddings().num_embeddings)  # type: ignore[operator]

    def tokens(count: int) -> list[int]:
        return torch.randint(min(3, words - 1), words, (count,), generator=draw).tolist()

    sizes = [lengths] if isinstance(lengths, int) else list(lengths)
    texts = {f"text {number}": tokens(size) for number, size in enumerate(sizes)}
    device = index.reader.device
    built = timed(lambda: [index.add(name, ids) for name, ids in texts.items()], device)
    asked, anew, peaks, chunks = [], [], [], 0
    for _ in range(questions + 1):
        tail = tokens(question)
        one = timed(lambda tail=tail: index.select(tail), device)  # type: ignore[misc]
        started = now(device)
        _anew(index, sizes, list(texts.values()), tail)
        anew.append(now(device) - started)
        asked.append(one.seconds)
        peaks.append(one.peak_bytes)
        chunks = one.made.chunks
    known = [peak for peak in peaks if peak is not None]
    return IndexProfile(
        tokens=sum(sizes),
        chunks=chunks,
        build=built.seconds,
        question=statistics.median(asked[1:]),
        anew=statistics.median(anew[1:]),
        build_peak=built.peak_bytes,
        question_peak=max(known, default=None),
        index_bytes=index.stored_bytes,
    )


def _anew(index: FilterIndex, sizes: list[int], texts: list[list[int]], tail: list[int]) -> None:
    """Scores without what the index keeps: chunks and question are read together."""
    reader = replace(index.reader, continues=False)
    cut = {"overlap": index.overlap, "head": len(index.head), "tail": len(tail), "sink": index.chosen.sink}
    shelf = Shelf(sizes, index.size, **cut)
    joined = Joined(index.chosen.rule, shelf)
    for batch in index.batches(shelf, continues=False):
        ids = []
        for number in batch:
            document, inner = shelf.numbers[number]
            layout = shelf.layouts[document]
            whole = torch.tensor([*index.head, *texts[document], *tail])
            ids.append(whole[layout.positions(inner)][: layout.chunk_length - len(tail)])
        projected = reader.behind([{"ids": each} for each in ids], tail, min(index.chosen.rows, len(tail)))
        for place, number in enumerate(batch):
            joined.add(number, projected.of(place))
    joined.scores()
