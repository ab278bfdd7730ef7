from __future__ import annotations

from dataclasses import replace

import torch
from torch.nn.functional import cross_entropy

from assay.studies.label_granularity.images.learners import Recipe, Stage, error, network, train
from assay.studies.label_granularity.images.problem import image_task
from assay.training import Seeds

SEEDS = Seeds((0, 1))
RECIPE = Recipe((16, 12), Stage(3, 50, 0.1), Stage(2, 12, 0.05), Stage(2, 12, 0.1), multiples=(0.5, 1.0))


def test_stacked_training_is_training_one_by_one():
    seeds = replace(SEEDS, dtype=torch.float64)
    inputs, labels = seeds.normal("x", 40, 5), torch.randint(0, 3, (2, 40), generator=torch.Generator().manual_seed(0))
    stage = Stage(1, 10, 0.2, momentum=0.0, decay=0.0)
    start = network(seeds, 5, (6, 4), 3)
    end = train(start, inputs, labels, stage, seeds, "test")
    for seed in range(2):
        layers = [layer[seed].clone().requires_grad_() for layer in start.layers]
        for step, index in enumerate(replace(seeds, values=(seed,)).batches("test batches", 40, 10, 4)):
            hidden = inputs[seed, index[0]]
            for weight, bias in zip(layers[:-2:2], layers[1:-2:2], strict=True):
                hidden = torch.relu(hidden @ weight + bias)
            loss = cross_entropy(hidden @ layers[-2] + layers[-1], labels[seed, index[0]])
            rate = 0.2 * 0.5 * (1 + torch.cos(torch.tensor(torch.pi * step / 4, dtype=torch.float64)))
            gradients = torch.autograd.grad(loss, layers)
            layers = [(p - rate * g).detach().requires_grad_() for p, g in zip(layers, gradients, strict=True)]
        for ours, theirs in zip(end.layers, layers, strict=True):
            torch.testing.assert_close(ours[seed], theirs.detach())


def test_probes_leave_the_features_and_checkpoints_stop_early():
    task = image_task("digits", SEEDS, 200, validation=50)
    coarse = task.target(task.leaves)
    net = RECIPE.pretrain(task.inputs, task.leaves, SEEDS)
    fresh = net.with_head(SEEDS, 2, "second head")
    probed = train(fresh, task.inputs, coarse, RECIPE.probing, SEEDS, "finetuning", head_only=True)
    assert all(torch.equal(a, b) for a, b in zip(net.layers[:-2], probed.layers[:-2], strict=True))
    assert not torch.equal(fresh.layers[-2], probed.layers[-2])
    early = RECIPE.pretrain(task.inputs, task.leaves, SEEDS, stop=0.1)
    assert float(error(early, task.inputs, task.leaves).mean()) > float(error(net, task.inputs, task.leaves).mean())


def test_the_rate_is_chosen_on_validation_images():
    task = image_task("digits", SEEDS, 200, validation=50)
    splits = task.by_superclass()
    net = RECIPE.pretrain(task.inputs, task.leaves, SEEDS)
    found = RECIPE.transfer(net, splits, SEEDS)
    assert set(found.rate.tolist()) <= {0.025, 0.05}
    validated = splits._replace(test=splits.validation)
    single = [replace(RECIPE, multiples=(m,)).transfer(net, validated, SEEDS) for m in (0.5, 1.0)]
    best = torch.stack([each.error for each in single]).argmin(0)
    assert found.rate.tolist() == [(0.025, 0.05)[i] for i in best.tolist()]
