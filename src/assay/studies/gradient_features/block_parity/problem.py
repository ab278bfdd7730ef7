"""Parities of blocks: the label is the sign of the sum of r parities of k coordinates, on inputs with structure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from assay.methods.gradient_bounds import Assumption
from assay.training.seeds import Seeds

from ..problem import Sample


@dataclass(frozen=True, eq=False)
class BlockParity:
    """x = Mφ. With probability p_A each, one block is all +1 or all −1 and the others are 0; otherwise all blocks are
    uniform signs. Background coordinates are +1, −1, 0 with probabilities p_o, p_o, 1 − 2p_o."""

    dim: int
    size: int  # k coordinates per block
    blocks: int = 1  # r
    structured: float = 0.25  # p_A
    background: float = 0.5  # p_o
    rotation: Tensor | None = None  # M (dim, dim); the identity without one

    def __post_init__(self) -> None:
        r, k = self.blocks, self.size
        if r % 2 == 0 or r < 1:
            raise ValueError(f"the number of blocks is odd, so that their parities never tie, and {r} is not")
        if k % 2 == 0 or k < 1:
            raise ValueError(f"the size of a block is odd, and {k} is not")
        if r * k > self.dim:
            raise ValueError(f"{r} blocks of {k} coordinates do not fit into {self.dim} dimensions")
        if not 0 <= 2 * r * self.structured <= 1:
            raise ValueError(f"2r·p_A = {2 * r * self.structured:g} is no probability")
        if not 0 <= self.background <= 0.5:
            raise ValueError(f"p_o lies between 0 and 1/2, and {self.background:g} does not")
        if self.rotation is not None:
            off = self.rotation @ self.rotation.T - torch.eye(self.dim).to(self.rotation)
            if self.rotation.shape != (self.dim, self.dim) or float(off.abs().max()) > 1e-4:
                raise ValueError(f"the rotation M must be an orthonormal {self.dim} × {self.dim} matrix")

    @property
    def features(self) -> Tensor:
        """(blocks, dim): D_j = M·1_{A_j}/√k."""
        phi = torch.zeros(self.blocks, self.dim)
        for j in range(self.blocks):
            phi[j, j * self.size : (j + 1) * self.size] = 1 / math.sqrt(self.size)
        return phi if self.rotation is None else phi @ self.rotation.T.to(phi)

    @property
    def spread(self) -> float:
        """Deviation of ⟨w, x⟩ over standard normal w when all blocks are uniform."""
        relevant = self.blocks * self.size
        return math.sqrt(relevant + 2 * self.background * (self.dim - relevant))

    def sample(self, seeds: Seeds, name: str, n: int) -> Sample:
        """Components 2j and 2j + 1 have block j all +1 or all −1; 2·blocks is the uniform one."""
        r, k = self.blocks, self.size
        uniform_at = 2 * r
        component = torch.full((len(seeds), n), uniform_at, device=seeds.device)
        if self.structured:
            drawn = (seeds.uniform(f"{name} components", n) / self.structured).long()
            component = drawn.clamp(max=uniform_at)
        signs = torch.where(seeds.uniform(f"{name} blocks", n, r, k) < 0.5, -1.0, 1.0).to(seeds.dtype)
        uniform = component == uniform_at
        side = (1.0 - 2.0 * (component % 2)).to(seeds.dtype)
        only = one_hot((component // 2).clamp(max=r - 1), r) * side.unsqueeze(-1)  # (seeds, n, r)
        labels = torch.where(uniform, signs.prod(-1).sum(-1).sign(), side)
        signs = torch.where(uniform[..., None, None], signs, only.unsqueeze(-1).expand_as(signs))
        rest = seeds.uniform(f"{name} background", n, self.dim - r * k)
        rest = (rest < self.background).to(seeds.dtype) - (rest >= 1 - self.background).to(seeds.dtype)
        phi = torch.cat([signs.flatten(2), rest], -1)
        return Sample(phi if self.rotation is None else phi @ self.rotation.T.to(phi), labels, component)

    def assumptions(self, tau: float = 8.0) -> tuple[Assumption, ...]:
        """The theory's conditions with its unspecified constants set to 1."""
        r, k, d = self.blocks, self.size, self.dim
        log = tau * math.log(d)
        return (
            Assumption("block size k", k, low=log),
            Assumption("dimension d", d, low=r * k + r * log),
            Assumption("background p_o", self.background, high=r * k / max(1, d - r * k)),
            Assumption("structure p_A", self.structured, low=1 / d, high=1 / (2 * r)),
        )
