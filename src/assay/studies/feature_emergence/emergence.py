"""What the first two steps did, measured against the theory's predictions. Pure functions of trained tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.probes.directions import cosines
from assay.training.two_layer import Activation, TwoLayer, hinge_residual

from . import theory
from .learners import Stages, class_weights, smooth
from .problem import PatternProblem


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

    def metrics(self) -> dict[str, Tensor]:
        by_seed = (name for name in self.__dataclass_fields__ if name not in ("step", "gate", "signal"))
        return {name: getattr(self, name) for name in by_seed}


def component_reports(
    problem: PatternProblem, stages: Stages, nets: Sequence[TwoLayer], inputs: Tensor, labels: Tensor, relevant: Tensor
) -> Iterator[ComponentReport]:
    """Both steps in the pattern basis: the gradient at initialisation, then that after step one."""
    s = stages.smoothing
    beta, kappa = theory.step_one_gate(background_of(inputs, relevant), nets[0].weights, nets[0].biases, s)
    gates = (beta, theory.step_two_gate(nets[1].biases, s))
    balance = theory.class_weight_spread((labels > 0).to(inputs.dtype).mean(1))
    spreads = (balance * kappa.mean(1), balance)
    base = theory.expected_tangent(
        problem.relevant, problem.patterns, inputs.shape[1], problem.background_mean, stages.gamma
    )
    for step, (net, gate, spread) in enumerate(zip(nets, gates, spreads, strict=True), 1):
        components = gradient_components(net, inputs, labels, smooth(s))
        constant = theory.smoothed_slope(net.biases.unsqueeze(1), s)
        change = (theory.smoothed_slope(net.preactivation(inputs[:, :1000]), s) - constant).abs().amax((1, 2))
        compared = compare_components(
            components, gate, relevant, samples=inputs.shape[1], gamma=stages.gamma, scale=stages.scale,
            sigma_phi=problem.background_deviation * balance.sqrt(),
        )  # fmt: skip
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


def background_of(inputs: Tensor, relevant: Tensor) -> Tensor:
    """The inputs with their relevant patterns set to zero: φ_{−A}."""
    return inputs.scatter(2, relevant.unsqueeze(1).expand(-1, inputs.shape[1], -1), 0.0)


def tangents(weights: Tensor, truth: Tensor) -> Tensor:
    """tan of each neuron's angle to ±u*: (seeds, neurons). Computed from the two components, since 1 − cos² cancels."""
    unit = truth[:, 0] / truth[:, 0].norm(dim=-1, keepdim=True)
    along = (weights @ unit.unsqueeze(-1)).squeeze(-1)
    across = weights - along.unsqueeze(-1) * unit.unsqueeze(1)
    return across.norm(dim=-1) / along.abs()


def mean_pairwise_cosine(weights: Tensor) -> Tensor:
    """Mean |cos| over all pairs of different neurons: (seeds,)."""
    overlaps = cosines(weights, weights).abs()
    count = weights.shape[1]
    return (overlaps.sum((1, 2)) - count) / (count * (count - 1))


def check_good_networks(draws: Tensor, largest: int) -> tuple[float, float, float]:
    """Random cases of the good network, one per row of uniforms ``draws``, with k up to ``largest``: the largest error,
    the largest |a*|/(32k) and the smallest 32k|b*|."""
    error, output, bias = 0.0, 0.0, torch.inf
    for draw in draws.double().tolist():
        k = 1 + int(draw[0] * largest)
        positive = tuple(count for count in range(k + 1) if draw[2 + count % (len(draw) - 2)] < 0.5)
        mu, scale = draw[1] * k, 5.0
        net = theory.good_network(k, positive, mu, scale)
        counts = torch.arange(k + 1).double()
        labels = torch.tensor([1.0 if count in positive else -1.0 for count in range(k + 1)]).double()
        error = max(error, float((net((counts - mu) / scale) - labels).abs().max()))
        output = max(output, float(net.a.abs().max()) / (32 * k))
        bias = min(bias, float(net.b.abs().min()) * 32 * k)
    return error, output, bias
