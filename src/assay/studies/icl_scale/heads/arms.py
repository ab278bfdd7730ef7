"""Does training find the parity networks? Few and many heads, on the exact loss and in the theorem's range."""

from __future__ import annotations

import torch
from pydantic import Field

from assay import lab
from assay.training import Seeds

from ..construction.problem import SparseParity
from ..construction.theory import largest_rare_rate, share_alike, squared_norm
from ..params import Parity
from .learners import HeadTraining, margins, patterns

# The source's numbers of heads, 2(ν₁ + 1) and 2(ν₂ + 1), for two important signs among 4 and among 8.
NETWORKS = [{"bits": 2, "heads": 4}, {"bits": 2, "heads": 6}, {"bits": 3, "heads": 4}, {"bits": 3, "heads": 8}]


class Params(Parity):
    head_steps: int = Field(3000, ge=1, description="Adam steps on the exact parity loss")
    head_starts: int = Field(16, ge=1, description="random starts per seed, of which the best counts")
    head_decay: float = Field(0.005, gt=0, description="weight of the squared norm, in units of the rare tasks' rate")


part = lab.Part(
    "heads",
    params=Params,
    presets={
        "smoke": lab.PartPreset(head_steps=200, head_starts=4),
        "paper": lab.PartPreset(head_steps=20_000, head_starts=64, head_decay=0.001),
    },
)


@part.arm("heads", over=NETWORKS, tolerance=0.05)
def trained_heads(params: Params, seeds: Seeds, record: lab.Recorder, *, bits: int, heads: int) -> None:
    """Diagonal heads trained from many starts; the start with the lowest penalised loss of each seed."""
    rare = largest_rare_rate(SparseParity(bits, 1, params.gamma)) / 2
    problem = SparseParity(bits, 1, params.gamma, rare)
    recipe = HeadTraining(heads, params.head_steps, params.head_starts, decay=params.head_decay * rare)
    found = recipe.train(problem, seeds)
    rows, labels, weights = patterns(problem, seeds)
    reached = margins(found, recipe.signs.to(found), rows, labels)
    losses = ((1 - reached).clamp(min=0) * weights).sum(-1)
    norms = found.square().sum((-2, -1))
    best = (losses + recipe.decay * norms).argmin(1)
    at = torch.arange(len(seeds), device=found.device)
    important = weights > rare  # patterns of the important task
    singular = torch.linalg.svdvals(found[at, best])
    record(
        loss_share=losses[at, best] / rare,
        median_loss_share=losses.median(1).values / rare,
        printed_loss_share=share_alike(problem) if heads == 4 else 0.0,
        norm=norms[at, best],
        printed_norm=squared_norm(problem, heads // 2 - 1),
        important_margin=reached[at, best][:, important].amin(1),
        rare_margin=reached[at, best][:, ~important].amin(1),
        rank=(singular > 0.05 * singular[:, :1]).sum(1),
    )
    record.note(rare_rate=rare)
