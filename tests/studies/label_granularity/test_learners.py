from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from assay.methods.granularity import max_readout
from assay.studies.label_granularity.dynamics import Detectors, firing_counts, labels_of, residual_for, rule_report
from assay.studies.label_granularity.invariants import invariants_over
from assay.studies.label_granularity.learners import (
    Initialisation,
    PatchNetwork,
    TheorySGD,
    Training,
    cross_entropy_residual,
    errors,
    max_readout_residual,
    superclass_of,
)
from assay.studies.label_granularity.problem import HierarchicalPatches
from assay.studies.label_granularity.twins import TWINS, hierarchy_of, twin_errors
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
SMALL = HierarchicalPatches(dim=16, patches=10, subclasses=2, feature_patches=3, noise=0.05, distractors=2)


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


def test_finetuning_is_autograd_through_the_maximum():
    net, batch, mapped = random_network(4), SMALL.sample(SEEDS, "batch", 3), superclass_of(2)
    update = TheorySGD(0.3).step(net, batch, max_readout_residual(batch.superclass, mapped), SMALL.patches)
    for seed in range(2):
        weights = net.weights[seed].clone().requires_grad_()
        fired = torch.relu(torch.einsum("npd,cmd->npcm", batch.patches[seed], weights) + net.biases[seed])
        loss = cross_entropy(max_readout(fired.sum((1, 3)), mapped), batch.superclass)
        (gradient,) = torch.autograd.grad(loss, weights)
        torch.testing.assert_close(update.movement[seed], -0.3 / SMALL.patches * gradient, rtol=0, atol=1e-10)


PRUNED = HierarchicalPatches(dim=32, patches=16, subclasses=3, feature_patches=4, noise=0.001, distractors=2)
INIT = Initialisation(1500)


@pytest.mark.parametrize("labels", ["coarse", "fine"])
def test_pruned_and_full_networks_agree_and_the_invariants_hold(labels):
    found = invariants_over(PRUNED, replace(INIT, prune=False), 0.05, 0.05, SEEDS, 6, labels)
    for name in ("noise_fires", "unaligned_fires", "bias_rises"):
        assert float(found[name].max()) == 0, name
    assert float(found["near_threshold_fires"].min()) >= 0
    assert float(found["pruned_deviation"].max()) < 1e-9
    assert float(found["foreign_rise"].max()) < 1e-9


def test_the_counters_of_the_invariants_can_count():
    loud, init = replace(PRUNED, noise=0.3), replace(INIT, prune=False, neurons=300, threshold=1.0, slack=0.0)
    found = invariants_over(loud, init, 0.5, 0.0, SEEDS, 4, "coarse")
    assert float(found["noise_fires"].min()) > 0
    assert float(found["unaligned_fires"].min()) > 0


@pytest.mark.parametrize("labels", ["coarse", "fine"])
def test_members_of_a_detector_set_move_alike_and_others_not_at_all(labels):
    problem = replace(PRUNED, noise=1e-7)
    classes = 2 if labels == "coarse" else 6
    full = replace(INIT, prune=False, neurons=4000).draw(SEEDS, classes, problem).network
    init = replace(INIT, prune=False, neurons=4000)
    detectors = Detectors.at(full, problem, labels, init)
    common, subclass = detectors.counts()
    assert int(common.max()) > 1
    assert int(subclass.max()) > 1
    asleep = full.projections(problem.features).amax(-1) < 0.999 * init.scale * init.threshold
    for _, _, update in Training(problem).run(full, SEEDS, 2, residual_for(labels, problem)):
        assert float(detectors.spread(update.movement).max()) < 1e-9
        assert float(update.movement.norm(dim=-1)[asleep].max()) == 0
    # The measure does see a difference where there is one.
    disturbed = update.movement.clone()
    disturbed[0][detectors.common[0].nonzero()[0].tolist()[0], detectors.common[0].nonzero()[0].tolist()[1]] *= 1.5
    assert float(detectors.spread(disturbed).max()) > 0.05


def test_the_least_change_is_that_of_one_detector():
    init = replace(INIT, neurons=4000)
    start = init.draw(SEEDS, 6, PRUNED).network
    detectors = Detectors.at(start, PRUNED, "fine", init)
    *_, (_, _, update) = Training(PRUNED).run(start, SEEDS, 3, residual_for("fine", PRUNED))
    assert float(detectors.least_change(start, update.network).min()) >= 0
    seed, c, r = detectors.subclass.any(-1).nonzero()[0].tolist()
    weights = update.network.weights.clone()
    weights[seed, c, r, PRUNED.subclass(c // 3, c % 3)] -= 2e-4
    lowered = replace(update.network, weights=weights)
    found = detectors.least_change(update.network, lowered)
    assert float(found[seed]) < -1e-6
    assert float(found[1 - seed]) == 0
    means = [after - before for after, before in zip(detectors.responses(lowered),
                                                     detectors.responses(update.network), strict=True)]  # fmt: skip
    assert float(found[seed]) < 5 * float(min(change[seed] for change in means))  # the mean hides most of it


def test_the_report_of_the_rule_counts_the_better_constant():
    problem = replace(PRUNED, distractors=4, faint=(0.9, 1.0))
    start = INIT.draw(SEEDS, 2, problem).network
    *_, (_, _, update) = Training(problem).run(start, SEEDS, 10, residual_for("coarse", problem))
    hard = problem.sample(SEEDS, "hard", 20, hard=True)
    report = rule_report(update.network, hard, problem)
    share = errors(update.network.outputs(hard.patches), hard.superclass)
    torch.testing.assert_close(report["constant_agreement"], torch.maximum(share, 1 - share))
    assert bool((report["constant_agreement"] >= 0.5).all())
    assert bool((report["rule_agreement"] >= 0.9).all())


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


@pytest.mark.parametrize("labels", TWINS)
def test_twin_labels(labels):
    samples = SMALL.sample(SEEDS, "twin", 6)
    found = hierarchy_of(labels, samples, seed=3)
    classes = {"coarse": 2, "split at random": 8, "mixed": 2}.get(labels, 4)
    assert found.classes == classes
    assert (found.purity == 1) == (labels not in ("random", "mixed"))
    easy, hard = (SMALL.sample(SEEDS, f"test {h}", 2, hard=h) for h in (False, True))
    report = twin_errors(labels, SMALL, Initialisation(500), Training(SMALL, 4, finite=True), SEEDS, 2, easy, hard)
    assert report["easy_error"].shape == (2,)


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
