"""The error at every rank: against the formula written out, against simulation, and its limits."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.methods import rank_noise, token_covariance

EIGENVALUES = torch.tensor([1.8 * 0.2 ** (i / 7) for i in range(8)], dtype=torch.double)
TASK = torch.tensor([1, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1], dtype=torch.double)


def written_out(values, task, n, m, noise, rank):
    """The evaluation error as the theorem states it, with s the covered and ξ the other coordinates."""
    total = 0.0
    gains = [n / ((n + 1) * v + sum(values)) if i < rank else 0.0 for i, v in enumerate(values)]
    signal = sum(w * w * v for w, v in zip(task, values, strict=True))
    total += sum(task[i] ** 2 * gains[i] ** 2 * values[i] ** 3 for i in range(rank)) / m
    total += (signal + noise) * sum((gains[i] * values[i]) ** 2 for i in range(rank)) / m
    total += sum(task[i] ** 2 * values[i] for i in range(rank, len(values)))
    return total + sum(task[i] ** 2 * values[i] * (values[i] * gains[i] - 1) ** 2 for i in range(rank))


@given(
    values=st.lists(st.just(0.0) | st.floats(0.01, 5), min_size=1, max_size=6),
    n=st.integers(1, 50),
    m=st.integers(1, 50),
    noise=st.floats(0, 10),
)
def test_equals_the_theorem_written_out(values, n, m, noise):
    values = sorted(values, reverse=True)
    if not sum(values):
        return
    task = [1.0 / (i + 1) for i in range(len(values))]
    given_values, given_task = (torch.tensor(each, dtype=torch.double) for each in (values, task))
    found = rank_noise(given_values, pretraining=n, examples=m, noise=noise, weights=given_task)
    for rank in range(len(values) + 1):
        assert float(found.error[rank]) == pytest.approx(written_out(values, task, n, m, noise, rank), abs=1e-9)
    assert float(found.bias[0]) == pytest.approx(float(given_task.square() @ given_values))


def test_simulated_prompts():
    n, m, noise, rank, prompts = 20, 10, 1.0, 3, 40_000
    generator = torch.Generator().manual_seed(0)
    turn = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.double))[0]
    covariance = (turn * EIGENVALUES) @ turn.mT
    gains = torch.where(torch.arange(8) < rank, n / ((n + 1) * EIGENVALUES + EIGENVALUES.sum()), 0.0)
    task = turn @ TASK
    x = torch.randn(prompts, m + 1, 8, generator=generator, dtype=torch.double) * EIGENVALUES.sqrt() @ turn.mT
    y = x[:, :m] @ task + math.sqrt(noise) * torch.randn(prompts, m, generator=generator, dtype=torch.double)
    predicted = ((y[:, None] @ x[:, :m] / m) @ ((turn * gains) @ turn.mT) @ x[:, m, :, None]).squeeze()
    errors = (predicted - x[:, m] @ task).square()
    found = rank_noise(covariance, pretraining=n, examples=m, noise=noise, weights=task)
    spread = float(errors.std()) / math.sqrt(prompts)
    assert float(errors.mean()) == pytest.approx(float(found.error[rank]), abs=5 * spread)


def test_without_a_task_it_is_the_mean_over_normal_tasks():
    options = dict(pretraining=20, examples=10, noise=1.0)
    each = [
        rank_noise(EIGENVALUES, **options, weights=math.sqrt(8) * torch.eye(8, dtype=torch.double)[i]).error
        for i in range(8)
    ]
    torch.testing.assert_close(torch.stack(each).mean(0), rank_noise(EIGENVALUES, **options).error)


def test_noise_moves_the_best_rank_down():
    options = dict(pretraining=20, examples=10, weights=TASK)
    assert [rank_noise(EIGENVALUES, noise=s, **options).best for s in (0, 0.5, 1, 2, 4, 8)] == [4, 4, 3, 3, 2, 2]


def test_tolerated_noise_is_where_one_more_rank_stops_helping():
    options = dict(pretraining=20, examples=10, weights=TASK)
    tolerated = rank_noise(EIGENVALUES, noise=0.0, **options).tolerated
    for i, most in enumerate(tolerated.tolist()):
        for factor in (0.9, 1.1):
            if most > 0:
                found = rank_noise(EIGENVALUES, noise=factor * most, **options)
                assert (found.gap(i, i + 1) < 0) == (factor < 1)


def test_a_gap_without_covered_signal_is_linear_in_the_noise():
    task = TASK * (torch.arange(8) < 2)
    gaps = [
        rank_noise(EIGENVALUES, pretraining=20, examples=20, noise=noise, weights=task).gap(2, 8)
        for noise in (0.0, 1.0, 3.0)
    ]
    gains = 20 * EIGENVALUES / (21 * EIGENVALUES + EIGENVALUES.sum())
    slope = float(gains[2:].square().sum()) / 20
    assert gaps[1] - gaps[0] == pytest.approx(slope)
    assert gaps[2] - gaps[0] == pytest.approx(3 * slope)
    assert gaps[0] == pytest.approx(slope * float(task.square() @ EIGENVALUES))


def test_limits():
    endless = rank_noise(EIGENVALUES, pretraining=math.inf, examples=10, noise=1.0, weights=TASK)
    signal = TASK.square() * EIGENVALUES
    for rank in range(9):
        inside, outside = float(signal[:rank].sum()), float(signal[rank:].sum())
        expected = outside + ((rank + 1) * inside + rank * outside + rank * 1.0) / 10
        assert float(endless.error[rank]) == pytest.approx(expected)
    nothing = rank_noise(torch.tensor([1.0, 0.0]), pretraining=5, examples=10, noise=1.0)
    assert nothing.gap(1, 2) == 0
    assert nothing.unique.tolist() == [True, True, True]
    tied = rank_noise(torch.tensor([2.0, 1.0, 1.0]), pretraining=5, examples=10, noise=1.0)
    assert tied.unique.tolist() == [True, True, False, True]


def test_covariance_of_features():
    features = torch.randn(3, 50, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(token_covariance(features), features.double().flatten(0, 1).mT.cov())
    rows = features.double().flatten(0, 1)
    torch.testing.assert_close(token_covariance(features, centred=False), rows.mT @ rows / 150)
    with pytest.raises(ValueError, match="at least two"):
        token_covariance(features[0, :1])


def test_report(tmp_path):
    report = rank_noise(EIGENVALUES, pretraining=20, examples=10, noise=1.0, weights=TASK)
    assert repr(report).startswith("best rank 3 of 8 at label noise 1: error ")
    rows = report.table()
    assert rows[3]["error"] == pytest.approx(rows[3]["bias"] + rows[3]["sampling"] + rows[3]["label_noise"])
    report.save(tmp_path / "report.json")
    assert "tolerated" in (tmp_path / "report.json").read_text()
    pytest.importorskip("altair")
    assert report.figure().to_dict()["layer"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"covariance": torch.tensor([1.0, 2.0])}, "must descend"),
        ({"covariance": torch.tensor([1.0, -0.1])}, "negative"),
        ({"covariance": torch.tensor([[1.0, 0.5], [0.0, 1.0]])}, "symmetric"),
        ({"covariance": torch.tensor([[1.0, 2.0], [2.0, 1.0]])}, "negative eigenvalues"),
        ({"covariance": torch.ones(2, 3)}, "matrix"),
        ({"covariance": torch.tensor([1.0, math.nan])}, "finite"),
        ({"pretraining": 0}, "pretraining must be at least 1"),
        ({"examples": 0}, "examples must be at least 1"),
        ({"examples": 2.5}, "examples must be an integer"),
        ({"noise": -1.0}, "noise must be at least 0"),
        ({"weights": torch.ones(3)}, "one entry per dimension, 2"),
        ({"weights": torch.tensor([1.0, math.inf])}, "weights must be finite"),
    ],
)
def test_refusals(change, words):
    usual = dict(covariance=torch.tensor([2.0, 1.0]), pretraining=10, examples=10, noise=1.0)
    with pytest.raises(ValueError, match=words):
        rank_noise(**{**usual, **change})
    with pytest.raises(ValueError, match="a rank must lie in"):
        rank_noise(**usual).gap(0, 3)
