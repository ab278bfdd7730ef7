"""A small convolutional network on grids of real tiles, trained on coarse or fine labels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from assay.methods.granularity import max_readout
from assay.training import Seeds

from ..learners import Report, errors
from .problem import Tiles


@dataclass(frozen=True)
class TileTraining:
    """A convolution with kernel and stride of a tile, a second layer on each tile, sum pooling and a linear head; Adam
    on fresh arrangements of easy tiles."""

    steps: int
    width: int = 64
    per_subclass: int = 8
    rate: float = 1e-3

    def train(self, tiles: Tiles, seeds: Seeds, labels: str) -> list[Tensor]:
        pools, k = tiles.pools("train"), tiles.subclasses
        classes, pixels = (2 if labels == "coarse" else 2 * k), pools[0].shape[1]
        sizes = ((pixels, self.width), (self.width, self.width), (self.width, classes))
        layers = []
        for i, (fan_in, fan_out) in enumerate(sizes):
            weight = seeds.normal(f"tile layer {i}", fan_in, fan_out) * math.sqrt((2 if i < 2 else 1) / fan_in)
            layers += [weight.requires_grad_(), torch.zeros_like(weight[:, 0]).requires_grad_()]
        optimizer = torch.optim.Adam(layers, lr=self.rate)
        for step in range(self.steps):
            inputs, fine = tiles.sample(seeds, f"tile batch {step}", self.per_subclass, pools)
            target = (fine // k if labels == "coarse" else fine).expand(len(seeds), -1)
            logits = tile_outputs(layers, inputs)
            optimizer.zero_grad()
            loss = functional.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="sum") / len(fine)
            torch.autograd.backward(loss)
            optimizer.step()
        return [layer.detach() for layer in layers]


def tile_outputs(layers: list[Tensor], inputs: Tensor) -> Tensor:
    """(seeds, n, tiles, pixels) -> (seeds, n, classes)."""
    hidden = inputs.flatten(1, 2)
    for weight, bias in zip(layers[:-2:2], layers[1:-2:2], strict=True):
        hidden = torch.relu(torch.baddbmm(bias.unsqueeze(1), hidden, weight))
    pooled = hidden.view(*inputs.shape[:3], -1).sum(2)
    return torch.baddbmm(layers[-1].unsqueeze(1), pooled, layers[-2])


@torch.no_grad()
def tile_errors(layers: list[Tensor], tiles: Tiles, seeds: Seeds, labels: str, per_subclass: int) -> Report:
    """Errors on new arrangements of test tiles, by the outputs or by their maximum over subclasses."""
    pools, k = tiles.pools("test"), tiles.subclasses
    found: Report = {}
    for hard in (False, True):
        inputs, fine = tiles.sample(seeds, f"test tiles {hard}", per_subclass, pools, hard=hard)
        outputs = tile_outputs(layers, inputs)
        mapped = torch.arange(2 * k, device=outputs.device) // k
        scores = outputs if labels == "coarse" else max_readout(outputs, mapped)
        found["hard_error" if hard else "easy_error"] = errors(scores, fine // k)
    return found
