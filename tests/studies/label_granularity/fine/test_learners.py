from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from assay.methods.granularity import max_readout
from assay.studies.label_granularity.fine.learners import max_readout_residual
from assay.studies.label_granularity.learners import PatchNetwork, TheorySGD, superclass_of
from assay.studies.label_granularity.problem import HierarchicalPatches
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
SMALL = HierarchicalPatches(dim=16, patches=10, subclasses=2, feature_patches=3, noise=0.05, distractors=2)


def test_finetuning_is_autograd_through_the_maximum():
    net = PatchNetwork(SEEDS.normal("w", 4, 7, SMALL.dim), SEEDS.normal("b", 4, 7))
    batch, mapped = SMALL.sample(SEEDS, "batch", 3), superclass_of(2)
    update = TheorySGD(0.3).step(net, batch, max_readout_residual(batch.superclass, mapped), SMALL.patches)
    for seed in range(2):
        weights = net.weights[seed].clone().requires_grad_()
        fired = torch.relu(torch.einsum("npd,cmd->npcm", batch.patches[seed], weights) + net.biases[seed])
        loss = cross_entropy(max_readout(fired.sum((1, 3)), mapped), batch.superclass)
        (gradient,) = torch.autograd.grad(loss, weights)
        torch.testing.assert_close(update.movement[seed], -0.3 / SMALL.patches * gradient, rtol=0, atol=1e-10)
