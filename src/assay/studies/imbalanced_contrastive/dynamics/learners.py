"""What is seen of one training: the neuron that is purest at the end, followed from the start, and kinds of neurons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from assay.probes.specialisation import lucky_neurons, mixed_neurons

from ..learners import Look, aligned


def purest_neuron(looks: Sequence[Look], features: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Figure 1 for the neuron that is purest at the end, and how far all neurons are: per look its step and what is
    seen there, an entry per seed."""
    final = aligned(looks[-1].encoders.weights, features)[:, 0].square()
    top = final.topk(2, -1).values
    chosen = (top[..., 0] / top[..., 1]).argmax(-1)
    rows = torch.arange(len(final), device=final.device)
    feature = final[rows, chosen].argmax(-1)
    for look in looks:
        weights = look.encoders.weights[:, 0]
        w = weights[rows, chosen]
        inside, outside = w[:, :features], w[:, features:]
        energy = weights.square().sum(-1)
        yield (
            look.step,
            {
                "dominant": w[rows, feature].abs(),
                "other": inside.abs().scatter(1, feature[:, None], torch.nan).nanmedian(1).values,
                "noise_direction": outside.square().mean(1).sqrt(),
                "noise_norm": torch.linalg.vector_norm(outside, dim=-1),
                "feature_share": inside.square().sum(1) / w.square().sum(1),
                "median_feature_share": (weights[..., :features].square().sum(-1) / energy).median(-1).values,
                "noise_rms": (weights[..., features:].square().mean(-1) / energy).median(-1).values.sqrt(),
                "loss": look.loss[:, 0],
            },
        )


def specialists(cosines: Tensor, majority: int) -> dict[str, Any]:
    """Counts of one cell's neurons (seeds, neurons, features): lucky per frequent and per rare feature, mixed."""
    lost = 0 * cosines.double().sum((-1, -2))  # NaN where cosines are
    lucky, strongest = lucky_neurons(cosines), cosines.argmax(-1)
    features = cosines.shape[-1]
    rare = (lucky & (strongest >= majority)).sum(-1).double()
    every = lucky.sum(-1).double()
    found = {
        "lucky": every,
        "mixed": mixed_neurons(cosines).sum(-1).double(),
        "lucky_per_frequent": (every - rare) / majority,
        "lucky_per_rare": rare / max(1, features - majority),
        "features_per_neuron": (cosines.square() >= 0.1).sum(-1).double().mean(-1),
    }
    return {name: count + lost for name, count in found.items()}
