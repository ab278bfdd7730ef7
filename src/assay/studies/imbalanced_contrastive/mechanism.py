"""Looks into one step: is the gradient that of the formula, what does a mask change, is the pseudo-loss convex?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from assay.training.seeds import Seeds

from . import theory
from .learners import Cells, Contrastive, Encoders, brelu, infonce_step
from .problem import TokenPairs


def outputs(weights: Tensor, encoders: Encoders, attended: Tensor) -> Tensor:
    """f(X) written out, with other weights than the encoders' own: (seeds, cells, batch, neurons)."""
    s = (attended.unsqueeze(-2) * weights[:, :, None, None]).sum(-1)
    return encoders.multiplicity * brelu(s, encoders.biases[..., None, None, :]).sum(-2)


def plain_loss(weights: Tensor, encoders: Encoders, first: Tensor, second: Tensor, tau: float) -> Tensor:
    """InfoNCE by its definition, the candidates held at the encoders' own weights: (seeds, cells)."""
    logits = outputs(weights, encoders, first) @ outputs(encoders.weights, encoders, second).mT / tau
    return (logits.logsumexp(-1) - logits.diagonal(dim1=-2, dim2=-1)).mean(-1)


def masked_surrogate(
    weights: Tensor, encoders: Encoders, first: Tensor, second: Tensor, tau: float, mask: Tensor
) -> Tensor:
    """S = (1/Kτ) Σ_k [Σ_s P_k(s)⟨f(X_k), f(Y_s)⟩ − ⟨f(X_k), f(Y_k)⟩], P the softmax of the masked outputs."""
    h_x, h_y = (outputs(encoders.weights, encoders, view) for view in (first, second))
    P = ((h_x * mask.unsqueeze(-2)) @ (h_y * mask.unsqueeze(-2)).mT / tau).softmax(-1)
    similarity = outputs(weights, encoders, first) @ h_y.mT
    return ((P * similarity).sum(-1) - similarity.diagonal(dim1=-2, dim2=-1)).mean(-1) / tau


def slope_deviation(
    function: Callable[[Tensor], Tensor], gradient: Tensor, weights: Tensor, direction: Tensor, step: float = 1e-6
) -> Tensor:
    """|⟨gradient, v⟩ − (F(w + hv) − F(w − hv))/2h| over ‖gradient‖, along unit directions v: (seeds,)."""
    v = direction / torch.linalg.vector_norm(direction, dim=(-1, -2), keepdim=True)
    numeric = (function(weights + step * v) - function(weights - step * v)) / (2 * step)
    formula = (gradient * v).sum((-1, -2))
    return ((formula - numeric).abs() / torch.linalg.vector_norm(gradient, dim=(-1, -2))).amax(1)


def own_growth(gradient: Tensor, encoders: Encoders, features: int) -> Tensor:
    """−⟨∇_i, M_j⟩/⟨w_i, M_j⟩ of pure neurons on their own feature, averaged over a feature's neurons: the growth per
    unit rate: (seeds, cells, features)."""
    per = encoders.weights.shape[-2] // features
    own = torch.arange(features, device=gradient.device).repeat_interleave(per)[:, None]
    index = own.expand(*gradient.shape[:2], -1, 1)
    growth = -gradient.gather(-1, index) / encoders.weights.gather(-1, index)
    return growth.squeeze(-1).unflatten(-1, (features, per)).mean(-1)


def pruned_growth(
    problem: TokenPairs, cells: Cells, seeds: Seeds, start: Encoders, run: Contrastive, batches: int
) -> tuple[Tensor, Tensor]:
    """Growth per unit rate at a fixed state, averaged over batches, with each cell's mask: (seeds, cells, features);
    and per cell the share of the pruned neurons that are those of rare features: (seeds, cells)."""
    stream, mask = run.pairs(problem, cells, seeds, "one step"), cells.masks(start.weights)
    total = torch.zeros((), device=seeds.device, dtype=seeds.dtype)
    for _ in range(batches):
        found = infonce_step(start, *run.attended(stream.next(run.batch)), run.temperature, mask)
        total = total + own_growth(found.gradient, start, problem.features)
    return total / batches, minority_share(mask, problem)


def minority_share(mask: Tensor | None, problem: TokenPairs) -> Tensor:
    """Of the pruned neurons of a constructed state, the share that belongs to rare features; NaN where none is."""
    assert mask is not None
    pruned = 1 - mask
    rare = pruned.unflatten(-1, (problem.features, -1))[..., problem.majority :, :].sum((-1, -2))
    return rare / pruned.sum(-1)


def response_deviation(
    problem: TokenPairs, cells: Cells, seeds: Seeds, start: Encoders, run: Contrastive, scale: float
) -> Tensor:
    """How far the first-order formula for Δℓ'_p is from the true change when the mask is put on, relative to that
    change (root mean square over anchors), with all weights multiplied by ``scale``: (seeds,)."""
    small = replace(start, weights=scale * start.weights, biases=scale * start.biases)
    first, second = run.attended(run.pairs(problem, cells, seeds, "response").next(run.batch))
    mask = cells.masks(small.weights)
    assert mask is not None
    h_x, h_y = small(first), small(second)
    hidden = 1 - mask.unsqueeze(-2)
    change = -(h_x * hidden) @ h_y.mT
    before, after = (infonce_step(small, first, second, run.temperature, m).softmax for m in (None, mask))
    true = (after - before).diagonal(dim1=-2, dim2=-1)
    apart = true - theory.first_order_response(before, change, run.temperature)
    return (apart.square().mean(-1) / true.square().mean(-1)).sqrt().amax(1)


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
        frozen = theory.Frozen.at(w.detach(), encoders.biases[0, 0], first[0, 0], encoders.multiplicity)
        here = theory.pseudo_loss(w, frozen, candidates, tau)
        (slope,) = torch.autograd.grad(here, w)
        worst_value = max(worst_value, abs(float(here.detach() / tau - found.loss[0, 0])))
        worst_slope = max(worst_slope, float((slope / tau - found.gradient[0, 0]).norm() / found.gradient[0, 0].norm()))
        energy += float(slope.square().sum())
        path.append((w.detach(), float(here.detach()), frozen, candidates))
        encoders = replace(encoders, weights=encoders.weights - rate * slope)
    alpha, last = start.weights[0, 0, :, : problem.features], encoders.weights[0, 0]
    target = torch.zeros_like(last)
    target[:, : problem.features] = theory.optimal_learner(alpha, theory.lucky_sets(alpha, 1.0, 0.1), tau, 1.0)
    share, bend = -math.inf, 0.0
    for theta in (target, last, 2 * last, 4 * last):
        there = [float(theory.pseudo_loss(theta, frozen, candidates, tau)) for _, _, frozen, candidates in path]
        regret = sum(here - value for (_, here, _, _), value in zip(path, there, strict=True))
        bound = float((start.weights[0, 0] - theta).square().sum()) / (2 * rate) + rate / 2 * energy
        share = max(share, regret / bound)
        for (w, here, frozen, candidates), value in zip(path, there, strict=True):
            middle = float(theory.pseudo_loss((w + theta) / 2, frozen, candidates, tau))
            bend = max(bend, middle - (here + value) / 2)
    return {"value": worst_value, "slope": worst_slope, "bend": bend, "regret": share}
