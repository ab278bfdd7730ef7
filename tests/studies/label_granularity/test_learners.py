from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from assay.methods.granularity import max_readout
from assay.studies.label_granularity.coarse.learners import firing_counts
from assay.studies.label_granularity.learners import (
    Initialisation,
    PatchNetwork,
    TheorySGD,
    Training,
    cross_entropy_residual,
    errors,
    labels_of,
    residual_for,
    superclass_of,
)
from assay.studies.label_granularity.problem import HierarchicalPatches
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
SMALL = HierarchicalPatches(dim=16, patches=10, subclasses=2, feature_patches=3, noise=0.05, distractors=2)
PRUNED = HierarchicalPatches(dim=32, patches=16, subclasses=3, feature_patches=4, noise=0.001, distractors=2)
INIT = Initialisation(1500)


def random_network(classes: int, problem: HierarchicalPatches = SMALL) -> PatchNetwork:
    return PatchNetwork(SEEDS.normal("w", classes, 7, problem.dim), SEEDS.normal("b", classes, 7))


@pytest.mark.parametrize("labels", ["coarse", "fine"])
def test_the_update_is_autograd_of_the_mean_cross_entropy(labels):
    classes = 2 if labels == "coarse" else 4
    net, batch = random_network(classes), SMALL.sample(SEEDS, "batch", 3)
    target = labels_of(labels, batch)
    update = TheorySGD(0.3, 0.07).step(net, batch, cross_entropy_residual(target, classes), SMALL.patches)
    for seed in range(2):
        weights = net.weights[seed].clone().requires_grad_()
        fired = torch.relu(torch.einsum("npd,cmd->npcm", batch.patches[seed], weights) + net.biases[seed])
        loss = cross_entropy(fired.sum((1, 3)), target)
        (gradient,) = torch.autograd.grad(loss, weights)
        torch.testing.assert_close(update.movement[seed], -0.3 / SMALL.patches * gradient, rtol=0, atol=1e-10)
    length = update.movement.norm(dim=-1)
    torch.testing.assert_close(update.network.biases, net.biases - 0.07 * length, rtol=0, atol=1e-12)
    assert bool((update.network.biases <= net.biases).all())


def test_compact_batches_train_like_whole_ones():
    """Noise patches fire on nothing, so that leaving them out changes no update."""
    problem = replace(PRUNED, noise=0.0)
    start = INIT.draw(SEEDS, 2, problem).network
    whole, compact = (problem.sample(SEEDS, "same", 4, compact=c) for c in (False, True))
    residual = residual_for("coarse", problem)
    one, two = (TheorySGD().step(start, batch, residual(batch), problem.patches) for batch in (whole, compact))
    torch.testing.assert_close(one.movement, two.movement)
    torch.testing.assert_close(one.outputs, two.outputs)


def test_ties_are_errors_and_the_maximum_is_the_best_class_mapped():
    scores = torch.tensor([[[1.0, 1.0], [2.0, 1.0], [0.0, 3.0]]])
    assert float(errors(scores, torch.tensor([0, 0, 0]))) == pytest.approx(2 / 3)
    logits = SEEDS.normal("logits", 50, 6)
    mapped = superclass_of(3)
    assert torch.equal(max_readout(logits, mapped).argmax(-1), mapped[logits.argmax(-1)])


def test_a_seed_trains_the_same_in_any_company():
    def trained(seeds):
        start = INIT.draw(seeds, 2, PRUNED).network
        *_, (_, _, update) = Training(PRUNED).run(start, seeds, 3, residual_for("coarse", PRUNED))
        return firing_counts(update.network, PRUNED, "coarse")[0], update.outputs

    together, alone = trained(SEEDS), trained(replace(SEEDS, values=(1,)))
    assert torch.equal(together[0][1:], alone[0])
    torch.testing.assert_close(together[1][1:], alone[1])


def test_one_subclass_trains_alike_with_both_labels():
    problem = HierarchicalPatches(dim=12, patches=8, subclasses=1, feature_patches=3, distractors=1)
    start = INIT.draw(SEEDS, 2, problem).network
    ends = []
    for labels in ("coarse", "fine"):
        *_, (_, _, update) = Training(problem).run(start, SEEDS, 3, residual_for(labels, problem))
        ends.append(update.network.weights)
    assert torch.equal(*ends)


def test_refusals():
    with pytest.raises(ValueError, match="ρ ≥ 0"):
        TheorySGD(0.1, -0.1)
    hard = SMALL.sample(SEEDS, "hard", 2, hard=True)
    residual = cross_entropy_residual(hard.superclass, 2)
    with pytest.raises(ValueError, match="allowed explicitly"):
        TheorySGD().step(random_network(2), hard, residual, SMALL.patches)
    allowed = TheorySGD(allow_hard=True).step(random_network(2), hard, residual, SMALL.patches)
    assert float(allowed.movement.abs().max()) > 0
    with pytest.raises(ValueError, match="positive"):
        Initialisation(0)
