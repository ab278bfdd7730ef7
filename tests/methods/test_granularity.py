from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.methods.granularity import (
    LabelHierarchy,
    LabelTree,
    binary_by_ancestor,
    clusters_of_all,
    clusters_per_superclass,
    granularity_report,
    max_readout,
    one_per_sample,
    random_ids,
    rebalanced_clusters,
    sum_readout,
    tree_level,
)

TREE = LabelTree.from_paths(
    [
        ("tabby", "cat", "mammal", "animal"),
        ("siamese", "cat", "mammal", "animal"),
        ("beagle", "dog", "mammal", "animal"),
        ("robin", "bird", "animal"),
    ]
)
LEAVES = ["tabby", "siamese", "beagle", "robin", "tabby"]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_levels_of_a_tree():
    assert tree_level(TREE, LEAVES, 0).fine.tolist() == [0, 1, 2, 3, 0]
    assert tree_level(TREE, LEAVES, 1).fine.tolist() == [0, 0, 1, 2, 0]
    assert tree_level(TREE, LEAVES, 3).classes == 1
    assert tree_level(TREE, LEAVES, 9).classes == 1  # clipped at the root
    for level in range(4):
        lower, upper = (tree_level(TREE, LEAVES, at).fine for at in (level, level + 1))
        if level != 1:  # levels count from the leaf: here bird's parent is cat's grandparent
            assert LabelHierarchy("nested", lower, upper, aligned=True).purity == 1
    assert TREE.overlaps(LEAVES, 1) == []
    assert TREE.overlaps(LEAVES, 2) == [("mammal", "animal")]
    assert TREE.images({"tabby", "robin"}, 1) == {"cat", "bird"}
    assert binary_by_ancestor(TREE, LEAVES, "cat").tolist() == [1, 1, 0, 0, 1]
    assert binary_by_ancestor(TREE, LEAVES, "animal").tolist() == [1] * 5


def test_trees_that_are_none():
    assert LabelTree({"a": ("b", "c"), "b": "r", "c": "r"}).path("a") == ["a", "b", "r"]  # the first parent counts
    with pytest.raises(ValueError, match="one root"):
        LabelTree({"a": "r", "b": "s"})
    with pytest.raises(ValueError, match="one root"):
        LabelTree({"a": "b", "b": "a"})
    with pytest.raises(ValueError, match=r"circle|not in the tree"):
        LabelTree({"a": "b", "b": "a", "c": "r"})
    with pytest.raises(ValueError, match="not in the tree"):
        TREE.path("unicorn")
    with pytest.raises(ValueError, match="level must be at least 0"):
        TREE.ancestor("tabby", -1)


