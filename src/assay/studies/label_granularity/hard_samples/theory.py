"""Which hard samples mislead which network: the rule for single samples, and the scales of strong noise."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..learners import PatchNetwork, Report
from ..problem import DISTRACTOR, HierarchicalPatches, Samples
from ..theory import normal_tail


def hard_rule(samples: Samples, projections: Tensor, biases: Tensor) -> Tensor:
    """Which hard samples the coarse network gets wrong, read off its neurons with all noise left out: (seeds, n).

    An error wherever Σ over distractors of R_{−y}(α†v_{−y}) ≥ n_sub R_y(v_{y,c}), with R_y(x) = Σ_r relu(⟨w, x⟩ + b)
    (the source's bound leaves out α†). ``projections`` (seeds, 2, neurons, 2k+2) are ⟨w, v⟩, ``biases`` (seeds, 2,
    neurons).
    """
    far = samples.kinds == DISTRACTOR
    own = (~far & (samples.strengths > 0)).sum(-1)
    wrong = torch.empty_like(own, dtype=torch.bool)
    for y in (0, 1):
        rows = samples.superclass == y
        faint = (samples.strengths * far)[:, rows].unsqueeze(-1)
        slopes, offsets = projections[:, 1 - y, :, 1 - y], biases[:, 1 - y]
        answers = torch.relu(faint * slopes[:, None, None] + offsets[:, None, None]).sum(-1)
        distracted = (answers * far[:, rows]).sum(-1)
        fine = 2 + samples.subclasses * y + samples.subclass[rows]
        responses = torch.relu(projections[:, y] + biases[:, y].unsqueeze(-1)).sum(1)  # (seeds, 2k+2)
        wrong[:, rows] = distracted >= own[:, rows] * responses[:, fine]
    return wrong


def counted_rule(samples: Samples, common: Tensor, subclass: Tensor, rho: float) -> Tensor:
    """Which hard samples the coarse network will get wrong, foretold from the numbers of neurons that fire before
    training, common (seeds, 2) and subclass (seeds, 2, k): (seeds, n).

    The rule of ``hard_rule`` with responses from theory. By the logarithmic law both superclasses' outputs on easy
    samples end alike, so that a common detector of y has grown by A_y ∝ 1/(|S_y(v_y)| + |S_y(v_{y,c})|/k), the latter
    in the mean over c (Lemmas E.2 and E.4), and a subclass detector by A_y/k (Lemma E.5). A detector answers strength α
    with α − ρ of its growth. An error wherever A_{−y}|S_{−y}(v_{−y})| Σ (α† − ρ) ≥ n_sub(1 − ρ) A_y|S_y(v_{y,c})|/k.
    """
    y, k = samples.superclass, samples.subclasses
    far = samples.kinds == DISTRACTOR
    own = (~far & (samples.strengths > 0)).sum(-1)
    faint = ((samples.strengths - rho).clamp(min=0) * far).sum(-1)
    grown = 1 / (common + subclass.mean(-1) / k)
    distracted = (grown * common)[:, 1 - y] * faint
    return distracted >= (1 - rho) * own * grown[:, y] * subclass[:, y, samples.subclass] / k


def rule_report(network: PatchNetwork, hard: Samples, problem: HierarchicalPatches) -> Report:
    """How often the rule for single hard samples foretells whether the coarse network errs, and how often the better
    of "always" and "never" does: (seeds,) each."""
    wrong = network.outputs(hard.patches).diff(dim=-1).squeeze(-1) * (1 - 2 * hard.superclass) >= 0
    rule = hard_rule(hard, network.projections(problem.features), network.biases)
    share = wrong.double().mean(1)
    return {"rule_agreement": (rule == wrong).double().mean(1), "constant_agreement": torch.maximum(share, 1 - share)}


def untrained_response(norm: float, tau: float, sigma0: float = 1.0) -> float:
    """What one untrained neuron gives on average to a patch ζ of this norm: σ0[‖ζ‖φ(τ/‖ζ‖) − τQ(τ/‖ζ‖)]."""
    if norm <= 0:
        return 0.0
    x = tau / norm
    return sigma0 * (norm * math.exp(-x * x / 2) / math.sqrt(2 * math.pi) - tau * normal_tail(x))


def strong_noise_scales(k: int, s: float) -> tuple[float, float]:
    """σ_ζ* at which one patch of strong noise begins to mislead the coarse network, s*/k, and the fine one,
    s*/√(2 log 2k)."""
    return s / k, s / math.sqrt(2 * math.log(2 * k))
