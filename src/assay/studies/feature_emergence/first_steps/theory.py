"""What the theory says of the first two steps, and how gradients and weights of trained tensors compare with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from assay.probes.directions import cosines
from assay.training.two_layer import Activation, TwoLayer, hinge_residual

from ..learners import Stages, class_weights, smooth
from ..problem import PatternProblem
from ..theory import smoothed_slope

Share = TypeVar("Share", float, Tensor)


def step_one_gate(background: Tensor, q: Tensor, b: Tensor, s: float) -> tuple[Tensor, Tensor]:
    """β_i = Pr[⟨φ_{−A}, q_{−A}⟩ + b_i + ξ ∈ (0,1)] and κ_i = E[σ̃'²]/β_i², averaged over the sampled backgrounds.

    ``background`` holds φ with the relevant coordinates set to zero: (seeds, n, D); ``q`` (seeds, neurons, D).
    """
    gate = smoothed_slope(background @ q.mT + b.unsqueeze(1), s)
    beta = gate.mean(1)
    return beta, gate.square().mean(1) / beta.square()


def step_two_gate(b: Tensor, s: float) -> Tensor:
    """β_i = Pr[b_i + ξ ∈ (0, 1)]: after one tiny step the gate no longer depends on the input."""
    return smoothed_slope(b, s)


def expected_tangent(k: int, D: int, n: int, p_o: float, gamma: float, kappa: float = 1.0) -> float:
    """tan of the angle between a neuron after step two (κ = 1) or one (κ = κ_i) and u*: sampling noise alone.

    Derived: as η⁽¹⁾ → 0 every neuron is collinear with the empirical E[yx], whose background components have
    variance σ_φ²/n: tan² = κ(D−k)p_o(1−p_o)/(nkγ²).
    """
    return math.sqrt(kappa * (D - k) * p_o * (1 - p_o) / (n * k * gamma**2))


def shuffled_cosine_scale(problem: PatternProblem) -> float:
    """The standard deviation of cos(w, u*) for neurons that two steps turn to the empirical E[yx] of labels without
    meaning: noise of the inputs' covariance, of which u* has the share Var(count)/(k σ̃²)."""
    counts = torch.arange(problem.relevant + 1).double()
    law = problem.balanced_law
    variance = float((law * counts.square()).sum() - (law * counts).sum() ** 2)
    return math.sqrt(variance / problem.relevant) / problem.scale


def class_weight_spread(positive: Share) -> Share:
    """E[α_y²] of the weights α_y = 1/(2 Pr[y]): the factor by which balancing classes raises sampling variances."""
    spread: Share = (1 / positive + 1 / (1 - positive)) / 4
    return spread


def cosine_of_tangent(tangent: float) -> float:
    return 1 / math.sqrt(1 + tangent**2)


def gradient_error_scale(k: int, D: int, m: int, sigma_phi: float, scale: float, delta: float = 0.01) -> float:
    """ε_e of the step-one lemma."""
    log = math.log(D * m / delta)
    return float((k * math.sqrt(log) + log**1.5) / math.sqrt(sigma_phi**2 * scale**2 * (D - k)))


def second_error_scale(eta: float, a: float, k: int, gamma: float, epsilon: float, scale: float, s: float) -> float:
    """ε_{e2} of the step-two lemma without its e^{−Θ(k)} term."""
    return eta * abs(a) * k * (gamma + epsilon) / (scale**2 * s)


def typical_initialisation(q: Tensor, sigma_w: float, k: int, m: int, delta: float = 0.01) -> Tensor:
    """Whether each neuron's background weights are typical: Σq² in [½, 3/2]σ_w²(D−k), max|q| ≤ σ_w√(2 log(Dm/δ)).

    ``q``: (..., D−k) background coordinates.
    """
    size = q.square().sum(-1) / (sigma_w**2 * q.shape[-1])
    limit = sigma_w * math.sqrt(2 * math.log((q.shape[-1] + k) * m / delta))
    return (size >= 0.5) & (size <= 1.5) & (q.abs().amax(-1) <= limit)


def gradient_components(net: TwoLayer, inputs: Tensor, labels: Tensor, activation: Activation) -> Tensor:
    """T_j with ∂_{w_i}L = −a_i Σ_j T_j M_j, classes weighted to balance, in the pattern basis: (seeds, neurons,
    patterns)."""
    z = net.preactivation(inputs)
    outputs = (activation.value(z) @ net.output.unsqueeze(-1)).squeeze(-1)
    gated = activation.slope(z) * hinge_residual(labels, outputs, class_weights(labels)).unsqueeze(-1)
    return gated.mT @ inputs


@dataclass(frozen=True)
class ComponentReport:
    """One step's gradient components beside β_iγ/σ̃. All (seeds,) but ``gate`` and ``signal``, (seeds, neurons)."""

    step: int
    gate: Tensor  # β_i
    signal: Tensor  # mean of T_j on A
    signal_ratio: Tensor  # mean over A and neurons of T_j, over that of β_i γ/σ̃
    largest_component_error: Tensor  # largest |T_j − β_i γ/σ̃| on A, as a share of γ/σ̃
    component_correlation: Tensor  # over neurons, between the mean of T_j on A and β_i
    background_over_noise: Tensor  # root mean square of T_j off A, as a share of the sampling noise √(β/n) σ_φ
    expected_tangent: Tensor  # of the weights that this gradient gives
    gate_change: Tensor  # largest change that the input makes to a gate; near 0 in step two

    def metrics(self) -> dict[str, Any]:
        by_seed = (name for name in self.__dataclass_fields__ if name not in ("step", "gate", "signal"))
        return {name: getattr(self, name) for name in by_seed}


def component_reports(
    problem: PatternProblem, stages: Stages, nets: Sequence[TwoLayer], inputs: Tensor, labels: Tensor, relevant: Tensor
) -> Iterator[ComponentReport]:
    """Both steps in the pattern basis: the gradient at initialisation, then that after step one."""
    s = stages.smoothing
    beta, kappa = step_one_gate(background_of(inputs, relevant), nets[0].weights, nets[0].biases, s)
    gates = (beta, step_two_gate(nets[1].biases, s))
    balance = class_weight_spread((labels > 0).to(inputs.dtype).mean(1))
    spreads = (balance * kappa.mean(1), balance)
    base = expected_tangent(problem.relevant, problem.patterns, inputs.shape[1], problem.background_mean, stages.gamma)
    for step, (net, gate, spread) in enumerate(zip(nets, gates, spreads, strict=True), 1):
        components = gradient_components(net, inputs, labels, smooth(s))
        constant = smoothed_slope(net.biases.unsqueeze(1), s)
        change = (smoothed_slope(net.preactivation(inputs[:, :1000]), s) - constant).abs().amax((1, 2))
        compared = compare_components(
            components,
            gate,
            relevant,
            samples=inputs.shape[1],
            gamma=stages.gamma,
            scale=stages.scale,
            sigma_phi=problem.background_deviation * balance.sqrt(),
        )
        yield ComponentReport(step, gate, **compared, expected_tangent=base * spread.sqrt(), gate_change=change)


def compare_components(
    components: Tensor, gate: Tensor, relevant: Tensor, *, samples: int, gamma: float, scale: float, sigma_phi: Tensor
) -> dict[str, Tensor]:
    """Components (seeds, neurons, patterns) against gates β (seeds, neurons); ``relevant`` (seeds, k) indexes A."""
    seeds, neurons, patterns = components.shape
    mask = torch.zeros(seeds, patterns, dtype=torch.bool, device=components.device).scatter_(1, relevant, True)
    on = components.mT[mask].reshape(seeds, -1, neurons).mT
    off = components.mT[~mask].reshape(seeds, -1, neurons).mT
    signal, target = on.mean(-1), gate * gamma / scale
    noise = (gate / samples).sqrt() * sigma_phi.unsqueeze(1)
    centred = [values - values.mean(1, keepdim=True) for values in (signal, gate)]
    return {
        "signal": signal,
        "signal_ratio": signal.mean(1) / target.mean(1),
        "largest_component_error": (on - target.unsqueeze(-1)).abs().amax((1, 2)) * scale / gamma,
        "component_correlation": (centred[0] * centred[1]).sum(1) / (centred[0].norm(dim=1) * centred[1].norm(dim=1)),
        "background_over_noise": (off.square().mean((1, 2)) / noise.square().mean(1)).sqrt(),
    }


def relevant_over_background(components: Tensor, relevant: Tensor) -> Tensor:
    """Root mean square of the components (seeds, neurons, patterns) on the relevant patterns over that on the others:
    (seeds,). Sampling noise alone gives about 1."""
    size = components.square().mean(1)
    mask = torch.zeros_like(size, dtype=torch.bool).scatter_(1, relevant, True)
    on, off = ((size * part).sum(1) / part.sum(1) for part in (mask, ~mask))
    return (on / off).sqrt()


def background_of(inputs: Tensor, relevant: Tensor) -> Tensor:
    """The inputs with their relevant patterns set to zero: φ_{−A}."""
    return inputs.scatter(2, relevant.unsqueeze(1).expand(-1, inputs.shape[1], -1), 0.0)


def tangents(weights: Tensor, truth: Tensor) -> Tensor:
    """tan of each neuron's angle to ±u*: (seeds, neurons). Computed from the two components, since 1 − cos² cancels."""
    unit = truth[:, 0] / truth[:, 0].norm(dim=-1, keepdim=True)
    along = (weights @ unit.unsqueeze(-1)).squeeze(-1)
    across = weights - along.unsqueeze(-1) * unit.unsqueeze(1)
    found: Tensor = across.norm(dim=-1) / along.abs()
    return found


def mean_pairwise_cosine(weights: Tensor) -> Tensor:
    """Mean |cos| over all pairs of different neurons: (seeds,)."""
    overlaps = cosines(weights, weights).abs()
    count = weights.shape[1]
    return (overlaps.sum((1, 2)) - count) / (count * (count - 1))