def blobs(per: int = 30, dim: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Four clear blobs, two per coarse class: (points, blob, coarse)."""
    blob = torch.arange(4).repeat_interleave(per)
    points = 8 * torch.eye(4, dim)[blob] + torch.randn(4 * per, dim, generator=generator(5))
    return points, blob, blob // 2


def test_clusters_per_superclass_find_the_blobs():
    points, blob, coarse = blobs()
    found = clusters_per_superclass(points, coarse, 2, seed=0)
    assert found.purity == 1
    assert found.classes == 4
    assert LabelHierarchy("same", found.fine, blob).purity == 1
    assert set((found.fine // 2 - coarse).tolist()) == {0}  # the label is 2y + c
    assert clusters_of_all(points, coarse, 4, seed=0).classes == 4
    assert clusters_of_all(points, coarse, 1, seed=0).purity == 0.5
    with pytest.raises(ValueError, match="clusters need"):
        clusters_per_superclass(points, coarse, 61, seed=0)


@settings(max_examples=20, deadline=None)
@given(least=st.integers(1, 40), seed=st.integers(0, 5))
def test_rebalanced_clusters_keep_the_threshold(least, seed):
    points, _, coarse = blobs()
    found = rebalanced_clusters(points, coarse, least=least, seed=seed, choices=(2, 4, 8))
    sizes = found.counts.sum(1)
    assert found.purity == 1
    for y, clusters in found.chosen.items():
        own = sizes[found.fine_to_coarse == y]
        own = own[own > 0]
        assert len(own) == clusters
        assert clusters == 1 or int(own.min()) > least
    assert set(rebalanced_clusters(points, coarse, least=100, seed=0).chosen.values()) == {1}
    assert rebalanced_clusters(points, coarse, least=5, seed=0, choices=(2,)).chosen == {0: 2, 1: 2}


def test_labels_that_mean_nothing():
    coarse = torch.tensor([0] * 30 + [1] * 30)
    wild = random_ids(coarse, 6, generator=generator())
    assert torch.bincount(wild.fine).tolist() == [10] * 6
    assert wild.purity < 1
    tame = random_ids(coarse, 3, generator=generator(), within=True)
    assert tame.purity == 1
    assert tame.classes == 6
    assert one_per_sample(coarse).classes == 60
    assert torch.equal(random_ids(coarse, 6, generator=generator()).fine, wild.fine)
    with pytest.raises(ValueError, match=r"random classes must lie in \[1, 60\]"):
        random_ids(coarse, 61, generator=generator())


def test_hierarchies_refuse_what_is_no_labelling():
    fine, coarse = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])
    assert LabelHierarchy("loose", fine, coarse).fine_to_coarse.tolist() == [0, 0]
    with pytest.raises(ValueError, match="do not refine"):
        LabelHierarchy("strict", fine, coarse, aligned=True)
    with pytest.raises(ValueError, match="one per sample"):
        LabelHierarchy("short", fine[:2], coarse)
    with pytest.raises(ValueError, match="integers from 0"):
        LabelHierarchy("negative", fine - 1, coarse)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_labels_of_every_integer_type_are_the_same_labels(dtype):
    fine = torch.arange(100).repeat(3)
    coarse = fine // 5
    found = LabelHierarchy("narrow", fine.to(dtype), coarse.to(dtype), aligned=True)
    assert (found.fine.dtype, found.coarse.dtype) == (torch.int64, torch.int64)
    assert (found.purity, found.classes) == (1.0, 100)
    assert found.fine_to_coarse.tolist() == [c // 5 for c in range(100)]
    points = torch.randn(300, 3, generator=generator())
    for build in (
        lambda y: random_ids(y, 15, generator=generator(), within=True),
        lambda y: clusters_per_superclass(points, y, 14, seed=0),
        lambda y: clusters_of_all(points, y, 3, seed=0),
        lambda y: rebalanced_clusters(points, y, least=1, seed=0, choices=(2, 4)),
        one_per_sample,
    ):
        narrow, wide = build(coarse.to(dtype)), build(coarse)
        assert torch.equal(narrow.fine, wide.fine)
        assert narrow.coarse.dtype == torch.int64
    halves = torch.arange(6) < 3
    assert LabelHierarchy("truth values", halves, halves, aligned=True).classes == 2
    with pytest.raises(ValueError, match="integers from 0"):
        random_ids(coarse / 2, 3, generator=generator(), within=True)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(1, 40), fine=st.integers(1, 8), coarse=st.integers(1, 5))
def test_what_a_hierarchy_says_is_what_its_whole_table_says(seed, n, fine, coarse):
    drawn = [torch.randint(0, top, (n,), generator=generator(seed + i)) for i, top in enumerate((fine, coarse))]
    found = LabelHierarchy("drawn", *drawn)
    table = torch.zeros(int(drawn[0].max()) + 1, int(drawn[1].max()) + 1, dtype=torch.long)
    for f, y in zip(*(each.tolist() for each in drawn), strict=True):
        table[f, y] += 1
    assert torch.equal(found.counts, table)
    assert found.classes == int((table.sum(1) > 0).sum())
    assert found.purity == int(table.amax(1).sum()) / n
    first_largest = [row.index(max(row)) for row in table.tolist()]
    assert found.fine_to_coarse.tolist() == first_largest
    report = granularity_report(found, least=1)
    joint = table.double() / n
    known = joint[joint > 0]
    both, of_fine = -(known * known.log2()).sum(), joint.sum(1)
    of_fine = -(of_fine[of_fine > 0] * of_fine[of_fine > 0].log2()).sum()
    assert report.conditional_entropy == pytest.approx(float(both - of_fine), abs=1e-9)


def test_many_classes_need_no_table_of_all_pairs():
    """The whole table would have 10¹² entries."""
    coarse = torch.arange(1_000_000)
    labels = one_per_sample(coarse)
    assert (labels.classes, labels.purity) == (1_000_000, 1.0)
    assert torch.equal(labels.fine_to_coarse, coarse)
    points = torch.randn(1_000_000, 2, generator=generator())
    assert granularity_report(labels, points, rows=100).classes == 1_000_000


def test_readouts():
    logits = torch.randn(200, 6, generator=generator(), dtype=torch.float64)
    mapped = torch.tensor([0, 1, 1, 0, 2, 1])
    best = max_readout(logits, mapped)
    assert torch.equal(best.argmax(-1), mapped[logits.argmax(-1)])
    chances = torch.stack([logits.softmax(-1)[:, mapped == y].sum(-1) for y in range(3)], -1)
    torch.testing.assert_close(sum_readout(logits, mapped).softmax(-1), chances)
    assert max_readout(torch.zeros(1, 2), torch.tensor([0, 2])).tolist() == [[0, -math.inf, 0]]
    with pytest.raises(ValueError, match="a coarse class each"):
        max_readout(logits, mapped[:3])


def test_report_tells_good_labels_from_bad():
    points, blob, coarse = blobs()
    good = granularity_report(LabelHierarchy("blobs", blob, coarse), points)
    assert good.advice == "undecided"
    assert good.warnings == ()
    assert (good.classes, good.coarse_classes, good.smallest, good.purity) == (4, 2, 30, 1)
    assert good.conditional_entropy == 0
    assert good.lift > 0.9
    wild = granularity_report(random_ids(coarse, 4, generator=generator()), points)
    assert wild.advice == "harmful"
    assert wild.purity < 0.7
    assert wild.open_share > 0.9
    assert granularity_report(random_ids(coarse, 4, generator=generator())).advice == "harmful"  # without neighbours
    united = granularity_report(LabelHierarchy("united", blob % 2, coarse), points)
    assert (united.open_share, united.advice) == (pytest.approx(1), "harmful")
    tame = granularity_report(random_ids(coarse, 2, generator=generator(), within=True), points)
    assert tame.advice == "unlikely"
    assert "random split" in tame.warnings[0]
    assert abs(tame.lift) < 0.2
    few = granularity_report(one_per_sample(coarse))
    assert few.advice == "unlikely"
    assert few.consistency is None
    assert "samples" in str(few)
    same = granularity_report(LabelHierarchy("coarse", coarse, coarse))
    assert "no finer" in same.warnings[0]


def test_impure_labels_are_risky_until_they_mix_like_random_ones():
    points, blob, coarse = blobs()
    fine = blob.clone()
    fine[0] = 2  # one of 120 samples lies in a class of the other coarse one
    nearly = granularity_report(LabelHierarchy("nearly", fine, coarse), points)
    assert nearly.advice == "risky"
    assert nearly.purity == pytest.approx(119 / 120)
    assert "share a fine class" in nearly.warnings[0]
    assert 0 < nearly.open_share < 0.1
    assert granularity_report(LabelHierarchy("nearly", fine, coarse), points, most_open=0.01).advice == "harmful"
    blind = clusters_of_all(points[:, 1:3], coarse, 3, seed=0)  # unites the two blobs that these axes do not tell
    assert granularity_report(blind, points).advice == "risky"
    assert granularity_report(LabelHierarchy("one", blob, torch.zeros_like(blob))).open_share == 0


def test_chance_is_the_mean_over_shuffles():
    """300 shuffles within coarse classes: the standard error is below 0.003."""
    points, _, coarse = blobs(per=10)
    wild = random_ids(coarse, 3, generator=generator(1))
    expected = granularity_report(wild, points, least=1).chance
    shares = []
    for seed in range(300):
        shuffled = wild.fine.clone()
        for y in (0, 1):
            own = (coarse == y).nonzero().squeeze(1)
            shuffled[own] = shuffled[own[torch.randperm(len(own), generator=generator(seed))]]
        shares.append(granularity_report(LabelHierarchy("shuffled", shuffled, coarse), points, least=1).consistency)
    assert expected == pytest.approx(sum(shares) / 300, abs=0.01)


def test_neighbours_do_not_depend_on_where_the_origin_lies():
    points, blob, coarse = blobs()
    labels = LabelHierarchy("blobs", blob, coarse)
    near = granularity_report(labels, points)
    far = granularity_report(labels, points + 1e4)
    assert far.consistency == pytest.approx(near.consistency, abs=0.02)  # adding 1e4 rounds the points themselves
    apart = points.double() + 1e5 * torch.eye(4, dtype=torch.float64)[blob]  # each blob's own neighbours are close
    halves = blob * 2 + (points[:, 3] > 0).long()
    expected = torch.cdist(apart, apart, compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(math.inf)
    nearest = expected.topk(5, largest=False).indices
    share = (halves[nearest] == halves.unsqueeze(1)).double().mean()
    found = granularity_report(LabelHierarchy("halves", halves, coarse), apart)
    assert found.consistency == pytest.approx(float(share), abs=1e-12)


def test_conditional_entropy_by_hand():
    hierarchy = LabelHierarchy("half", torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 0]))
    report = granularity_report(hierarchy, least=1)
    assert report.conditional_entropy == pytest.approx(0.5)  # one bit on half of the samples
    assert report.purity == 0.75


def test_report_refuses():
    points, blob, coarse = blobs()
    with pytest.raises(ValueError, match="embeddings are"):
        granularity_report(LabelHierarchy("blobs", blob, coarse), points[:5])
    points[3, 0] = math.nan
    with pytest.raises(ValueError, match="finite, and 1 of"):
        granularity_report(LabelHierarchy("blobs", blob, coarse), points)
    with pytest.raises(ValueError, match="at least 1"):
        granularity_report(LabelHierarchy("blobs", blob, coarse), points, neighbours=0)
    with pytest.raises(ValueError, match="most_open"):
        granularity_report(LabelHierarchy("blobs", blob, coarse), points, most_open=0)


def test_chance_is_the_mean_over_shuffles_also_for_uneven_classes():
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(120, 2, generator=generator)
    coarse = (points[:, 0] > 0).long()
    # One fine class is dense and large, the others are small: its members have neighbours of their own kind.
    fine = coarse * 3 + (points[:, 1] > 0.3).long() + (points[:, 1] > 1.2).long()
    fine[:5] = 7  # and one lies in both coarse classes
    report = granularity_report(LabelHierarchy("uneven", fine, coarse), points)
    distances = torch.cdist(points.double(), points.double()).fill_diagonal_(torch.inf)
    nearest = distances.topk(5, largest=False).indices
    shuffled = []
    for _ in range(400):
        mixed = fine.clone()
        for y in (0, 1):
            rows = (coarse == y).nonzero().squeeze(1)
            mixed[rows] = fine[rows[torch.randperm(len(rows), generator=generator)]]
        shuffled.append(float((mixed[nearest] == mixed.unsqueeze(1)).double().mean()))
    expected = torch.tensor(shuffled)
    assert report.chance == pytest.approx(float(expected.mean()), abs=4 * float(expected.std()) / 20)
