"""Online descent on the pseudo-loss: is it convex, and does its regret stay below the bound?"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from assay.training import Seeds

from ..learners import Cells, Contrastive, Encoders, infonce_step
from ..problem import TokenPairs
from ..theory import MARGIN, lucky_sets
from .theory import Frozen, optimal_learner, pseudo_loss


def regret_share(problem: TokenPairs, seed: Seeds, start: Encoders, run: Contrastive, rare: float) -> dict[str, float]:
    """Online convex optimisation of the pseudo-loss for one seed: how far its value and gradient at w⁽ᵗ⁾ are from τ
    times the loss's, how much it bends the wrong way between two points, and the largest regret over its bound
    ‖w⁽⁰⁾ − θ‖²/2η + (η/2)Σ‖∇‖², against the optimal learner and against multiples of the last weights."""
    cells = Cells([rare], [problem.deviation(0.45)], [0.0])
    stream, tau, encoders = run.pairs(problem, cells, seed, "regret"), run.temperature, start
    rate = run.rate / tau  # the source's rate: its pseudo-loss is τ times the loss
    energy = worst_value = worst_slope = 0.0
    path = []
    for _ in range(run.steps):
        first, second = run.attended(stream.next(run.batch))
        found, candidates = infonce_step(encoders, first, second, tau), encoders(second)[0, 0]
        w = encoders.weights[0, 0].clone().requires_grad_()
        frozen = Frozen.at(w.detach(), encoders.biases[0, 0], first[0, 0], encoders.multiplicity)
        value = pseudo_loss(w, frozen, candidates, tau)
        (slope,) = torch.autograd.grad(value, w)
        worst_value = max(worst_value, abs(float(value.detach() / tau - found.loss[0, 0])))
        worst_slope = max(worst_slope, float((slope / tau - found.gradient[0, 0]).norm() / found.gradient[0, 0].norm()))
        energy += float(slope.square().sum())
        path.append((w.detach(), float(value.detach()), frozen, candidates))
        encoders = replace(encoders, weights=encoders.weights - rate * slope)
    alpha, last = start.weights[0, 0, :, : problem.features], encoders.weights[0, 0]
    target = torch.zeros_like(last)
    target[:, : problem.features] = optimal_learner(alpha, lucky_sets(alpha, 1.0, MARGIN), tau, 1.0)
    share, bend = -math.inf, 0.0
    for theta in (target, last, 2 * last, 4 * last):
        there = [float(pseudo_loss(theta, frozen, candidates, tau)) for _, _, frozen, candidates in path]
        regret = sum(here - other for (_, here, _, _), other in zip(path, there, strict=True))
        bound = float((start.weights[0, 0] - theta).square().sum()) / (2 * rate) + rate / 2 * energy
        share = max(share, regret / bound)
        for (w, here, frozen, candidates), other in zip(path, there, strict=True):
            middle = float(pseudo_loss((w + theta) / 2, frozen, candidates, tau))
            bend = max(bend, middle - (here + other) / 2)
    return {"value": worst_value, "slope": worst_slope, "bend": bend, "regret": share}
