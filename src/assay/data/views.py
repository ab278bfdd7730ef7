"""Random views of images, for contrastive learning."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def random_view(images: Tensor, generator: torch.Generator | None = None, *, smallest: float = 0.3) -> Tensor:
    """A random view of each image: crop and resize, brightness and contrast; colour images also flip, jitter in
    saturation and sometimes lose their colour. Draws are made on the CPU, with torch's own generator where none is
    given, the work on the images' device."""
    n, channels = images.shape[:2]
    draw = torch.rand(n, 8, generator=generator).to(images.device)
    side = (smallest + (1 - smallest) * draw[:, 0]).sqrt()
    flip = torch.where((draw[:, 1] < 0.5) & (channels == 3), -1.0, 1.0)
    theta = torch.zeros(n, 2, 3, device=images.device)
    theta[:, 0, 0], theta[:, 1, 1] = side * flip, side
    theta[:, :, 2] = (2 * draw[:, 2:4] - 1) * (1 - side).unsqueeze(1)
    grid = functional.affine_grid(theta, list(images.shape), align_corners=False)
    view = functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
    factor = (0.6 + 0.8 * draw[:, 4:7]).view(n, 3, 1, 1, 1).unbind(1)
    view = view * factor[0]
    view = (view - view.mean((1, 2, 3), keepdim=True)) * factor[1] + view.mean((1, 2, 3), keepdim=True)
    if channels == 3:
        grey = view.mean(1, keepdim=True)
        keep = torch.where(draw[:, 7, None, None, None] < 0.2, 0.0, factor[2])
        view = grey + (view - grey) * keep
    return view.clamp(0, 1)
