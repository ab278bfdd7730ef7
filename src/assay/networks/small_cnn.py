"""A small convolutional network for contrastive learning on small images."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


class SmallCnn(nn.Module):
    """Three 3x3 convolutions of stride 2 with batch normalisation; features are the mean over positions."""

    def __init__(self, channels: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        sizes = [channels, width, 2 * width, 4 * width]
        layers: list[nn.Module] = []
        for before, after in pairwise(sizes):
            layers += [nn.Conv2d(before, after, 3, 2, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        kaiming_(self, generator)

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = self.layers(images)
        return maps.mean(dim=(2, 3))


def kaiming_(module: nn.Module, generator: torch.Generator) -> None:
    """He initialisation of every convolution and linear layer, biases zero, drawn with ``generator``."""
    for part in module.modules():
        if isinstance(part, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu", generator=generator)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
