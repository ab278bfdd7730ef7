"""Networks trained on coarse labels: neurons that fire, outputs of the right class, and the end of the first phase."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from assay.training import Seeds

from ..learners import Initialisation, PatchNetwork, Report, TheorySGD, Training, labels_of, residual_for
from ..problem import COMMON, SUBCLASS, HierarchicalPatches, Samples
from ..theory import Detectors, firing, normal_tail, own_features
from .theory import coarse_phase_time, output_decomposition

PHASE_STEPS = 20  # over which the first phase is drawn out, so that a whole step is a small part of it


def firing_counts(network: PatchNetwork, problem: HierarchicalPatches, labels: str) -> tuple[Tensor, Tensor]:
    """Neurons that fire on each class' common feature (seeds, classes) and, in the mean over its own subclass
    features, on those (seeds, classes)."""
    common, subclass = firing(network, problem, labels)
    return common, subclass.mean(-1)


def own_outputs(network: PatchNetwork, easy: Samples, labels: str) -> Tensor:
    """The mean output of the right class over the easy samples of each superclass: (seeds, 2)."""
    outputs = network.outputs(easy.patches)
    own = outputs.gather(-1, labels_of(labels, easy).view(1, -1, 1).expand(len(outputs), -1, 1)).squeeze(-1)
    return torch.stack([own[:, easy.superclass == y].double().mean(1) for y in (0, 1)], 1)


def decomposed_outputs(network: PatchNetwork, detectors: Detectors, easy: Samples) -> Tensor:
    """``own_outputs`` as Lemma E.2 puts them together, of neurons that fire, the response of one detector of each kind
    and the numbers of patches in these samples: (seeds, 2). NaN without detectors."""
    answers = torch.relu(network.projections(detectors.problem.features) + network.biases.unsqueeze(-1)).double()
    parts = zip(own_features(answers, detectors.problem, "coarse"), (detectors.common, detectors.subclass), strict=True)
    one = [(part * mask).flatten(2).sum(-1) / mask.flatten(2).sum(-1) for part, mask in parts]
    shown = [(easy.kinds == kind).sum(-1).double() for kind in (COMMON, SUBCLASS)]
    s_com, s_sub = (torch.stack([n[:, easy.superclass == y].mean(1) for y in (0, 1)], 1) for n in shown)
    counts = firing_counts(network, detectors.problem, "coarse")
    return output_decomposition(s_com, s_sub, one[0], one[1], *counts)


def first_phase(problem: HierarchicalPatches, init: Initialisation, bias_rate: float, seeds: Seeds) -> Report:
    """T0, when an output first reaches 1/d, and when the first update says that it will, at a rate so small that it
    takes about ``PHASE_STEPS``: (seeds,) each, NaN where it takes three times as long or more."""
    k, s, P, d = problem.subclasses, problem.feature_patches, problem.patches, problem.dim
    start = init.draw(seeds, 2, problem).network
    common, subclass = firing(start, problem, "coarse")
    usual = init.neurons * normal_tail(init.threshold)
    rate = coarse_phase_time(1.0, k, s, P, d, usual, usual) / PHASE_STEPS
    predicted = coarse_phase_time(rate, k, s, P, d, common.unsqueeze(-1), subclass).amin((1, 2)) / (1 - bias_rate)
    reached = torch.full_like(predicted, math.nan)
    training = Training(problem, sgd=TheorySGD(rate, bias_rate))
    for step, _, update in training.run(start, seeds, 3 * PHASE_STEPS, residual_for("coarse", problem)):
        arrived = (update.outputs.amax((1, 2)) >= 1 / d) & reached.isnan()
        reached = torch.where(arrived, step - 1.0, reached)
    return {"t0": reached, "predicted_t0": predicted}
