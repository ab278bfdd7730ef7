"""The best single neuron, found without Fourier."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def ascend(U: Tensor, W: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Block-coordinate ascent on J of single neurons (Lemma 4.10): each of the k+1 vectors in turn becomes the
    direction of its gradient at length 1/√(k+1). U (k, p, starts), W (starts, p); the columns do not interact."""
    k = U.shape[0]
    length = 1 / math.sqrt(k + 1)

    def unit(vector: Tensor) -> Tensor:
        scaled: Tensor = length * vector / vector.norm(dim=0)
        return scaled

    blocks = [unit(u) for u in (*U, W.mT)]
    for _ in range(steps):
        for turn in range(k + 1):
            # J is linear in each block; its gradient is the transform of the product of the others.
            spectra = [torch.fft.fft(block, dim=0) for block in blocks]
            others = torch.stack([s for i, s in enumerate(spectra[:k]) if i != turn]).prod(0)
            product = others if turn == k else others.conj() * spectra[k]
            product[0] = 0
            blocks[turn] = unit(torch.fft.ifft(product, dim=0).real)
    return torch.stack(blocks[:k]), blocks[k].mT
