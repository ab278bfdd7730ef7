from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from assay.studies.label_granularity.image_labels import (
    GROUPS,
    class_tree,
    embedding,
    hierarchy_of,
    image_task,
    superclasses,
)
from assay.studies.label_granularity.image_learners import Recipe, Stage, error, network, train
from assay.studies.label_granularity.resnet_sweep import Augment, ResNetSweep
from assay.studies.label_granularity.tiles import Tiles, TileTraining, tile_errors, tile_outputs
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1))
RECIPE = Recipe((16, 12), Stage(3, 50, 0.1), Stage(2, 12, 0.05), Stage(2, 12, 0.1), multiples=(0.5, 1.0))


@pytest.mark.parametrize("name", list(GROUPS))
def test_class_trees(name):
    tree, leaves = class_tree(name), [f"class {c}" for c in range(10)]
    assert sorted(c for members in GROUPS[name][0].values() for c in members) == list(range(10))
    assert {tree.ancestor(leaf, 3) for leaf in leaves} == {"everything"}
    assert all(tree.overlaps(leaves, level) == [] for level in range(4))
    assert set(superclasses(name).tolist()) == {0, 1}
    with pytest.raises(ValueError, match="no hierarchy"):
        class_tree("unheard of")


def test_each_seed_has_its_own_images():
    task = image_task("digits", SEEDS, 300, validation=100)
    assert task.inputs.shape == (2, 300, 64)
    assert task.validation[0].shape == (2, 100, 64)
    assert not torch.equal(task.leaves[0], task.leaves[1])
    alone = image_task("digits", replace(SEEDS, values=(1,)), 300, validation=100)
    assert torch.equal(task.inputs[1:], alone.inputs)
    assert torch.equal(task.target(task.leaves), (task.leaves >= 5).long())
    both = {tuple(x.tolist()) for x in task.inputs[0]} & {tuple(x.tolist()) for x in task.validation[0][0]}
    assert len(both) < 3  # digits has a few equal images; training and validation images are different ones
    assert image_task("digits", SEEDS, 5000, validation=400).inputs.shape[1] == 1352 - 400  # what is left
    with pytest.raises(ValueError, match="too few"):
        image_task("digits", SEEDS, 1300, validation=1000)


def test_some_classes_and_few_images():
    task = image_task("digits", SEEDS, 400, validation=100)
    part = task.only((3, 4, 8))
    assert part.inputs.shape[1] == int(0.08 * 400 * 3)
    assert set(part.leaves.unique().tolist()) == set(part.test[1].unique().tolist()) == {0, 1, 2}
    few = part.fewer(5)
    assert few.inputs.shape[1] == 15
    assert torch.equal(torch.bincount(few.leaves[0]), torch.full((3,), 5))
    with pytest.raises(ValueError, match="fewer than 400"):
        task.fewer(400)


def test_label_functions_on_images():
    task = image_task("digits", SEEDS, 200, validation=50)
    leaves, coarse = task.leaves[0], task.target(task.leaves)[0]
    points, tree = embedding(task.inputs[0]), class_tree("digits")
    assert points.shape == (200, 20)
    expected = {"tree": 10, "clusters per class": 6, "clusters of all": 6, "random": 6, "random within": 6,
                "one per sample": 200, "coarse": 2}  # fmt: skip
    for scheme, classes in expected.items():
        found = hierarchy_of(scheme, 0 if scheme == "tree" else 3, points, leaves, coarse, 0, tree=tree)
        assert found.classes == classes, scheme
        assert (found.purity == 1) == (scheme not in ("clusters of all", "random")), scheme
    split = hierarchy_of("rebalanced", 3, points, leaves, coarse, 0, least=15)
    assert int(split.counts.sum(1).min()) > 15
    with pytest.raises(ValueError, match="unknown label function"):
        hierarchy_of("astrology", 3, points, leaves, coarse, 0)


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
    coarse = task.target(task.leaves)
    validation, test = ((x, task.target(y)) for x, y in (task.validation, task.test))
    net = RECIPE.pretrain(task.inputs, task.leaves, SEEDS)
    found = RECIPE.transfer(net, task.inputs, coarse, validation, test, SEEDS)
    assert set(found.rate.tolist()) <= {0.025, 0.05}
    single = [replace(RECIPE, multiples=(m,)).transfer(net, task.inputs, coarse, validation, validation, SEEDS)
              for m in (0.5, 1.0)]  # fmt: skip
    best = torch.stack([each.error for each in single]).argmin(0)
    assert found.rate.tolist() == [(0.025, 0.05)[i] for i in best.tolist()]


def test_tiles_lie_where_the_layout_says():
    tiles = Tiles("digits", noise=0.0)
    pools = tiles.pools("train")
    assert len(pools) == 2 + 2 * tiles.subclasses
    easy, fine = tiles.sample(SEEDS, "tiles", 2, pools)
    hard, _ = tiles.sample(SEEDS, "tiles", 2, pools, hard=True)
    assert easy.shape == (2, 16, 24, 64)
    assert bool(((easy.abs().sum(-1) > 0).sum(-1) == 12).all())  # six common and six subclass tiles
    assert bool(((hard.abs().sum(-1) > 0).sum(-1) == 12).all())  # six subclass tiles and six faint ones
    rows = {tuple(x.tolist()) for x in pools[2 + int(fine[0])]}
    own = sum(tuple(tile.tolist()) in rows for tile in easy[0, 0])
    assert own == 6
    with pytest.raises(ValueError, match="tiles come from"):
        Tiles("faces")


def test_tile_networks_learn_and_read_out():
    tiles = Tiles("digits")
    layers = TileTraining(80, width=24, rate=3e-3).train(tiles, SEEDS, "fine")
    found = tile_errors(layers, tiles, SEEDS, "fine", 4)
    assert float(found["easy_error"].max()) < 0.3
    inputs, _ = tiles.sample(SEEDS, "order", 1, tiles.pools("test"))
    torch.testing.assert_close(tile_outputs(layers, inputs), tile_outputs(layers, inputs.flip(2)), rtol=1e-4, atol=1e-4)


def test_augmentation_shifts_and_mirrors():
    images = torch.arange(64.0).view(1, 1, 8, 8).repeat(50, 1, 1, 1)
    moved = Augment(0)(images)
    assert moved.shape == images.shape
    assert not torch.equal(moved, images)
    kept = torch.nn.functional.pad(images[:1], (1, 1, 1, 1))
    windows = {tuple(kept[0, 0, i : i + 8, j : j + 8].flatten().tolist()) for i in range(3) for j in range(3)}
    assert {tuple(image.flatten().tolist()) for image in moved} <= windows
    colour = Augment(0)(torch.arange(64.0).view(1, 1, 8, 8).repeat(50, 3, 1, 1))
    assert any(row[0, 3, 2] > row[0, 3, 5] for row in colour)


@pytest.mark.parametrize("scheme", ["one pass", "groups", "clusters per class", "random", "one per sample"])
def test_resnet_sweep_on_digits(scheme):
    found = ResNetSweep("digits", 80, 1, 1).run(scheme, 2, 0, "cpu")
    assert 0 <= found.error <= 1
    assert found.classes == {"one pass": 2, "groups": 4, "one per sample": 72}.get(scheme, 4)
