"""The runners of the races in the proofs, read off a look at stacked runs: (runs,) each."""

from __future__ import annotations

import torch
from torch import Tensor

from ..learners import Conditions, Look
from ..problem import Products
from ..theory import feature_alignment


def stage_metrics(look: Look, conditions: Conditions) -> dict[str, Tensor]:
    """The runners of both races before the inner steps: the smaller and the larger Λ_j, and the least and the largest Ξ
    of the outer samples."""
    feature = feature_alignment(look.before.shared)
    least, largest = _ends(look.before.noise_alignment(), conditions)
    return {
        "feature_alignment": feature.amin(-1),
        "largest_feature_alignment": feature.amax(-1),
        "least_noise_alignment": least,
        "largest_noise_alignment": largest,
    }


def outer_energy(products: Products, conditions: Conditions) -> dict[str, Tensor]:
    """The least and the largest ‖ξ‖² of the outer samples."""
    least, largest = _ends(products.within.diagonal(dim1=-2, dim2=-1), conditions)
    return {"least_energy": least, "largest_energy": largest}


def _ends(values: Tensor, conditions: Conditions) -> tuple[Tensor, Tensor]:
    """Least and largest over tasks and the outer samples of values (runs, tasks, samples)."""
    chosen = (conditions.outer > 0).unsqueeze(1)
    kept = [torch.where(chosen, values, edge) for edge in (torch.inf, -torch.inf)]
    return kept[0].amin((1, 2)), kept[1].amax((1, 2))
