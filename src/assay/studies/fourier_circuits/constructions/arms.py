"""Networks written down rather than trained: do they attain the maximum margin γ* on all p^k inputs?"""

from __future__ import annotations

import torch
from pydantic import Field, field_validator

from assay import lab
from assay.methods.modular_margin import margin_certificate, max_margin, network_logits
from assay.training import Seeds

from ..problem import ModularAddition, check_pairs, pair
from .theory import CONSTRUCTIONS, Construction, construct, diagonal_transform

OF_TWO = ("3-2", "5-2", "7-2", "11-2", "13-2")
OF_MORE = ("3-3", "5-3", "7-3", "11-3", "3-4", "5-4", "7-4", "3-5", "5-5", "3-6")
COMPOSITE = ("9-2", "9-3", "15-2")


class Params(lab.Params):
    cases: tuple[str, ...] = Field(
        OF_TWO + OF_MORE + COMPOSITE, min_length=1, description="pairs p-k whose networks are checked on all p^k"
    )

    @field_validator("cases")
    @classmethod
    def _cases(cls, cases: tuple[str, ...]) -> tuple[str, ...]:
        return check_pairs(cases)


part = lab.Part(
    "constructions",
    params=Params,
    presets={
        "smoke": lab.PartPreset(cases=("3-2", "5-2", "5-3", "3-4", "3-5", "3-6", "9-2")),
        "laptop": lab.PartPreset(fewer={"construction": 4}),
    },
)


@part.arm("construction", over={"construction": list(CONSTRUCTIONS)}, dtype="float64", tolerance=1e-8)
def construction(params: Params, seeds: Seeds, record: lab.Recorder, *, construction: Construction) -> None:
    """Constructed networks on all p^k inputs, with random phases that leave the function as it is."""
    for case in params.cases:
        p, k = pair(case)
        gamma, half = max_margin(p, k), (p - 1) // 2
        turns = 2 * torch.pi * seeds.uniform(f"offsets {case}", half, k)
        built = [construct(p, k, construction, offsets=each) for each in turns.cpu()]
        U, W = (torch.stack(parts).to(seeds.device) for parts in zip(*built, strict=True))
        found = margin_certificate(U, W)
        inputs = ModularAddition(p, k).inputs(torch.arange(p**k, device=seeds.device))
        ideal = torch.nn.functional.one_hot(inputs.sum(1) % p, p).double() - 1 / p
        logits = network_logits(U, W, inputs)
        diagonal = torch.stack([diagonal_transform(u, w) for u, w in zip(U.cpu(), W.cpu(), strict=True)])
        noise = seeds.normal(f"noise {case}", *U.shape[1:], dtype=torch.float64)
        perturbed = margin_certificate(U + 0.01 * U.std((1, 2, 3), keepdim=True) * noise, W)
        reversed_output = margin_certificate(U, W.roll(-1, -1).flip(-1))
        at = {"p": p, "k": k, "neurons": U.shape[-1]}
        record(
            at=at,
            bound=found.bound / gamma,
            margin_ratio=found.margin_ratio,
            mean_margin_ratio=found.mean_margin / found.bound,
            alignment_ratio=found.alignment_ratio,
            logit_deviation=(logits / gamma - ideal).abs().amax((1, 2)),
            diagonal_deviation=(diagonal[:, 1:] / (gamma * p**k) - 1).abs().amax(1),
            perturbed_ratio=perturbed.margin_ratio,
            reversed_ratio=reversed_output.margin_ratio,
        )
        if half > 1:
            each = U.shape[-1] // half
            fewer = margin_certificate(U[..., each:], W[:, each:])
            record(at=at, dropped_margin=fewer.margin_ratio, dropped_alignment=fewer.alignment_ratio)
