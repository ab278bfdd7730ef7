"""What a question found in an index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from assay._reports import Report, bars


@dataclass(frozen=True, repr=False)
class Found(Report):
    """Pooled scores of every document's tokens, (n,) each, and the positions that were kept of it, in rising order.

    Scores of all documents compare: attention is one softmax over everything that was asked. The question's own tokens
    are no part of it; they are always kept, and take no place from others."""

    scores: dict[str, Tensor]
    kept: dict[str, list[int]]
    seconds: float
    chunks: int

    @property
    def tokens(self) -> int:
        """Tokens that were kept of all documents."""
        return sum(map(len, self.kept.values()))

    @property
    def ranked(self) -> list[str]:
        """Documents by their best token, the best first."""
        return sorted(self.scores, key=lambda name: -float(self.scores[name].max()))

    def table(self) -> list[dict[str, Any]]:
        """A row for every document, the best first: its tokens, how many were kept, and its best score."""
        return [
            {"document": name, "tokens": len(self.scores[name]), "kept": len(self.kept[name])}
            | {"best_score": float(self.scores[name].max())}
            for name in self.ranked
        ]

    def figure(self) -> Any:
        """Tokens that were kept of every document."""
        return bars(self.table(), "document", "kept", kept="tokens kept")

    def headline(self) -> str:
        best = ", ".join(f"{name} ({len(self.kept[name])})" for name in self.ranked[:3])
        return f"{self.tokens:,} tokens kept of {len(self.scores)} documents, {self.chunks} chunks; the best: {best}"
