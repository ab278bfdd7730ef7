"""The three readings against slow or known answers, and what a report can do."""

import itertools
import json

import pytest
import torch

from assay.methods import FlipReport


def report(scores, truth, **settings):
    fractions = tuple(i / max(1, scores.shape[1] - 1) for i in range(scores.shape[1]))
    usual = {"fractions": fractions, "seeds": tuple(range(len(truth))), "demonstrations": 4, "batch": 16}
    marks = tuple(map(str, settings.get("seeds", usual["seeds"])))
    return FlipReport("model", "data", {**usual, **settings}, scores, truth, marks)


def test_a_constant_preference_hurts_raw_answers_alone():
    truth = torch.tensor([[0, 1, 0, 1]]).repeat(3, 1)
    scores = torch.zeros(3, 2, 4, 2)
    scores[..., 1] = truth[:, None] * 0.1 + 5  # knows the label, and prefers 1
    found = report(scores, truth)
    assert found.values("raw").unique().tolist() == [0.5]
    assert found.values("balanced").unique().tolist() == [1.0]
    assert found.values("auc").unique().tolist() == [1.0]
    assert found.preference()[0, 0].tolist() == [0.0, 1.0]


def test_auc_counts_pairs_and_ties():
    truth = torch.tensor([[0, 0, 1, 1, 1]])
    scores = torch.zeros(1, 1, 5, 2)
    scores[0, 0, :, 1] = torch.tensor([0.1, 0.4, 0.4, 0.8, 0.0])
    assert float(report(scores, truth).values("auc")) == pytest.approx((0.5 + 1 + 1 + 1) / 6)


def test_auc_of_several_labels_is_the_mean_of_one_against_the_others():
    metrics = pytest.importorskip("sklearn.metrics")
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(1, 1, 40, 4, generator=generator).log_softmax(-1)
    truth = (torch.arange(40) % 4)[None]
    expected = metrics.roc_auc_score(truth[0], scores[0, 0].exp().double(), multi_class="ovr", average="macro")
    assert float(report(scores, truth).values("auc")) == pytest.approx(expected, abs=1e-6)


def test_balanced_answers_are_the_best_with_given_counts():
    pytest.importorskip("scipy")
    scores = torch.randn(1, 1, 6, 3, generator=torch.Generator().manual_seed(1))
    truth = torch.tensor([[0, 0, 1, 1, 1, 2]])
    best = max(
        set(itertools.permutations([0, 0, 1, 1, 1, 2])),
        key=lambda each: float(scores[0, 0, torch.arange(6), torch.tensor(each)].sum()),
    )
    right = sum(int(a == b) for a, b in zip(best, truth[0].tolist(), strict=True)) / 6
    assert float(report(scores, truth).values("balanced")) == pytest.approx(right)


def test_two_labels_have_a_threshold_at_the_median():
    scores = torch.randn(1, 1, 20, 2, generator=torch.Generator().manual_seed(2))
    truth = (torch.arange(20) % 2)[None]
    odds = scores[0, 0, :, 1] - scores[0, 0, :, 0]
    expected = ((odds > odds.median()).long() == truth[0]).double().mean()
    assert float(report(scores, truth).values("balanced")) == pytest.approx(float(expected))


def test_slope_of_a_straight_line():
    truth = torch.tensor([[0, 1] * 10]).repeat(3, 1)
    scores = torch.zeros(3, 3, 20, 2)
    for at, wrong in enumerate((0, 5, 10)):  # raw accuracy 1, 0.75, 0.5
        answer = truth[0].clone()
        answer[:wrong] = 1 - answer[:wrong]
        scores[:, at] = torch.nn.functional.one_hot(answer, 2).float()
    found = report(scores, truth)
    assert found.slope("raw").estimate == pytest.approx(-0.5)
    assert found.change("raw").estimate == pytest.approx(-0.5)
    with pytest.raises(ValueError, match="two shares"):
        report(scores[:, :1], truth).slope()


@pytest.fixture
def some():
    generator = torch.Generator().manual_seed(3)
    truth = (torch.arange(16) % 2).repeat(4, 1)
    return report(torch.randn(4, 2, 16, 2, generator=generator), truth)


def test_a_model_that_does_not_solve_the_task_is_not_said_to_be_overridden(some):
    assert "does not solve this task" in some.reading()
    wrong = report(-torch.nn.functional.one_hot(some.truth, 2)[:, None].repeat(1, 2, 1, 1).float(), some.truth)
    assert wrong.at(1.0).compared(0.5) == "below"
    assert "does not solve this task" in wrong.reading()


def test_saved_and_loaded(some, tmp_path):
    some.save(tmp_path / "report.json")
    kept = json.loads((tmp_path / "report.json").read_text())
    assert kept["model"] == "model"
    again = FlipReport.load(tmp_path / "report.json")
    torch.testing.assert_close(again.scores, some.scores)
    assert again.table() == some.table()
    assert again.against(some).estimate == pytest.approx(0, abs=1e-12)


def test_parts_are_joined(some):
    parts = [
        report(some.scores[a:b], some.truth[a:b], seeds=tuple(range(a, b)), fractions=some.fractions)
        for a, b in ((0, 1), (1, 4))
    ]
    assert parts[0].joined(parts[1]).table() == some.table()
    with pytest.raises(ValueError, match="no seed in common"):
        some.joined(some)


def test_table_and_text(some):
    rows = some.table()
    assert len(rows) == 6
    assert {"reading", "flipped", "estimate", "low", "high", "seeds"} <= rows[0].keys()
    assert repr(some).count("\n") == 7
    few = report(some.scores[:2], some.truth[:2])
    assert few.at(1.0).compared() == "undecided"  # two seeds have no interval
    assert few.to_dict()["settings"]["seeds"] == [0, 1]


def test_figure(some):
    pytest.importorskip("altair")
    made = some.figure(some).to_dict()
    assert len(made["hconcat"]) == 3


def test_figure_needs_the_extra(some, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ImportError, match="needs the extra 'lab'"):
        some.figure()


def test_refusals(some):
    with pytest.raises(ValueError, match="metric must be one of auc, balanced, raw"):
        some.values("f1")
    with pytest.raises(ValueError, match="shares of flipped labels are"):
        some.at(0.3)
    with pytest.raises(ValueError, match="must be finite"):
        report(torch.full((1, 1, 2, 2), torch.nan), torch.tensor([[0, 1]]))
