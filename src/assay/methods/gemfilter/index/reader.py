"""How a model reads chunks for an index, and goes on from what was kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from assay.methods._checks import all_finite
from assay.methods.gemfilter.adapter import Projected, can_continue, read_layers, read_state, read_tail
from assay.methods.gemfilter.scoring import logit_scores

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
#: Scores that differ by more of their spread than this are not rounding: the model cannot go on from what is kept.
_ROUNDING = {torch.float32: 0.01, torch.float16: 0.1, torch.bfloat16: 0.5}
_TRIED_TAIL = 16


@dataclass
class Reader:
    """A model up to its filter layer. Without ``continues`` nothing but a chunk's tokens is kept of it, and chunk and
    question are read together."""

    model: nn.Module
    layer: int
    dtype: str
    mlp_chunk: int | None
    continues: bool = True

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def read(self, chunks: Sequence[Sequence[int]]) -> list[dict[str, Tensor]]:
        """What is kept of chunks of one length."""
        ids = torch.tensor([list(chunk) for chunk in chunks], device=self.device)
        state = read_state(self.model, ids, self.layer, mlp_chunk=self.mlp_chunk) if self.continues else {}
        return [
            {**{name: self._stored(part[row : row + 1]) for name, part in state.items()}, "ids": ids[row].int()}
            for row in range(len(ids))
        ]

    def behind(self, states: Sequence[dict[str, Tensor]], tail: Sequence[int], rows: int) -> Projected:
        """The filter layer's keys of chunks with a tail behind each, and the queries of its last ``rows`` tokens."""
        asked = torch.tensor(list(tail), device=self.device)
        if self.continues:
            return read_tail(self.model, states, asked, self.layer, rows)
        ids = torch.stack([state["ids"].to(self.device).long() for state in states])
        return self._whole(torch.cat([ids, asked.expand(len(ids), -1)], dim=1), rows)

    def tried(self, head: Sequence[int], size: int) -> dict[str, Any]:
        """Whether the model can go on from keys and values, and what storing them costs: on a chunk of random tokens,
        as long as any, with a tail behind it. The loss is the largest error of a score in standard deviations, and
        ``numbers`` those that are kept of a token."""
        if not can_continue(self.model, self.layer):
            return {"continues": False, "loss": 0.0, "numbers": 0}
        words = int(self.model.get_input_embeddings().num_embeddings)  # type: ignore[operator]
        drawn = torch.randint(words, (size + _TRIED_TAIL,), generator=torch.Generator().manual_seed(0)).tolist()
        ids = torch.tensor([[*head, *drawn]], device=self.device)
        expected = _logits(self._whole(ids, 1))
        all_finite("the scores of tokens", expected)
        state = read_state(self.model, ids[:, :-_TRIED_TAIL], self.layer, mlp_chunk=self.mlp_chunk)
        stored = {name: self._stored(part) for name, part in state.items()}
        exact, lossy = (
            float((_logits(read_tail(self.model, [kept], ids[0, -_TRIED_TAIL:], self.layer, 1)) - expected).abs().max())
            / max(float(expected.std()), 1e-12)
            for kept in (state, stored)
        )
        continues = exact <= _ROUNDING.get(next(self.model.parameters()).dtype, 0.5)
        numbers = sum(part.numel() for part in state.values()) // (ids.shape[1] - _TRIED_TAIL)
        return {"continues": continues, "loss": lossy if continues else 0.0, "numbers": numbers}

    def _whole(self, ids: Tensor, rows: int) -> Projected:
        found: list[Projected] = []
        last = torch.arange(ids.shape[1] - rows, ids.shape[1], device=ids.device).expand(len(ids), -1)

        def take(_: int, projected: Projected) -> None:
            found.append(projected)

        read_layers(self.model, ids, None, [self.layer], last, take, mlp_chunk=self.mlp_chunk)
        return found[0]

    def _stored(self, tensor: Tensor) -> Tensor:
        made = tensor.to(DTYPES[self.dtype])
        if not bool(made.isfinite().all()):
            raise ValueError(f"keys or values of this text are not finite in {self.dtype}: use dtype='float32'")
        return made.clone()


def _logits(projected: Projected) -> Tensor:
    return logit_scores(projected.queries[0, :, -1], projected.keys[0])
