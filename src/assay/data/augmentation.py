"""The usual augmentation of photographs for fine-tuning: a random crop, a flip, other colours, sometimes grey."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def augmented(
    images: Tensor,
    *,
    generator: torch.Generator,
    scale: tuple[float, float] = (0.7, 1.0),
    flip: float = 0.5,
    jitter: float = 0.3,
    grey: float = 0.1,
) -> Tensor:
    """Images (n, channels, height, width) in [0, 1], each changed by its own draws from ``generator`` (on the CPU): a
    square crop of a share of the area in ``scale``, resized back; mirrored with probability ``flip``; brightness,
    contrast and saturation multiplied by factors in 1 ± ``jitter``; grey with probability ``grey``."""
    if not 0 < scale[0] <= scale[1] <= 1 or not all(0 <= share <= 1 for share in (flip, jitter, grey)):
        raise ValueError("scale must lie in (0, 1] and rise; flip, jitter and grey must lie in [0, 1]")
    n = len(images)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(n, *shape, generator=generator).to(device=images.device, dtype=images.dtype)

    side = (scale[0] + (scale[1] - scale[0]) * uniform()).sqrt()
    centre = (1 - side)[:, None] * (2 * uniform(2) - 1)
    mirrored = torch.where(uniform() < flip, -1.0, 1.0)
    across = torch.stack([side * mirrored, torch.zeros_like(side), centre[:, 0]], dim=1)
    down = torch.stack([torch.zeros_like(side), side, centre[:, 1]], dim=1)
    grid = functional.affine_grid(torch.stack([across, down], dim=1), list(images.shape), align_corners=False)
    found = functional.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)
    bright, contrast, saturation = (1 + jitter * (2 * uniform(3) - 1)).T[..., None, None, None]
    found = found * bright
    found = found.mean((1, 2, 3), keepdim=True).lerp(found, contrast)
    shade = found.mean(1, keepdim=True)
    saturation = torch.where(uniform()[:, None, None, None] < grey, torch.zeros_like(saturation), saturation)
    made: Tensor = (shade + (found - shade) * saturation).clamp(0, 1)
    return made
