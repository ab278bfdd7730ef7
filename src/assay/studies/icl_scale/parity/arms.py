"""What do finite prompts do to the parity networks? Small, large and four-head network on the same prompts."""

from __future__ import annotations

import torch
from pydantic import Field, PositiveInt

from assay import lab
from assay.training import Seeds

from ..construction.problem import SparseParity
from ..construction.theory import Heads, constructed, four_heads, projection
from ..params import Parity
from .problem import Reads, read_prompts

FLIPS = (0.0, 0.2, 0.5, 0.8, 1.0)


class Params(Parity):
    parity_bits: int = Field(4, ge=3, description="ν₂: there are d = 2^ν₂ hidden signs")
    parity_lengths: tuple[PositiveInt, ...] = Field(
        (16, 64, 128, 256, 512, 1024, 4096), min_length=3, description="examples M in a parity prompt"
    )
    parity_prompts: int = Field(10_000, ge=100, description="parity prompts per seed and length")


part = lab.Part(
    "parity",
    params=Params,
    presets={
        "smoke": lab.PartPreset(parity_prompts=500, parity_lengths=(64, 256, 1024)),
        "paper": lab.PartPreset(parity_prompts=50_000),
    },
)


@part.arm(
    "parity",
    over={"important_bits": [1, 2], "length": lambda p: p.parity_lengths},
    uses=("gamma", "parity_bits", "parity_prompts"),
    tolerance=2e-3,
)
def parity(params: Params, seeds: Seeds, record: lab.Recorder, *, important_bits: int, length: int) -> None:
    """Accuracy on prompts of one length, with and without flipped labels; the noise that each network lets in."""
    problem = SparseParity(params.parity_bits, important_bits, params.gamma)
    networks = {
        "small": constructed(problem, important_bits),
        "large": constructed(problem, params.parity_bits),
        "four heads": four_heads(problem),
    }
    networks = {
        name: Heads(heads.a.to(seeds.device, seeds.dtype), heads.V.to(seeds.device, seeds.dtype))
        for name, heads in networks.items()
    }
    for tasks in ("important", "alike"):
        for flipped in FLIPS if tasks == "important" else FLIPS[:1]:
            reads = read_prompts(problem, seeds, tasks, params.parity_prompts, length, flipped)
            for name, heads in networks.items():
                outputs = heads.on_products(reads.products)
                right = (outputs >= 0) == (reads.labels > 0)
                at = {"network": name, "tasks": tasks, "flipped": flipped}
                record(at=at, trials=params.parity_prompts, accuracy=right.double().mean(1))
                if tasks == "important" and flipped == 0:
                    _noise(heads, reads, length, record, name)


def _noise(heads: Heads, reads: Reads, length: int, record: lab.Recorder, name: str) -> None:
    """The energy of the noise that reaches the heads, and what signal and noise together leave unexplained."""
    outputs = heads.on_products(reads.products)
    noise = reads.noise @ projection(heads)
    rest = outputs - heads.on_products(reads.signal + noise)
    record(
        at={"network": name},
        noise_energy=length * noise.square().sum(-1).mean(1),
        residual=rest.square().mean(1).sqrt(),
        mean_margin=(reads.labels * outputs).mean(1),
        output_deviation=torch.std(reads.labels * outputs, dim=1),
    )
