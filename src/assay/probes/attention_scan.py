"""Which of all heads are periodic in a cycle of tokens? Every layer and head at once, judged against random orders.

A head of small rank concentrates its spectrum in any order, so that a share says nothing alone. The same tokens in
random order say what chance gives; the largest deviation over all heads in each random order corrects for having looked
at all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from assay._reports import Report, altair, chart
from assay.methods._checks import number, whole
from assay.training.seeds import stream

from .attention_fourier import head_scores
from .score_spectrum import score_spectrum

_CHUNK = 64  # random orders at a time


@dataclass(frozen=True, repr=False)
class AttentionScan(Report):
    """Per layer and head, (layers, heads): the ``share`` of the strongest ``modes`` modes in the given order, its mean
    over random orders ``chance``, the ``p`` value of the head alone and ``adjusted`` for all heads, and the frequencies
    of the strongest mode."""

    tokens: int
    modes: int
    orders: int
    share: Tensor
    chance: Tensor
    p: Tensor
    adjusted: Tensor
    key: Tensor
    query: Tensor

    def periodic(self, level: float = 0.05) -> list[tuple[int, int]]:
        """Layers and heads whose adjusted p-value is at most ``level``, the largest excess over chance first."""
        number("level", level, above=0, below=1)
        found = (self.adjusted <= level).nonzero().tolist()
        return sorted(((layer, head) for layer, head in found), key=lambda at: -float((self.share - self.chance)[at]))

    def headline(self) -> str:
        best = int((self.share - self.chance).argmax())
        layer, head = best // self.share.shape[1], best % self.share.shape[1]
        least = float(self.adjusted[layer, head])
        found, chance = float(self.share[layer, head]), float(self.chance[layer, head])
        return (
            f"{len(self.periodic())} of {self.share.numel()} heads are periodic in the {self.tokens} tokens (adjusted "
            f"p ≤ 0.05 over {self.orders} random orders)\nlargest excess: layer {layer}, head {head}, "
            f"share {found:.2f} against {chance:.2f}, adjusted p {least:.3g}"
        )

    def table(self) -> list[dict[str, Any]]:
        """A row per head, the largest excess over chance first."""
        rows = [
            {
                "layer": layer,
                "head": head,
                "share": float(self.share[layer, head]),
                "chance": float(self.chance[layer, head]),
                "p": float(self.p[layer, head]),
                "adjusted": float(self.adjusted[layer, head]),
                "key": int(self.key[layer, head]),
                "query": int(self.query[layer, head]),
            }
            for layer in range(self.share.shape[0])
            for head in range(self.share.shape[1])
        ]
        return sorted(rows, key=lambda row: row["chance"] - row["share"])

    def figure(self) -> Any:
        """Share less chance of every head; a number marks a head whose adjusted p-value is at most 0.05."""
        alt = altair("the figure of a scan")
        rows = [{**row, "excess": row["share"] - row["chance"], "shown": f"{row['share']:.2f}"} for row in self.table()]
        base = chart(rows).encode(x=alt.X("head:O", title="head"), y=alt.Y("layer:O", title="layer"))
        most = max(abs(row["excess"]) for row in rows)
        scale = alt.Scale(scheme="blueorange", domain=[-most, most])
        cells = base.mark_rect().encode(color=alt.Color("excess:Q", scale=scale, title="share − chance"))
        marks = base.mark_text(fontSize=10, fontWeight="bold").encode(text="shown:N")
        size = 26 if self.share.shape[1] > 16 else 34
        return (cells + marks.transform_filter("datum.adjusted <= 0.05")).properties(
            width=size * self.share.shape[1], height=size * self.share.shape[0]
        )


def scan_attention(
    model: nn.Module, token_ids: Sequence[int], *, modes: int = 1, orders: int = 999, seed: int = 0
) -> AttentionScan:
    """The periodicity of all heads among ``token_ids``, cyclic tokens in order (the twelve months, say).

    Reads what ``attention_fourier`` reads, of the same models. ``orders`` random orders of the tokens are the null
    hypothesis: p is the share of orders, this one included, in which a head's strongest ``modes`` modes have as much of
    its power. ``adjusted`` takes the largest standardised share over all heads in each order, so that the chance of
    naming any head where none is periodic stays below its level.
    """
    whole("orders", orders, 19)
    scores = head_scores(model, token_ids).double().cpu()
    tokens = scores.shape[-1]
    true = score_spectrum(scores)
    share = true.share(modes).nan_to_num(0.0)  # a head without any scores
    draw = stream(whole("seed", seed), "orders of tokens")
    drawn = torch.stack([torch.randperm(tokens, generator=draw) for _ in range(orders)])
    random = torch.cat([_shares(scores, part, modes) for part in torch.split(drawn, _CHUNK)])  # (orders, layers, heads)
    middle, spread = random.mean(0), random.std(0).clamp_min(1e-12)
    largest = ((random - middle) / spread).flatten(1).amax(1)
    excess = (share - middle) / spread
    above = (random >= share - 1e-12).sum(0)
    overall = (largest[:, None, None] >= excess - 1e-9).sum(0)
    key, query = true.peak()
    return AttentionScan(
        tokens, modes, orders, share, middle, (1 + above) / (1 + orders), (1 + overall) / (1 + orders), key, query
    )


def _shares(scores: Tensor, orders: Tensor, modes: int) -> Tensor:
    """The shares of all heads in every order: (orders, layers, heads)."""
    moved = torch.stack([scores[..., order, :][..., order] for order in orders])
    return score_spectrum(moved).share(modes).nan_to_num(0.0)
