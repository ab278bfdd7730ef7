"""What is read off a look at stacked runs beside alignments: amplification and the exact bounds, (runs,) each."""

from __future__ import annotations

import torch
from torch import Tensor

from ..learners import Conditions, Look, weighted


def amplification(look: Look, conditions: Conditions) -> dict[str, Tensor]:
    """After over before the inner steps: the shared feature, and own-label noise of the outer samples."""
    noise = look.after.noise_alignment() / look.before.noise_alignment()
    return {
        "feature_amplification": look.feature_amplification(),
        "noise_amplification": weighted(noise, conditions.outer),
    }


def bound_metrics(look: Look, conditions: Conditions) -> dict[str, Tensor]:
    """Quantities that no exact bound allows above 0: falls of j⟨w, ν⟩ in the inner loop and over outer steps, its inner
    growth beyond Jγ‖ν‖², and the movement of validation noise beyond Jγ max|⟨ξ, ξ_val⟩| (runs with a split)."""
    j = look.before.groups
    grown = j.unsqueeze(1) * (look.shared_after() - look.before.shared.unsqueeze(1))
    reach = conditions.inner_steps * conditions.inner_rate
    moved = (look.after.noise - look.before.noise).abs().amax(2)
    inner, outer = conditions.inner > 0, conditions.outer > 0
    cross = (look.before.within.abs() * inner.reshape(len(inner), 1, -1, 1)).amax(2)
    excess = moved - reach.reshape(-1, 1, 1) * cross
    validation = (outer & ~inner).unsqueeze(1)
    beyond = torch.where(validation, excess, -torch.inf).amax((1, 2))
    return {
        "feature_fall": torch.maximum(-look.least_gain.clamp(max=1.0), -grown.amin((1, 2))),
        "feature_inner_excess": grown.amax((1, 2)) - reach * look.before.shared_norm,
        "validation_excess": torch.where(validation.any(-1).squeeze(-1), beyond, torch.nan),
    }
