from __future__ import annotations

import copy
import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay.methods.granularity import (
    FineToCoarse,
    LabelHierarchy,
    LabelTree,
    Stage,
    binary_by_ancestor,
    clusters_of_all,
    clusters_per_superclass,
    fine_to_coarse,
    granularity_report,
    max_readout,
    one_per_sample,
    random_ids,
    rebalanced_clusters,
    sum_readout,
    swap_head,
    tree_level,
)
from assay.methods.granularity.readout import strictly_right

TREE = LabelTree.from_paths([
    ("tabby", "cat", "mammal", "animal"), ("siamese", "cat", "mammal", "animal"), ("beagle", "dog", "mammal", "animal"),
    ("robin", "bird", "animal"),
])  # fmt: skip
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
    with pytest.raises(ValueError, match="levels count"):
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
    with pytest.raises(ValueError, match="at least as many"):
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
    assert good.advice == "likely"
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


def test_conditional_entropy_by_hand():
    hierarchy = LabelHierarchy("half", torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 0]))
    report = granularity_report(hierarchy, least=1)
    assert report.conditional_entropy == pytest.approx(0.5)  # one bit on half of the samples
    assert report.purity == 0.75


def test_report_refuses():
    points, blob, coarse = blobs()
    with pytest.raises(ValueError, match="embeddings are"):
        granularity_report(LabelHierarchy("blobs", blob, coarse), points[:5])
    with pytest.raises(ValueError, match="at least 1"):
        granularity_report(LabelHierarchy("blobs", blob, coarse), points, neighbours=0)
    with pytest.raises(ValueError, match="most_open"):
        granularity_report(LabelHierarchy("blobs", blob, coarse), points, most_open=0)


QUICK = FineToCoarse(Stage(4, 32, 0.3), rates=(0.5, 1.0))


def problem(n: int = 160) -> tuple[torch.Tensor, LabelHierarchy, tuple, tuple]:
    """The coarse class is a parity of two signs; the fine one is the pair of signs."""
    signs = torch.where(torch.rand(3 * n, 6, generator=generator(7)) < 0.5, -1.0, 1.0)
    fine = ((signs[:, 0] > 0) * 2 + (signs[:, 1] > 0)).long()
    coarse = torch.tensor([0, 1, 1, 0])[fine]
    parts = [(signs[i * n : (i + 1) * n], coarse[i * n : (i + 1) * n]) for i in range(3)]
    return parts[0][0], LabelHierarchy("signs", fine[:n], parts[0][1], aligned=True), parts[1], parts[2]


def small_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))


@pytest.mark.parametrize("readout", ["finetune", "probe", "max"])
def test_transfer_on_tensors_data_sets_and_loaders(readout):
    inputs, hierarchy, validation, test = problem()
    model = small_model()
    before = copy.deepcopy(model.state_dict())
    method = FineToCoarse(Stage(4, 32, 0.3), readout=readout, rates=(0.5, 1.0))
    given = {"validation": validation, "test": test, "seed": 3}
    report = method.run(model, inputs, hierarchy, **given)
    assert report.fine.accuracy > 0.9
    assert 0 <= report.onepass.accuracy <= 1
    assert report.gain == report.fine.accuracy - report.retrain.accuracy
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    dataset = TensorDataset(inputs, torch.full((len(inputs),), 99))  # its own labels are not looked at
    for data in (dataset, DataLoader(dataset, batch_size=7)):
        again = method.transfer(model, data, hierarchy, **given)
        assert again.accuracy > 0.9
    assert method.transfer(model, inputs, hierarchy, **given) == report.fine


def test_retraining_is_the_transfer_with_coarse_labels():
    inputs, hierarchy, validation, test = problem()
    coarse = LabelHierarchy("coarse", hierarchy.coarse, hierarchy.coarse)
    given = {"validation": validation, "test": test, "seed": 3}
    assert (
        QUICK.transfer(small_model(), inputs, coarse, **given)
        == QUICK.run(small_model(), inputs, hierarchy, **given).retrain
    )
    report = fine_to_coarse(small_model(), inputs, hierarchy.fine, hierarchy.coarse, pretrain=Stage(1, 64), **given)
    assert set(report.fine.validation) == {0.05 / 4 * m for m in (0.25, 1.0, 4.0)}
    assert report.fine.rate in report.fine.validation


