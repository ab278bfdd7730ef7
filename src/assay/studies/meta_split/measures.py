"""What is read off a look at stacked runs: alignments, amplification, memorisation, bounds. All results are (runs,)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from . import theory
from .learners import Conditions, Look, Products


def feature_alignment(shared: Tensor) -> Tensor:
    """Λ_j = max_r j⟨w_{j,r}, ν⟩ for j = +1, −1: (..., 2m) -> (..., 2)."""
    plus, minus = shared.chunk(2, -1)
    return torch.stack([plus.amax(-1), (-minus).amax(-1)], -1)


def noise_alignment(products: Products, own: bool = True) -> Tensor:
    """Ξ_{k,i} = max_r ⟨w_{y,r}, ξ_{k,i}⟩ over filters of the sample's own label, or Γ_{k,i} over the others: (runs,
    tasks, samples)."""
    plus, minus = (half.amax(2) for half in products.noise.chunk(2, 2))
    return torch.where((products.labels > 0) == own, plus, minus)


def _weighted(values: Tensor, weights: Tensor) -> Tensor:
    """Mean over tasks and the samples that ``weights`` (runs, samples) counts."""
    return (values * weights.unsqueeze(1)).sum(-1).mean(-1)


def alignment_metrics(look: Look, conditions: Conditions, memorised_at: Tensor | float) -> dict[str, Tensor]:
    """Feature and noise before the inner steps, and their ratio with the smaller and the larger Λ_j."""
    feature = feature_alignment(look.before.shared)
    own = noise_alignment(look.before)
    noise = _weighted(own, conditions.outer)
    level = torch.as_tensor(memorised_at, dtype=own.dtype, device=own.device).reshape(-1, 1, 1)
    task = (look.before.feature - look.before.shared.unsqueeze(1)).abs().amax((1, 2))
    return {
        "feature_alignment": feature.amin(-1),
        "largest_feature_alignment": feature.amax(-1),
        "noise_alignment": noise,
        "feature_over_noise": feature.amin(-1) / noise,
        "largest_feature_over_noise": feature.amax(-1) / noise,
        "memorised": _weighted((own >= level).to(own.dtype), conditions.outer),
        "wrong_noise_alignment": noise_alignment(look.before, own=False).amax((1, 2)),
        "task_over_feature": task / feature.amin(-1),
    }


def amplification(look: Look, conditions: Conditions) -> dict[str, Tensor]:
    """After over before the inner steps: the shared feature, and own-label noise of the outer samples."""
    before, after = feature_alignment(look.before.shared).unsqueeze(1), feature_alignment(look.shared_after())
    noise = noise_alignment(look.after) / noise_alignment(look.before)
    return {
        "feature_amplification": (after / before).mean((1, 2)),
        "noise_amplification": _weighted(noise, conditions.outer),
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


@dataclass(frozen=True)
class Growth:
    """Early growth per outer step and unit rate, measured over predicted; all (runs,)."""

    feature: Tensor
    feature_predicted: Tensor
    outer_noise: Tensor
    outer_noise_median: Tensor
    inner_only_noise: Tensor
    feature_gain: Tensor
    noise_gain: Tensor
    predicted_feature_gain: Tensor
    predicted_noise_gain: Tensor


def early_growth(first: Look, last: Look, conditions: Conditions) -> Growth:
    """Compare two looks while everything is tiny, sample by sample with each sample's own ‖ξ‖².

    ``outer_noise`` is the mean over the samples of the outer set of their rate over its prediction,
    ``inner_only_noise`` the median |rate| of samples that only the inner loop sees, over what the validation noise has.
    """
    steps = last.step - first.step
    eta, h = conditions.outer_rate, conditions.knee
    gamma, J = conditions.inner_rate, conditions.inner_steps
    tasks = first.before.labels.shape[1]
    energy = first.before.within.diagonal(dim1=-2, dim2=-1)
    inner, outer = conditions.inner.unsqueeze(1), conditions.outer.unsqueeze(1)

    def per_run(values: Tensor) -> Tensor:
        return values.reshape(-1, 1, 1)

    def rate(before: Tensor, after: Tensor) -> Tensor:
        return ((after / before).log() / steps).expm1() / eta.reshape(-1, *[1] * (before.dim() - 1))

    share = 0.5 * (first.before.norms / (2 * h).unsqueeze(-1))
    gain = (1 + gamma.unsqueeze(-1) * share) ** J.unsqueeze(-1)
    feature = rate(feature_alignment(first.before.shared), feature_alignment(last.before.shared)).mean(-1)
    predicted = 0.5 * first.before.shared_norm / (2 * h) * gain.mean(-1)
    noise_gain = (1 + per_run(gamma) * inner * energy / per_run(2 * h)) ** per_run(J)
    seen = rate(noise_alignment(first.before), noise_alignment(last.before))
    noise = seen / (outer * energy / per_run(2 * h) / tasks * noise_gain)
    validation = conditions.outer.amax(-1).reshape(-1, 1, 1) * energy / per_run(2 * h) / tasks
    gains = amplification(last, conditions)
    chosen = outer > 0
    return Growth(
        feature=feature / predicted,
        feature_predicted=predicted,
        outer_noise=_mean_where(noise, chosen),
        outer_noise_median=_median_where(noise, chosen),
        inner_only_noise=_median_where((seen / validation).abs(), (inner > 0) & ~chosen),
        feature_gain=gains["feature_amplification"],
        noise_gain=_median_where(noise_alignment(last.after) / noise_alignment(last.before), chosen),
        predicted_feature_gain=gain.mean(-1),
        predicted_noise_gain=_median_where(noise_gain, chosen),
    )


def _mean_where(values: Tensor, chosen: Tensor) -> Tensor:
    kept = torch.where(chosen, values, torch.nan).flatten(1)
    return kept.nanmean(-1)


def _median_where(values: Tensor, chosen: Tensor) -> Tensor:
    """The usual median (mean of the middle two) of the chosen samples; NaN where there is none."""
    kept = torch.where(chosen, values, torch.nan).flatten(1)
    return torch.nanquantile(kept, 0.5, dim=-1)


def feature_only(look: Look, conditions: Conditions) -> Tensor:
    """The test loss predicted from ⟨w, ν⟩ alone."""
    return theory.feature_only_loss(look.before.shared, conditions.knee.unsqueeze(-1))
