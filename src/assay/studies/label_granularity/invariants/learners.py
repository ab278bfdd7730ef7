"""The proofs' invariants (Lemmas F.2 and F.3, Theorem G.1), counted in a simulation that leaves nothing out."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from assay.training import Seeds

from ..learners import Initialisation, PatchNetwork, Report, TheorySGD, class_count, residual_for
from ..problem import NOISE, HierarchicalPatches, Samples
from ..theory import own_features, thresholds


def invariants_over(
    problem: HierarchicalPatches, init: Initialisation, sgd: TheorySGD, seeds: Seeds, steps: int, labels: str
) -> Report:
    """Counts over all steps: neurons that fire on noise patches; neurons that fire on a feature they were not aligned
    with, near the threshold by less than the noise (``near_threshold_fires``, by the source's threshold) or not; the
    largest rise of a neuron's response to another class' feature as a share of the largest response; biases that rose;
    and how far the pruned network's outputs are from the full one's."""
    classes = class_count(labels, problem)
    full = init.draw(seeds, classes, problem).network
    small = replace(init, prune=True).draw(seeds, classes, problem).network
    low = init.scale * thresholds(init.threshold, problem.dim)[0]
    aligned = full.projections(problem.features)
    far = init.scale * (init.threshold - init.slack_for(problem))
    unaligned, near = aligned < far, (aligned >= far) & (aligned < low)
    foreign = ~_own(full, problem, labels)
    noise_fires = unaligned_fires = near_fires = bias_rises = torch.zeros(len(seeds), dtype=torch.float64)
    rise = deviation = torch.zeros(len(seeds), dtype=torch.float64)
    for step in range(steps):
        batch = problem.sample(seeds, f"full batch {step}", 2)
        residual = residual_for(labels, problem)(batch)
        noise_fires = noise_fires + _fires_on_noise(full, batch)
        before = _responses(full, problem)
        update = sgd.step(full, batch, residual, problem.patches)
        pruned = sgd.step(small, batch, residual, problem.patches)
        gap = (pruned.outputs - update.outputs).abs().amax((1, 2)) / update.outputs.abs().amax((1, 2))
        deviation = torch.maximum(deviation, gap.double().cpu())
        bias_rises = bias_rises + (update.network.biases > full.biases).sum((1, 2)).double().cpu()
        full, small = update.network, pruned.network
        after = _responses(full, problem)
        unaligned_fires = unaligned_fires + ((after > 0) & unaligned).sum((1, 2, 3)).double().cpu()
        near_fires = near_fires + ((after > 0) & near).sum((1, 2, 3)).double().cpu()
        rises = torch.where(foreign, after - before, 0.0).amax((1, 2, 3)) / after.amax((1, 2, 3))
        rise = torch.maximum(rise, rises.double().cpu())
    return {
        "noise_fires": noise_fires,
        "unaligned_fires": unaligned_fires,
        "near_threshold_fires": near_fires,
        "foreign_rise": rise,
        "bias_rises": bias_rises,
        "pruned_deviation": deviation,
    }


def _responses(network: PatchNetwork, problem: HierarchicalPatches) -> Tensor:
    """relu(⟨w, v⟩ + b) of every neuron on every data feature: (seeds, classes, neurons, 2k+2)."""
    return torch.relu(network.projections(problem.features) + network.biases.unsqueeze(-1))


def _fires_on_noise(network: PatchNetwork, batch: Samples) -> Tensor:
    z = network.preactivations(batch.patches)
    return ((z > 0) & (batch.kinds == NOISE).flatten(1).unsqueeze(-1)).sum((1, 2)).double().cpu()


def _own(network: PatchNetwork, problem: HierarchicalPatches, labels: str) -> Tensor:
    """Whether a data feature belongs to the class of a neuron: (1, classes, 1, 2k+2)."""
    places = torch.arange(problem.features, device=network.biases.device)
    places = places.expand(1, network.biases.shape[1], 1, -1)
    common, subclass = own_features(places, problem, labels)
    return (places == common.unsqueeze(-1)) | (places.unsqueeze(-1) == subclass.unsqueeze(-2)).any(-1)