class Undecided(nn.Module):
    """Every fine class gets the same logit."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 4)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return 0 * self.head(inputs)


def test_ties_under_the_maximum_are_errors():
    inputs, hierarchy, validation, test = problem(60)
    method = FineToCoarse(Stage(1, 32), readout="max")
    score = method.transfer(Undecided(), inputs, hierarchy, validation=validation, test=test, seed=0)
    assert score.accuracy == 0
    scores = torch.tensor([[1.0, 1.0], [2.0, 1.0], [math.nan, 0.0], [0.0, -math.inf], [2.0, 1.0]])
    assert strictly_right(scores, torch.tensor([0, 0, 0, 1, 2])).tolist() == [False, True, False, False, False]


def test_with_the_maximum_retraining_has_one_stage_as_well():
    inputs, hierarchy, validation, test = problem()
    given = {"validation": validation, "test": test, "seed": 3}
    method = FineToCoarse(Stage(4, 32, 0.3), readout="max", rates=(0.5, 1.0))
    report = method.run(small_model(), inputs, hierarchy, **given)
    once = method.pretrained(small_model(), inputs, hierarchy.coarse, seed=3)
    assert report.retrain.accuracy == float((once(test[0]).argmax(-1) == test[1]).double().mean())
    assert (report.fine.rate, report.retrain.rate) == (None, None)
    assert set(report.onepass.validation) == {0.15, 0.3}


def test_a_probe_searches_around_its_own_rate():
    inputs, hierarchy, validation, test = problem(60)
    method = FineToCoarse(Stage(1, 32, 0.3), readout="probe", rates=(0.5, 1.0))
    score = method.transfer(small_model(), inputs, hierarchy, validation=validation, test=test, seed=0)
    assert set(score.validation) == {0.05, 0.1}


def test_the_finetuning_stage_takes_a_quarter_by_default():
    assert (QUICK.last.batch, QUICK.last.rate, QUICK.last.epochs) == (8, 0.075, 4)
    own = Stage(2, 5, 0.01)
    assert FineToCoarse(finetune=own).last is own
    shares = [Stage(warmup=0.2).share(step, 10) for step in range(10)]
    assert shares[:3] == [0.5, 1.0, 1.0]
    assert shares == [*shares[:2], *sorted(shares[2:], reverse=True)]


class Encoder(nn.Module):
    """A model as Hugging Face's: keyword inputs, a record with logits, the number of labels kept in its config."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(num_labels=2)
        self.num_labels = 2
        self.body = nn.Linear(6, 8)
        self.classifier = nn.Linear(8, 2)
        self.unused = nn.Linear(3, 3)

    def forward(self, features: torch.Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.classifier(torch.relu(self.body(features))))


def test_models_with_keyword_inputs_and_records():
    inputs, hierarchy, validation, test = problem(60)
    rows = [[{"features": x, "labels": 0} for x in part] for part in (inputs, validation[0], test[0])]
    method = FineToCoarse(Stage(2, 16, 0.1), rates=(1.0,))
    score = method.transfer(
        Encoder(), rows[0], hierarchy, validation=(rows[1], validation[1]), test=(rows[2], test[1]), seed=0
    )
    assert 0 <= score.accuracy <= 1
    assert method.features(Encoder(), rows[0]).shape == (60, 8)
    swapped = swap_head(Encoder(), 7, generator=generator())
    assert (swapped.classifier.out_features, swapped.config.num_labels, swapped.num_labels) == (7, 7, 7)
    assert swapped.unused.out_features == 3


def test_transfer_refuses():
    inputs, hierarchy, validation, test = problem(60)
    given = {"validation": validation, "test": test, "seed": 0}
    with pytest.raises(ValueError, match="60 labels"):
        QUICK.run(small_model(), inputs[:50], hierarchy, **given)
    with pytest.raises(ValueError, match="map-style"):
        QUICK.run(small_model(), iter([1]), hierarchy, **given)
    with pytest.raises(ValueError, match="read-out is one of"):
        FineToCoarse(readout="mean")
    with pytest.raises(ValueError, match="positive multiples"):
        FineToCoarse(rates=())
    with pytest.raises(ValueError, match="precision"):
        FineToCoarse(precision="half")
    with pytest.raises(ValueError, match="epochs"):
        Stage(0)
    with pytest.raises(ValueError, match="no linear layer 'top'"):
        swap_head(small_model(), 3, generator=generator(), head="top")
    with pytest.raises(ValueError, match="no linear layer that"):
        swap_head(nn.ReLU(), 3, generator=generator())
