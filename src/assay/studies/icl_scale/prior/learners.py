"""Small transformers trained to classify a query from labelled examples in the prompt, one per seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.training import Stacked
from assay.training.seeds import Seeds

from .problem import PriorRule


class Block(nn.Module):
    """Pre-norm attention and a perceptron. Where only the last token is asked for, the others are keys alone."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_perceptron = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key_value = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.merge = nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: Tensor, last: bool) -> Tensor:
        normed = self.before_attention(tokens)
        asking, kept = (normed[..., -1:, :], tokens[..., -1:, :]) if last else (normed, tokens)
        query = self._split(self.query(asking))
        key, value = (self._split(each) for each in self.key_value(normed).chunk(2, -1))
        weights = (query @ key.mT / math.sqrt(key.shape[-1])).softmax(-1)
        kept = kept + self.merge((weights @ value).transpose(-3, -2).flatten(-2))
        changed: Tensor = kept + self.perceptron(self.before_perceptron(kept))
        return changed

    def _split(self, each: Tensor) -> Tensor:
        """(..., tokens, width) to (..., heads, tokens, width/heads)."""
        return each.reshape(*each.shape[:-1], self.heads, -1).transpose(-3, -2)


class Transformer(nn.Module):
    """Tokens (batch, n+1, d+1) to the log-odds of the query's label (batch,). There are no positions: the order of the
    examples says nothing."""

    def __init__(self, inputs: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"a width of {width} cannot be shared by {heads} heads")
        self.embed = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.read = nn.LayerNorm(width), nn.Linear(width, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        state = self.embed(tokens)
        for at, block in enumerate(self.blocks, 1):
            state = block(state, last=at == len(self.blocks))
        odds: Tensor = self.read(self.norm(state)).squeeze(-1).squeeze(-1)
        return odds


@dataclass(frozen=True)
class Size:
    """Width, layers and heads of a transformer."""

    width: int
    layers: int
    heads: int

    def make(self, dim: int) -> Transformer:
        return Transformer(dim + 1, self.width, self.layers, self.heads)


def train(
    problem: PriorRule,
    size: Size,
    seeds: Seeds,
    *,
    steps: int,
    batch: int,
    rate: float,
    watch: Callable[[int], None] = lambda step: None,
) -> Stacked:
    """A transformer per seed after AdamW on fresh prompts."""
    network = Stacked(lambda: size.make(problem.dim), seeds)
    optimiser = torch.optim.AdamW(network.parameters(), rate)
    for step in range(steps):
        prompts = problem.sample(seeds, f"training {step}", batch)
        odds = network(prompts.tokens())
        losses = functional.softplus(-prompts.answers * odds).mean(1)
        optimiser.zero_grad()
        losses.sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        watch(step + 1)
    return network
