"""Small transformers on modular addition, all seeds at once, with attention scores written out.

Fused attention is slow for many heads on sequences of a few tokens, so scores are plain products. The answer is read at
the last position alone, so the last layer computes nothing else; with one layer and no dropout its keys and values are
tables over (position, token) and its query is one vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding, gelu, layer_norm

from assay.probes.score_spectrum import score_spectrum
from assay.training.seeds import Seeds, stream

from ..learners import mean_loss
from ..problem import Form, ModularAddition

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Transformer:
    """A pre-LayerNorm transformer with learned positions; every weight N(0, 1/fan-in), token embeddings times √dim.

    ``mlp`` is the width of the GELU block (0: none). ``layernorm`` and ``positions`` can be switched off.
    """

    dim: int = 64
    heads: int = 4
    head_dim: int = 16
    layers: int = 1
    mlp: int = 256
    dropout: float = 0.0
    layernorm: bool = True
    positions: bool = True
    form: Form = "short"

    def __post_init__(self) -> None:
        if min(self.dim, self.heads, self.head_dim, self.layers) < 1 or self.mlp < 0 or not 0 <= self.dropout < 1:
            raise ValueError("dim, heads, head_dim and layers are at least 1, mlp at least 0, dropout in [0, 1)")

    def initial(self, problem: ModularAddition, seeds: Seeds) -> Weights:
        inner = self.heads * self.head_dim
        shapes = {"tokens": (problem.vocabulary(self.form), self.dim), "readout": (self.dim, problem.p)}
        if self.positions:
            shapes["positions"] = (problem.length(self.form), self.dim)
        for layer in range(self.layers):
            shapes |= {f"{layer}.{name}": (self.dim, inner) for name in ("query", "key", "value")}
            shapes[f"{layer}.output"] = (inner, self.dim)
            if self.mlp:
                shapes |= {f"{layer}.up": (self.dim, self.mlp), f"{layer}.down": (self.mlp, self.dim)}
        weights = {}
        for name, (rows, columns) in shapes.items():
            fan_in = columns if name in ("tokens", "positions") else rows
            weights[name] = seeds.normal(f"transformer {name}", rows, columns) * fan_in**-0.5
        if self.layernorm:
            norms = ["final"] + [f"{layer}.{name}" for layer in range(self.layers) for name in ("norm", "mlp_norm")]
            ones = torch.ones(len(seeds), self.dim, device=seeds.device, dtype=seeds.dtype)
            weights |= {f"{name}.gain": ones.clone() for name in norms}
        return weights

    def logits(self, weights: Weights, tokens: Tensor, drop: Dropout | None = None) -> Tensor:
        """Logits (seeds, n, p) at the last position of token sequences (seeds, n, length)."""
        if self.layers == 1 and drop is None:
            last = self._one_layer(weights, tokens)
        else:
            last = self._every_layer(weights, tokens, drop)
        return self._norm(weights, "final", last) @ weights["readout"]

    def token_inputs(self, weights: Weights, tokens: int) -> Tensor:
        """What the first layer's attention reads off the number tokens, without a position: (seeds, tokens, dim)."""
        return self._norm(weights, "0.norm", weights["tokens"][:, :tokens] * math.sqrt(self.dim))

    def head_tables(self, weights: Weights, tokens: int, reads: Tensor | None = None) -> Tensor:
        """E W^K W^{Qᵀ} Eᵀ of every head of the first layer on the number tokens: (seeds, heads, tokens, tokens), keys
        along the rows. ``reads`` stands in for the embeddings when they come from another network."""
        reads = self.token_inputs(weights, tokens) if reads is None else reads
        keys, queries = (self._split(reads @ weights[f"0.{name}"]).transpose(1, 2) for name in ("key", "query"))
        return keys @ queries.mT

    def _embed(self, weights: Weights, tokens: Tensor) -> Tensor:
        seeds, _, length = tokens.shape
        table = weights["tokens"]
        first = (table.shape[1] * torch.arange(seeds, device=tokens.device)).view(-1, 1, 1)
        x = embedding(tokens + first, table.flatten(0, 1)) * math.sqrt(self.dim)
        if self.positions:
            x = x + weights["positions"][:, None, :length]
        return x

    def _one_layer(self, weights: Weights, tokens: Tensor) -> Tensor:
        seeds, _, length = tokens.shape
        vocabulary = weights["tokens"].shape[1]
        x = weights["tokens"].unsqueeze(1) * math.sqrt(self.dim)  # (seeds, 1, vocabulary, dim)
        if self.positions:
            x = x + weights["positions"].unsqueeze(2)
        x = x.expand(seeds, length, vocabulary, self.dim)
        reads = self._norm(weights, "0.norm", x)
        equals = int(tokens[0, 0, -1])
        query = self._split(reads[:, -1, equals].unsqueeze(1) @ weights["0.query"])  # (seeds, 1, heads, head_dim)
        flat = reads.flatten(1, 2)
        scores = (self._split(flat @ weights["0.key"]) * query).sum(-1) / math.sqrt(self.head_dim)
        values = flat @ weights["0.value"]
        first = vocabulary * torch.arange(length, device=tokens.device)
        first = first + (length * vocabulary * torch.arange(seeds, device=tokens.device)).view(-1, 1, 1)
        index = tokens + first
        attention = embedding(index, scores.flatten(0, 1)).softmax(2)  # (seeds, n, length, heads)
        read = self._split(embedding(index, values.flatten(0, 1)))  # (seeds, n, length, heads, head_dim)
        mixed = (attention.unsqueeze(-1) * read).sum(2).flatten(2)
        return self._mlp(weights, 0, x[:, -1, equals].unsqueeze(1) + mixed @ weights["0.output"], None)

    def _every_layer(self, weights: Weights, tokens: Tensor, drop: Dropout | None) -> Tensor:
        x = self._embed(weights, tokens)
        if drop is not None:
            x = drop(x)
        for layer in range(self.layers):
            only_last = layer == self.layers - 1
            mixed = self._attention(weights, layer, self._norm(weights, f"{layer}.norm", x), only_last)
            x = (x[:, :, -1:] if only_last else x) + (mixed if drop is None else drop(mixed))
            x = self._mlp(weights, layer, x.flatten(1, 2), drop).view(x.shape)
        return x[:, :, -1]

    def _attention(self, weights: Weights, layer: int, reads: Tensor, only_last: bool) -> Tensor:
        seeds, n, length, _ = reads.shape

        def project(name: str, rows: Tensor) -> Tensor:
            flat = rows.flatten(1, 2) @ weights[f"{layer}.{name}"]
            return flat.view(seeds, n, -1, self.heads, self.head_dim).transpose(2, 3)

        query = project("query", reads[:, :, -1:] if only_last else reads)
        key, value = project("key", reads), project("value", reads)
        scores = query @ key.mT / math.sqrt(self.head_dim)
        if not only_last:
            future = torch.ones(length, length, dtype=torch.bool, device=reads.device).triu(1)
            scores = scores.masked_fill(future, -math.inf)
        mixed = (scores.softmax(-1) @ value).transpose(2, 3).flatten(3)
        out = mixed.flatten(1, 2) @ weights[f"{layer}.output"]
        return out.view(seeds, n, -1, self.dim)

    def _mlp(self, weights: Weights, layer: int, x: Tensor, drop: Dropout | None) -> Tensor:
        if not self.mlp:
            return x
        added = gelu(self._norm(weights, f"{layer}.mlp_norm", x) @ weights[f"{layer}.up"]) @ weights[f"{layer}.down"]
        return x + (added if drop is None else drop(added))

    def _norm(self, weights: Weights, name: str, x: Tensor) -> Tensor:
        if not self.layernorm:
            return x
        gain = weights[f"{name}.gain"]
        return layer_norm(x, (self.dim,)) * gain.view(len(gain), *[1] * (x.ndim - 2), self.dim)

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, self.head_dim)


