"""ResNet(m): ResNet-18 for small images, stage widths m, 2m, 4m, 8m (the standard network has m = 64)."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn


class Block(nn.Module):
    """Two 3x3 convolutions and the way around them."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, width, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(width)
        self.around: nn.Module = nn.Identity()
        if stride != 1 or channels != width:
            self.around = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = torch.relu(self.first_norm(self.first(inputs)))
        return torch.relu(self.second_norm(self.second(hidden)) + self.around(inputs))


class ResNet(nn.Module):
    """Logits (batch, classes) of images (batch, channels, height, width); the stem is a 3x3 convolution, stride 1."""

    def __init__(
        self, width: int, *, classes: int = 10, channels: int = 3, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        if min(width, classes, channels) < 1:
            raise ValueError(f"width, classes and channels must be at least 1, not {width}, {classes} and {channels}")
        stem = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        self.stem = nn.Sequential(stem, nn.BatchNorm2d(width), nn.ReLU())
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        self.stages = nn.ModuleList(
            nn.Sequential(Block(before, after, stride=1 if before == after else 2), Block(after, after, stride=1))
            for before, after in pairwise(widths)
        )
        self.head = nn.Linear(8 * width, classes)
        self._initialise(generator)

    def _initialise(self, generator: torch.Generator | None) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu", generator=generator)
        nn.init.normal_(self.head.weight, std=self.head.in_features**-0.5, generator=generator)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        hidden = self.stem(images)
        for stage in self.stages:
            hidden = stage(hidden)
        logits: Tensor = self.head(hidden.mean(dim=(2, 3)))
        return logits

    def last_convolutions(self) -> list[nn.Conv2d]:
        """The last 3x3 convolution of every stage."""
        return [stage[-1].second for stage in self.stages]  # type: ignore[index]
