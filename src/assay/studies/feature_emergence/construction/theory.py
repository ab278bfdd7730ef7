"""The good network: an explicit network of a few neurons that outputs the label, and a check of it on random cases."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..theory import truncated_relu


@dataclass(frozen=True)
class GoodNetwork:
    """A network of 3(k+1) truncated-ReLU neurons, all along u*: g(x) = Σ a_i σ(w_scale ⟨u*, x⟩ + b_i)."""

    w_scale: float
    a: Tensor
    b: Tensor

    def __call__(self, projection: Tensor) -> Tensor:
        """The output for the projections ⟨u*, x⟩."""
        return truncated_relu(self.w_scale * projection.unsqueeze(-1) + self.b) @ self.a


def good_network(k: int, positive: tuple[int, ...], mu: float, scale: float, *, general: bool = False) -> GoodNetwork:
    """The representability construction: hats of width 1/2 around every count, each of the sign of its label.

    ``mu`` is Σ_A E φ̃_j and ``scale`` is σ̃. Of the two placements (hats centred on the counts, or shifted by a
    quarter and doubled) the one is taken whose biases all have modulus at least 1/8. ``general`` doubles the heights
    and halves the scale, for the general family.
    """
    if not set(positive) <= set(range(k + 1)):
        raise ValueError(f"the positive counts {positive} are not within 0..{k}")
    signs = [1.0 if count in positive else -1.0 for count in range(k + 1)]
    shift, height = 0.0, 2.0
    if min(abs(bias) for bias in _hat_biases(k, mu, shift)) < 0.125 - 1e-12:
        shift, height = 0.25, 4.0
    biases = _hat_biases(k, mu, shift)
    factor = 8 * k if general else 4 * k
    height *= 2 if general else 1
    a = [sign * height * slope * factor for sign in signs for slope in (1.0, -2.0, 1.0)]
    return GoodNetwork(
        scale / factor, torch.tensor(a, dtype=torch.float64), torch.tensor(biases, dtype=torch.float64) / factor
    )


def _hat_biases(k: int, mu: float, shift: float) -> list[float]:
    return [mu - count - shift + side for count in range(k + 1) for side in (0.5, 0.0, -0.5)]


def largest_output(k: int, *, general: bool = False) -> float:
    """The largest |a*| over all means: that of the shifted hats, which a mean on a half-integer needs."""
    placements = (good_network(k, (), mu, 1.0, general=general) for mu in (0.25, 0.5))
    return max(float(net.a.abs().max()) for net in placements)


def general_condition(k: int, mu: float, d: int, p_o: float, D: int, scale: float) -> bool:
    """Whether the good network of the general family applies: (kμ/√d)(p_o D/σ̃) ≤ 1/16."""
    return k * mu / math.sqrt(d) * p_o * D / scale <= 1 / 16


def check_good_networks(draws: Tensor, largest: int) -> tuple[float, float]:
    """Random cases of the good network, one per row of uniforms ``draws``, with k up to ``largest``: the largest error,
    and the smallest 32k|b*|."""
    error, bias = 0.0, torch.inf
    for draw in draws.double().tolist():
        k = 1 + int(draw[0] * largest)
        positive = tuple(count for count in range(k + 1) if draw[2 + count % (len(draw) - 2)] < 0.5)
        mu, scale = draw[1] * k, 5.0
        net = good_network(k, positive, mu, scale)
        counts = torch.arange(k + 1).double()
        labels = torch.tensor([1.0 if count in positive else -1.0 for count in range(k + 1)]).double()
        error = max(error, float((net((counts - mu) / scale) - labels).abs().max()))
        bias = min(bias, float(net.b.abs().min()) * 32 * k)
    return error, bias
