from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.studies.label_granularity.images.problem import (
    GROUPS,
    class_tree,
    embedding,
    hierarchy_of,
    image_task,
    superclasses,
)
from assay.training import Seeds

SEEDS = Seeds((0, 1))


@pytest.mark.parametrize("name", list(GROUPS))
def test_class_trees(name):
    tree, leaves = class_tree(name), [f"class {c}" for c in range(10)]
    assert sorted(c for members in GROUPS[name][0].values() for c in members) == list(range(10))
    assert {tree.ancestor(leaf, 3) for leaf in leaves} == {"everything"}
    assert all(tree.overlaps(leaves, level) == [] for level in range(4))
    assert set(superclasses(name).tolist()) == {0, 1}
    with pytest.raises(ValueError, match="no hierarchy"):
        class_tree("svhn")
    with pytest.raises(ValueError, match="unknown image set 'unheard of'"):
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
    expected = {"tree": 10, "one per sample": 200, "coarse": 2}
    expected |= dict.fromkeys(("clusters per class", "clusters of all", "random", "random within"), 6)
    for scheme, classes in expected.items():
        found = hierarchy_of(scheme, 0 if scheme == "tree" else 3, points, leaves, coarse, 0, tree=tree)
        assert found.classes == classes, scheme
        assert (found.purity == 1) == (scheme not in ("clusters of all", "random")), scheme
    split = hierarchy_of("rebalanced", 3, points, leaves, coarse, 0, least=15)
    assert int(split.counts.sum(1).min()) > 15
    with pytest.raises(ValueError, match="unknown label function"):
        hierarchy_of("astrology", 3, points, leaves, coarse, 0)