class Dropout:
    """Masks from each seed's own stream on its device, so that they do not depend on the company."""

    def __init__(self, share: float, seeds: Seeds) -> None:
        self.keep = 1 - share
        self.generators = [
            torch.Generator(seeds.device).manual_seed(stream(seed, "dropout").initial_seed()) for seed in seeds
        ]

    def __call__(self, x: Tensor) -> Tensor:
        shape = x.shape[1:]
        masks = [torch.rand(shape, generator=g, device=x.device) < self.keep for g in self.generators]
        return x * torch.stack(masks) / self.keep


@dataclass(frozen=True)
class TransformerRecipe:
    """AdamW on the cross-entropy of the answer."""

    steps: int
    rate: float = 1e-3
    decay: float = 1e-3
    batch: int = 512
    warmup: int = 10
    betas: tuple[float, float] = (0.9, 0.98)
    every: int = 25

    def train(
        self, model: Transformer, problem: ModularAddition, start: Weights, train: Tensor, seeds: Seeds
    ) -> Iterator[tuple[int, Weights]]:
        """Yield (step, weights) at step 0 and every ``every`` steps, training on flat indices (seeds, n)."""
        weights = {name: part.clone().requires_grad_(True) for name, part in start.items()}
        optimizer = torch.optim.AdamW(
            weights.values(), lr=self.rate, betas=self.betas, weight_decay=self.decay, fused=True
        )
        drop = Dropout(model.dropout, seeds) if model.dropout else None
        batch = min(self.batch, train.shape[1])
        yield 0, {name: part.detach() for name, part in weights.items()}
        batches = seeds.batches("batches", train.shape[1], batch, self.steps)
        for step, index in enumerate(batches, start=1):
            inputs = problem.inputs(train.gather(1, index))
            for group in optimizer.param_groups:
                group["lr"] = self.rate * min(1.0, step / max(1, self.warmup))
            logits = model.logits(weights, problem.sequence(inputs, model.form), drop)
            optimizer.zero_grad()
            mean_loss(logits, problem.labels(inputs)).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if step % self.every == 0 or step == self.steps:
                yield step, {name: part.detach() for name, part in weights.items()}


