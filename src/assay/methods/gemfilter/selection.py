"""The tokens that a filter kept of a batch of prompts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay._reports import Report, chart
from assay.methods.gemfilter.prompts import Prompt


@dataclass(frozen=True, repr=False)
class Selection(Report):
    """The tokens that a filter kept of a batch of prompts.

    ``indices`` (batch, kept) are positions in the prompt, -1 where a short prompt leaves room on the left; ``scores``
    (batch, n) are the pooled scores, -inf at padding. Where a prompt was short enough to keep whole, nothing was
    scored and ``scores`` is None. ``chunks`` are the pieces that were read in place of the whole prompts, all rows
    together; 0 where these were read whole.
    """

    indices: Tensor
    input_ids: Tensor
    attention_mask: Tensor
    scores: Tensor | None
    prompt_length: int
    seconds: float
    chunks: int = 0

    def kept(self, row: int = 0) -> list[int]:
        """The kept positions of one prompt."""
        return [int(i) for i in self.indices[row] if i >= 0]

    def headline(self) -> str:
        rows = [len(self.kept(row)) for row in range(len(self.indices))]
        kept = f"{rows[0]:,}" if len(rows) == 1 else f"{min(rows):,} to {max(rows):,}"
        of = "" if len(rows) == 1 else f" in {len(rows)} prompts"
        read = f", read in {self.chunks} chunks" if self.chunks else ""
        return f"kept {kept} of {self.prompt_length:,} tokens{of}{read}"

    def table(self) -> list[dict[str, Any]]:
        """A row for every kept token: its prompt, its position and number, and its score."""
        return [
            {
                "prompt": row,
                "position": place,
                "token": int(token),
                "score": None if self.scores is None else float(self.scores[row, place]),
            }
            for row in range(len(self.indices))
            for place, token in zip(self.kept(row), self.input_ids[row][self.attention_mask[row].bool()], strict=True)
        ]

    def figure(self) -> Any:
        """Where in the prompts the kept tokens lie."""
        base = chart(self.table()).mark_tick()
        place = {"field": "position", "type": "quantitative", "scale": {"domain": [0, self.prompt_length]}}
        return base.encode(x=place, y={"field": "prompt", "type": "ordinal"}).properties(width=380)

    def tokens(self, tokenizer: Any, row: int = 0) -> list[str]:
        """The kept tokens of one prompt, as strings."""
        real = self.attention_mask[row].bool()
        return [str(token) for token in tokenizer.convert_ids_to_tokens(self.input_ids[row][real].tolist())]

    def text(self, tokenizer: Any, row: int = 0, gap: str = " … ") -> str:
        """The kept text of one prompt for a person to read, with ``gap`` wherever tokens were dropped."""
        ids = self.input_ids[row][self.attention_mask[row].bool()].tolist()
        return gap.join(tokenizer.decode([ids[i] for i in span]) for span in _spans(self.kept(row)))

    def recall(self, wanted: list[int], row: int = 0) -> float:
        """The share of the wanted positions that were kept."""
        return len(set(wanted) & set(self.kept(row))) / len(set(wanted))


def selection_of(
    prompt: Prompt, chosen: list[Tensor], scores: Tensor | None, seconds: float, chunks: int = 0
) -> Selection:
    """Selections of unequal length, padded on the left."""
    length = max(len(places) for places in chosen)
    indices = torch.full((prompt.batch, length), -1, device=prompt.input_ids.device)
    for row, places in enumerate(chosen):
        indices[row, length - len(places) :] = places
    ids = prompt.input_ids.gather(1, indices.clamp_min(0))
    return Selection(indices, ids, (indices >= 0).long(), scores, prompt.input_ids.shape[1], seconds, chunks)


def _spans(positions: list[int]) -> list[list[int]]:
    """Indices into ``positions``, cut wherever consecutive positions are not neighbours."""
    spans: list[list[int]] = []
    for i, position in enumerate(positions):
        if i and position == positions[i - 1] + 1:
            spans[-1].append(i)
        else:
            spans.append([i])
    return spans
