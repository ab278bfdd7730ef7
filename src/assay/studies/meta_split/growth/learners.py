"""Growth while all filters are tiny, measured against the rate formulas with each sample's own noise. All results are
(runs,)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..learners import Conditions, Look
from ..theory import feature_alignment


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
    seen = rate(first.before.noise_alignment(), last.before.noise_alignment())
    noise = seen / (outer * energy / per_run(2 * h) / tasks * noise_gain)
    validation = conditions.outer.amax(-1).reshape(-1, 1, 1) * energy / per_run(2 * h) / tasks
    chosen = outer > 0
    return Growth(
        feature=feature / predicted,
        feature_predicted=predicted,
        outer_noise=_mean_where(noise, chosen),
        outer_noise_median=_median_where(noise, chosen),
        inner_only_noise=_median_where((seen / validation).abs(), (inner > 0) & ~chosen),
        feature_gain=last.feature_amplification(),
        noise_gain=_median_where(last.after.noise_alignment() / last.before.noise_alignment(), chosen),
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