def correct(model: Transformer, problem: ModularAddition, weights: Weights, flat: Tensor, piece: int = 4096) -> Tensor:
    """Which of the inputs with flat indices (seeds, n) are answered rightly: (seeds, n)."""
    found = []
    with torch.no_grad():
        for part in torch.split(flat, piece, dim=1):
            inputs = problem.inputs(part)
            answers = model.logits(weights, problem.sequence(inputs, model.form)).argmax(-1)
            found.append(answers == problem.labels(inputs))
    return torch.cat(found, 1)


def share_correct(right: Tensor, among: Tensor) -> Tensor:
    """The accuracy on the chosen inputs (seeds, n): (seeds,)."""
    return (right & among).double().sum(1) / among.double().sum(1)


def attention_shares(
    model: Transformer, problem: ModularAddition, start: Weights, trained: Weights, seeds: Seeds
) -> dict[str, Tensor]:
    """Medians over the heads of the share of the strongest modes, trained and at the start: (seeds,) each.

    ``embedding``: the trained embeddings under the key-query weights of the start. ``shuffled``: the trained heads
    with the tokens in a random order, where no cycle is left to see.
    """
    p = problem.p
    tables = {
        "trained": model.head_tables(trained, p),
        "untrained": model.head_tables(start, p),
        "embedding": model.head_tables(start, p, reads=model.token_inputs(trained, p)),
    }
    order = seeds.permutation("token order", p)
    rows = tables["trained"].gather(2, order[:, None, :, None].expand_as(tables["trained"]))
    tables["shuffled"] = rows.gather(3, order[:, None, None, :].expand_as(rows))
    found: dict[str, Tensor] = {}
    for name, table in tables.items():
        spectrum = score_spectrum(table.double())
        most = spectrum.power[0, 0].numel()  # p = 3 has a single mode
        found |= {f"top{modes}_{name}": spectrum.share(min(modes, most)).median(1).values for modes in (1, 2)}
    return found
