"""Ridge heads against refits, and the curve of accuracy over labels with its crossing."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay.probes import label_efficiency, ridge_head
from assay.probes.heads import PENALTIES
from assay.probes.intervals import mean_interval
from assay.probes.label_efficiency import LabelEfficiency, balanced_order, overtaking


def clusters(count, dim=10, classes=3, noise=1.5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    centres = 2 * torch.randn(classes, dim, generator=torch.Generator().manual_seed(99))
    labels = torch.arange(count) % classes
    return centres[labels] + noise * torch.randn(count, dim, generator=generator), labels


def refit(x, targets, penalty):
    """Ridge with a free intercept by its normal equations."""
    centre, mean = x.mean(0), targets.mean(0)
    weight = torch.linalg.solve(
        (x - centre).T @ (x - centre) + penalty * torch.eye(x.shape[1]), (x - centre).T @ (targets - mean)
    )
    return weight, mean - centre @ weight


@pytest.mark.parametrize("rows", [8, 40])
def test_the_penalty_is_the_one_that_leaving_out_chooses(rows):
    torch.set_default_dtype(torch.double)
    try:
        x, labels = clusters(rows)
        head = ridge_head(x, labels, scaling="raw")
        targets = torch.nn.functional.one_hot(labels).double()
        unit = (x - x.mean(0)).square().sum() / rows
        errors = {}
        for penalty in PENALTIES:
            errors[penalty] = 0.0
            for k in range(rows):
                kept = torch.arange(rows) != k
                # The shortcut keeps the centre of all rows, so that leaving one out is a change of the intercept alone.
                design = torch.cat([x - x.mean(0), torch.ones(rows, 1)], 1)[kept]
                shrink = penalty * unit * torch.diag(torch.tensor([1.0] * 10 + [0.0]))
                weight = torch.linalg.solve(design.T @ design + shrink, design.T @ targets[kept])
                left = torch.cat([x[k] - x.mean(0), torch.ones(1)])
                errors[penalty] += float((targets[k] - left @ weight).square().sum())
        best = min(sorted(PENALTIES, reverse=True), key=errors.__getitem__)
        weight, bias = refit(x, targets, best * unit)
        torch.testing.assert_close(head.weight, weight.T)
        torch.testing.assert_close(head.bias, bias)
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_ridge_head_is_invariant_to_rotation_and_scale_and_takes_any_labels():
    x, labels = clusters(60)
    turn = torch.linalg.qr(torch.randn(10, 10, generator=torch.Generator().manual_seed(0)))[0]
    test, _ = clusters(100, seed=1)
    expected = ridge_head(x, labels).predict(test)
    assert torch.equal(ridge_head(100 * x @ turn + 5, labels).predict(100 * test @ turn + 5), expected)
    named = ridge_head(x, (labels * 10 - 7).to(torch.int16)).predict(test)
    assert torch.equal(named, expected * 10 - 7)
    for wrong, message in (
        ((x, labels * 0), "two classes"),
        ((x / 0, labels), "finite"),
        ((x, labels[:3]), "60 whole"),
    ):
        with pytest.raises(ValueError, match=message):
            ridge_head(*wrong)


def test_every_beginning_of_the_order_is_balanced():
    labels = torch.tensor([0] * 30 + [1] * 12 + [2] * 5)
    order = balanced_order(labels, torch.Generator().manual_seed(0))
    assert sorted(order.tolist()) == list(range(47))
    for size in range(1, 16):
        counts = torch.bincount(labels[order[:size]], minlength=3)
        assert counts.max() - counts.min() <= 1
    assert torch.bincount(labels[order[:29]]).tolist() == [12, 12, 5]  # as far as classes last


def test_crossings_on_a_logarithmic_axis():
    assert overtaking([10, 100, 1000], [0.2, -0.2, -0.3]) == pytest.approx(10 * 10**0.5)
    assert overtaking([10, 100, 1000], [0.2, -0.2, 0.1]) == math.inf
    assert overtaking([10, 100, 1000], [-0.2, 0.1, -0.3]) == pytest.approx(100 * 10**0.25)
    assert overtaking([10, 100], [-0.2, -0.1]) == 0


def test_a_crossing_at_the_ends_lies_within_the_budgets():
    for budget in range(2, 300):
        assert budget <= overtaking([budget, 7 * budget], [0.0, -0.1]) < budget + 1e-9
        assert 7 * budget - 1e-9 < overtaking([budget, 7 * budget], [1.0, -1e-18]) <= 7 * budget


def curves(first, second):
    """Two representations at 10 and 100 labels, by seed."""
    accuracy = torch.tensor([first, second], dtype=torch.double)
    return LabelEfficiency(("a", "b"), (10, 100), tuple(range(accuracy.shape[-1])), accuracy, 0.5)


def test_a_tie_is_no_lead_of_either():
    same = [[0.5, 0.6, 0.7], [0.7, 0.8, 0.9]]
    for pair in (("a", "b"), ("b", "a")):
        crossing = curves(same, same).crossing(*pair)
        assert (crossing.labels, crossing.decided) == (math.inf, False)
        assert str(crossing) == f"{pair[1]} is not ahead of {pair[0]} at 100 labels"
    tied_at_first = curves(same, [same[0], [0.8, 0.9, 1.0]]).crossing("a", "b")
    assert str(tied_at_first) == "b overtakes a at 10 labels [10, 10]"


def test_fewer_than_three_seeds_and_unknown_scores_decide_nothing():
    for seeds in (1, 2):
        crossing = curves([[0.6] * seeds, [0.7] * seeds], [[0.5] * seeds, [0.8] * seeds]).crossing("a", "b")
        assert crossing.labels == pytest.approx(10 * 10**0.5)
        assert math.isnan(crossing.low)
        assert math.isnan(crossing.high)
        assert str(crossing).startswith("undecided")
    crossing = curves([[0.6, math.nan, 0.6], [0.7] * 3], [[0.5] * 3, [0.8] * 3]).crossing("a", "b")
    assert math.isnan(crossing.labels)
    assert not crossing.decided
    assert str(crossing).startswith("undecided")


@pytest.fixture(scope="module")
def found():
    """Few labels favour the representation without noise, many the one that has lost nothing."""
    generator = torch.Generator().manual_seed(0)

    def draw(count):
        labels = torch.arange(count) % 2
        sign = 2.0 * labels - 1
        x = torch.randn(count, 161, generator=generator)
        x[:, 0] += 1.2 * sign
        x[:, 1:] += 0.15 * sign[:, None]
        return x, labels

    train, test = draw(2000), draw(1000)
    representations = {"specific": lambda x: x[:, :1], "universal": nn.Identity()}
    return label_efficiency(representations, train, test, budgets=(4, 16, 64, 256, 1024), seeds=8)


def test_the_gap_changes_sign_and_the_crossing_lies_between(found):
    gaps = found.gap("specific", "universal")
    assert (gaps[0].sign, gaps[-1].sign) == (1, -1)
    crossing = found.crossing("specific", "universal")
    assert 4 < crossing.low <= crossing.labels <= crossing.high < 1024
    assert crossing.decided
    assert str(crossing).startswith("universal overtakes specific at ")
    back = found.crossing("universal", "specific")
    assert (back.labels, back.decided) == (math.inf, False)
    assert str(back) == "specific is not ahead of universal at 1024 labels"  # it is at 4


def test_seeds_are_paired_and_do_not_depend_on_their_company(found):
    train, test = clusters(200), clusters(100, seed=1)
    both = label_efficiency({"x": nn.Identity(), "again": lambda x: x}, train, test, budgets=(6, 30), seeds=(0, 5))
    assert torch.equal(both.accuracy[0], both.accuracy[1])
    alone = label_efficiency({"x": nn.Identity()}, train, test, budgets=(6, 30), seeds=(5,))
    assert torch.equal(alone.accuracy[0, :, 0], both.accuracy[0, :, 1])
    assert math.isnan(alone.curve("x")[0].low)
    one_each = label_efficiency({"x": [nn.Identity(), lambda x: -x]}, train, test, budgets=(6, 30), seeds=(0, 5))
    torch.testing.assert_close(one_each.accuracy, both.accuracy[:1])


def test_loaders_and_mappings_give_the_numbers_of_tensors():
    train, test = clusters(90), clusters(60, seed=1)
    expected = label_efficiency({"x": nn.Identity()}, train, test, budgets=(9,), seeds=3).accuracy
    loaders = (DataLoader(TensorDataset(*each), batch_size=16) for each in (train, test))
    assert torch.equal(label_efficiency({"x": nn.Identity()}, *loaders, budgets=(9,), seeds=3).accuracy, expected)
    maps = ({"values": x, "labels": y.int()} for x, y in (train, test))
    read = {"x": lambda batch: batch["values"]}
    assert torch.equal(label_efficiency(read, *maps, budgets=(9,), seeds=3).accuracy, expected)
    arrays = ((x.numpy(), y.numpy()) for x, y in (train, test))
    assert torch.equal(label_efficiency({"x": nn.Identity()}, *arrays, budgets=(9,), seeds=3).accuracy, expected)


def test_the_report_is_read_saved_and_drawn(found, tmp_path):
    assert "over 8 seeds" in repr(found)
    assert found.table()[0]["labels"] == 4
    assert found.table()[0]["accuracy"] == mean_interval(found.accuracy[0, 0].tolist()).estimate
    assert json.loads(found.save(tmp_path / "curve.json").read_text())["budgets"] == [4, 16, 64, 256, 1024]
    pytest.importorskip("altair")
    assert found.figure().to_dict()["layer"]


def test_one_budget_and_words_for_labels():
    (x, y), (unseen, wanted) = clusters(90), clusters(60, seed=1)
    expected = label_efficiency({"x": nn.Identity()}, (x, y), (unseen, wanted), budgets=(9,), seeds=3)
    one = label_efficiency({"x": nn.Identity()}, (x, y), (unseen, wanted), budgets=9, seeds=3)
    assert one.budgets == (9,)
    assert torch.equal(one.accuracy, expected.accuracy)
    names = np.array(["ant", "bee", "cow"])
    words = names[y.numpy()], names[wanted.numpy()]
    for form in (list, np.asarray, lambda each: each.astype(object)):
        given = (x, form(words[0])), (unseen, form(words[1]))
        assert torch.equal(label_efficiency({"x": nn.Identity()}, *given, budgets=9, seeds=3).accuracy, one.accuracy)
    maps = ({"values": x, "labels": words[0]}, {"values": unseen, "labels": words[1]})
    read = {"x": lambda batch: batch["values"]}
    assert torch.equal(label_efficiency(read, *maps, budgets=9, seeds=3).accuracy, one.accuracy)
    batches = [(x[:45], y[:45]), (x[45:], y[45:])]  # no pair of inputs and labels
    again = label_efficiency({"x": nn.Identity()}, batches, (unseen, wanted), budgets=9, seeds=3)
    assert torch.equal(again.accuracy, one.accuracy)


def test_refusals():
    train, test = clusters(30), clusters(30, seed=1)
    call = lambda given=None, data=train, **more: label_efficiency(  # noqa: E731
        given or {"x": nn.Identity()}, data, test, **{"budgets": (6,), "seeds": 2, **more}
    )
    guess = lambda given: lambda *_: SimpleNamespace(predict=lambda unseen: given)  # noqa: E731
    for wrong, message in (
        (lambda: call(head=guess(torch.zeros(30, 1))), r"must predict 30 labels, and it gives \(30, 1\)"),
        (lambda: call(head=guess(torch.full((30,), math.nan))), "must predict 30 labels, .* or NaN"),
        (lambda: call({"x": lambda x: x.repeat(2, 1)}), "'x' must give features of every sample, and gives 60 and 60"),
        (lambda: label_efficiency({"x": nn.Identity()}, train, (test[0][:0], test[1][:0]), budgets=(6,)), "no samples"),
        (lambda: call(nn.Identity()), "a mapping from names, not a Identity"),
        (lambda: call({"x": train[0]}), "'x' is a tensor"),
        (lambda: call(budgets=(2,)), "each of budgets must lie in"),
        (lambda: call(budgets=(31,)), "each of budgets must lie in"),
        (lambda: call(budgets=()), "at least one number"),
        (lambda: call(seeds=0), "seeds must be at least 1"),
        (lambda: call(data=train[0]), "train must be"),
        (lambda: call({"x": [nn.Identity()] * 3}), "3 versions for 2 seeds"),
        (lambda: call({"x": lambda x: x / 0}), "finite"),
        (lambda: call().curve("y"), "no representation 'y'"),
        (lambda: call({"x": lambda x: x[:, :0]}), "'x' gives features of no width"),
        (lambda: call(budgets="6"), "must be an integer|must lie in"),
        (lambda: call(budgets=31), "each of budgets must lie in"),
        (lambda: call(pool="max"), "pool must be one of mean, first, flatten"),
        (lambda: call(data=(train[0], [str(label) for label in train[1]])), "must both be words, or both be numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
