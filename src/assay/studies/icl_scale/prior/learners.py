"""Small transformers trained to classify a query from labelled examples in the prompt, one per seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

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
        kept = tokens[..., -1:, :] if last else tokens
        weights, value = self.attend(tokens, last)
        kept = kept + self.merge((weights @ value).transpose(-3, -2).flatten(-2))
        changed: Tensor = kept + self.perceptron(self.before_perceptron(kept))
        return changed

    def attend(self, tokens: Tensor, last: bool) -> tuple[Tensor, Tensor]:
        """Attention (..., heads, asking, tokens) and the values (..., heads, tokens, width/heads) it averages."""
        normed = self.before_attention(tokens)
        query = self._split(self.query(normed[..., -1:, :] if last else normed))
        key, value = (self._split(each) for each in self.key_value(normed).chunk(2, -1))
        return (query @ key.mT / math.sqrt(key.shape[-1])).softmax(-1), value

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
        state = self.blocks[-1](self.before_last(tokens), last=True)
        odds: Tensor = self.read(self.norm(state)).squeeze(-1).squeeze(-1)
        return odds

    def before_last(self, tokens: Tensor) -> Tensor:
        """What the last layer reads, (batch, n+1, width)."""
        state: Tensor = self.embed(tokens)
        for block in self.blocks[:-1]:
            state = block(state, last=False)
        return state

    def looked_at(self, tokens: Tensor) -> Tensor:
        """The query's attention in the last layer, averaged over heads, (batch, n+1); its own token is the last."""
        weights, _ = cast(Block, self.blocks[-1]).attend(self.before_last(tokens), last=True)
        return weights.squeeze(-2).mean(-2)


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
    optimiser = torch.optim.AdamW(network.parameters(), rate, fused=True)
    for step in range(steps):
        prompts = problem.sample(seeds, f"training {step}", batch)
        odds = network(prompts.tokens())
        losses = functional.softplus(-prompts.answers * odds).mean(1)
        optimiser.zero_grad()
        losses.sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        watch(step + 1)
    return network


@torch.no_grad()
def attention_to_examples(network: Stacked, size: Size, tokens: Tensor) -> Tensor:
    """Attention to an example over that to the query itself, token for token and the median over prompts, (seeds,)."""
    ratios = []
    for at, prompts in enumerate(tokens):
        one = size.make(tokens.shape[-1] - 1).to(tokens)
        one.load_state_dict({name: values[at] for name, values in network.weights.items()})
        looked = one.looked_at(prompts)
        ratios.append((looked[:, :-1].mean(1) / looked[:, -1]).median())
    return torch.stack(ratios)
