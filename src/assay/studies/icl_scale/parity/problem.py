"""What parity networks read off finite prompts, sampled without the examples themselves.

A network sees a prompt only through z = Σ yφ/M. Outside the task's pair the terms are fair signs, independent of all
else; on the pair they follow from how often each of the four patterns came, and how often with a flipped label.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.seeds import Seeds

from ..construction.problem import PATTERNS, SparseParity


@dataclass(frozen=True)
class Reads:
    """u = z ⊙ φ (seeds, prompts, d) for queries φ with labels (seeds, prompts). ``signal`` is its limit on long
    prompts without flips, ``noise`` fair signs averaged over the examples, equal to u outside the task's pair."""

    products: Tensor
    labels: Tensor
    signal: Tensor
    noise: Tensor


def read_prompts(
    problem: SparseParity, seeds: Seeds, which: str, prompts: int, examples: int, flipped: float = 0.0
) -> Reads:
    """Prompts of tasks drawn from a set, each label flipped with a probability. Tasks and queries are the same for
    every number of examples and flips."""
    if examples < 1 or not 0 <= flipped <= 1:
        raise ValueError(f"{examples} examples and flips with probability {flipped}: at least 1, and from 0 to 1")
    choices = problem.tasks(which).to(seeds.device)
    chosen = seeds.uniform(f"{which} tasks", prompts).mul(len(choices)).long().clamp(max=len(choices) - 1)
    tasks = choices[chosen]  # (seeds, prompts, 2)
    query, labels = problem.examples(seeds, f"{which} queries", tasks, 1)
    query = query.squeeze(2)
    name = f"{which} prompts of {examples}, {flipped:g} flipped"
    fair = seeds.draw(f"{name}, signs", lambda g: _fair(examples, (prompts, problem.dim), g))
    counts = seeds.draw(f"{name}, patterns", lambda g: _signed_counts(problem, examples, flipped, prompts, g))
    # The label times one sign of the pair is the other sign.
    pair = counts @ PATTERNS.flip(1).to(counts) / examples  # (seeds, prompts, 2)
    own = query.gather(2, tasks)
    noise = fair * query
    products = noise.scatter(2, tasks, pair * own)
    signal = torch.zeros_like(noise).scatter(2, tasks, 2 * problem.gamma * own)
    return Reads(products, labels.squeeze(2), signal, noise)


def _fair(examples: int, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Averages of so many fair signs."""
    heads = torch.binomial(torch.full(shape, float(examples)), torch.full(shape, 0.5), generator=generator)
    return 2 * heads / examples - 1


def _signed_counts(
    problem: SparseParity, examples: int, flipped: float, prompts: int, generator: torch.Generator
) -> Tensor:
    """How often each pattern came with its own label, minus how often with the other: (prompts, 4)."""
    left, rest, counts = torch.full((prompts,), float(examples)), 1.0, []
    for chance in problem.probabilities.tolist():
        share = torch.full((prompts,), min(1.0, chance / rest) if rest > 1e-9 else 1.0)
        counts.append(torch.binomial(left, share, generator=generator))
        left, rest = left - counts[-1], rest - chance
    came = torch.stack(counts, 1)
    return came - 2 * torch.binomial(came, torch.full_like(came, flipped), generator=generator)
