"""What a network trained on coarse labels is made of: neurons that fire, and outputs of the right class."""

from __future__ import annotations

import torch
from torch import Tensor

from ..learners import PatchNetwork, labels_of
from ..problem import HierarchicalPatches, Samples
from ..theory import own_features


def firing_counts(network: PatchNetwork, problem: HierarchicalPatches, labels: str) -> tuple[Tensor, Tensor]:
    """Neurons that fire on each class' common feature (seeds, classes) and, in the mean over its own subclass
    features, on those (seeds, classes)."""
    fires = network.projections(problem.features) + network.biases.unsqueeze(-1) > 0
    common, subclass = own_features(fires, problem, labels)
    return common.sum(-1).double(), subclass.sum(2).double().mean(-1)


def own_outputs(network: PatchNetwork, easy: Samples, labels: str) -> Tensor:
    """The mean output of the right class over the easy samples of each superclass: (seeds, 2)."""
    outputs = network.outputs(easy.patches)
    own = outputs.gather(-1, labels_of(labels, easy).view(1, -1, 1).expand(len(outputs), -1, 1)).squeeze(-1)
    return torch.stack([own[:, easy.superclass == y].double().mean(1) for y in (0, 1)], 1)
