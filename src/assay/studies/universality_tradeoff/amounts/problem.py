"""A set that is related to the target's: the same classes, drawn otherwise."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

SLANT, SIZE, CONTRAST = 0.35, 1.1, 0.6


def related(images: Tensor) -> Tensor:
    """Every image (n, 1, side, side) slanted by a third of its height, a tenth smaller, blurred over neighbours and of
    lower contrast on a brighter ground: what a set of the same classes from another source may look like. CINIC-10 is
    that to CIFAR-10."""
    turn = images.new_tensor([[SIZE, SLANT, 0.0], [0.0, SIZE, 0.0]]).expand(len(images), 2, 3)
    grid = functional.affine_grid(turn, list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, grid, align_corners=False, padding_mode="zeros")
    blurred: Tensor = functional.avg_pool2d(moved, 3, stride=1, padding=1, count_include_pad=False)
    return (1 - CONTRAST) / 2 + CONTRAST * torch.lerp(moved, blurred, 0.5)
