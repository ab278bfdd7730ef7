"""The scales that the source prints for its synthetic experiment, and the loss that they begin with."""

from __future__ import annotations

import math

from ..theory import Scales


def printed_scales(d: int = 1000) -> Scales:
    """The synthetic experiment: K = ⌈log d⌉³, m = ⌊log(d)^1.5⌋, σ_ξ = log(d)³/√d, σ_s = 1/(√d log(d)²); M is not
    stated (we take d/2)."""
    log = math.log(d)
    return Scales(d, d // 2, math.ceil(log) ** 3, math.floor(log**1.5), d**-0.5, d**-0.5 * log**-2, d**-0.5 * log**3)


def initial_loss(scales: Scales) -> float:
    """Roughly E ℓ at initialisation when noise sets the logits: std(f)/√(2π)."""
    u = scales.sigma_0 * scales.sigma_xi * math.sqrt(scales.d - scales.M - 1)
    return u * math.sqrt(2 * scales.m * (0.5 - 0.5 / math.pi)) / math.sqrt(2 * math.pi)
