from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.studies.universality_tradeoff.problem import FiniteModel, LinearTasks
from assay.studies.universality_tradeoff.theory import LOSSES
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
MODEL = FiniteModel((0.5, 0.3, 0.2), (0.6, 0.4))


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize("kept", [False, True])
def test_the_loss_is_the_sum_over_all_triples(name, kept):
    model = FiniteModel(MODEL.invariant, MODEL.spurious, kept=kept)
    table, loss = SEEDS.normal("table", 3, 2, 4)[0], LOSSES[name]
    total = 0.0
    for a, p in enumerate(model.invariant):
        for u, q in enumerate(model.spurious):
            views = [(u, 1.0)] if kept else list(enumerate(model.spurious))
            for w, share in views:
                for b, p_other in enumerate(model.invariant):
                    for v, q_other in enumerate(model.spurious):
                        margin = table[a, u] @ (table[a, w] - table[b, v])
                        total += p * q * share * p_other * q_other * loss(margin)
    torch.testing.assert_close(model.loss(table, loss), torch.as_tensor(total))


def test_sampled_triples_have_the_loss_of_the_sum():
    table = SEEDS.normal("table", 3, 2, 4)
    x, y, z = MODEL.triples(SEEDS, "triples", 40_000)
    rows = torch.arange(3)[:, None]
    first, second, third = (table[rows, at[..., 0], at[..., 1]] for at in (x, y, z))
    sampled = LOSSES["logistic"]((first * (second - third)).sum(-1))
    exact = MODEL.loss(table, LOSSES["logistic"])
    error = 5 * sampled.std(1) / 40_000**0.5
    assert bool(((sampled.mean(1) - exact).abs() < error).all())


@pytest.mark.parametrize("how", ["identity", "rotation", "relu", "lookup"])
def test_inputs_of_different_invariant_states_differ(how):
    inputs = MODEL.inputs(SEEDS, how)
    assert inputs.shape[:3] == (3, 3, 2)
    flat = inputs[0].flatten(0, 1)
    assert len(torch.unique(flat, dim=0)) == 6


@pytest.mark.parametrize("shares", [(), (0.5, 0.6), (1.0, 0.0), (-0.5, 1.5)])
def test_what_is_no_distribution_is_refused(shares):
    with pytest.raises(ValueError, match="positive and sum to 1"):
        FiniteModel(shares)


@given(shared=st.integers(1, 4), private=st.integers(1, 4), tasks=st.integers(1, 5))
def test_every_task_has_shared_and_own_features(shared, private, tasks):
    problem = LinearTasks(shared, shared + private, tasks)
    own = [set(problem.own(t)) for t in range(tasks)]
    assert all(len(each) == shared + private for each in own)
    assert set.union(*own) == set(range(problem.features))
    for a in range(tasks):
        for b in range(a):
            assert own[a] & own[b] == set(range(shared))


def test_pairs_share_invariant_features_and_redraw_the_rest():
    problem = LinearTasks(2, 5, 3, 4)
    z, other = problem.pairs(SEEDS, "pairs", 500)
    k = problem.features
    torch.testing.assert_close(z[..., :k], other[..., :k])
    assert not torch.equal(z[..., k:], other[..., k:])
    assert float((z[..., k:] * other[..., k:]).mean().abs()) < 0.1
    counts = (z[..., 2:k].reshape(3, 500, 3, 3) != 0).any(-1).sum(-1)
    assert bool((counts == 1).all())  # private features of one task at a time
    alone, _ = problem.pairs(SEEDS, "pairs", 100, task=1)
    assert bool((alone[..., [2, 3, 4, 8, 9, 10]] == 0).all())


def test_the_mixture_has_its_shares():
    problem = LinearTasks(1, 2, 3, 0, mixture=(0.6, 0.3, 0.1))
    z, _ = problem.pairs(SEEDS, "pairs", 5000)
    shares = (z[..., 1:] != 0).double().mean((0, 1))
    torch.testing.assert_close(shares, torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64), atol=0.02, rtol=0)


def test_features_have_the_scales_of_their_task():
    problem = LinearTasks(1, 2, 2, 1, shared_scales=(2.0, 0.5), private_scales=(1.0, 3.0), spurious_scales=(0.1, 4.0))
    for task, expected in ((0, (2.0, 1.0, 0.0, 0.1)), (1, (0.5, 0.0, 3.0, 4.0))):
        z, other = problem.pairs(SEEDS, "pairs", 4000, task)
        for view in (z, other):
            torch.testing.assert_close(view.std((0, 1)), torch.tensor(expected).double(), rtol=0.05, atol=0)
    plain, _ = LinearTasks(1, 2, 2, 1).pairs(SEEDS, "pairs", 50)
    ones, _ = LinearTasks(1, 2, 2, 1, private_scales=(1.0, 1.0)).pairs(SEEDS, "pairs", 50)
    assert torch.equal(plain, ones)


@pytest.mark.parametrize("scales", [(1.0,), (1.0, 0.0), (1.0, float("nan")), (1.0, float("inf"))])
def test_impossible_scales_are_refused(scales):
    with pytest.raises(ValueError, match="private_scales must be 2 finite numbers above 0"):
        LinearTasks(1, 2, 2, private_scales=scales)


def test_label_weights_have_the_requested_blocks():
    truth = LinearTasks(2, 5, 2).label_weights(SEEDS, "labels", 0.3, draws=7)
    torch.testing.assert_close(truth[..., :2].square().sum(-1), torch.full((3, 7), 0.7, dtype=torch.float64))
    torch.testing.assert_close(truth[..., 2:].square().sum(-1), torch.full((3, 7), 0.3, dtype=torch.float64))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((3, 2, 2), "1 ≤ s ≤ r"),
        ((2, 2, 2), "without private features"),
        ((1, 2, 0), "at least one task"),
        ((1, 2, 2, -1), "at least one task"),
        ((1, 2, 2, 0, (1.0,)), "as many shares"),
        ((1, 2, 2, 0, (0.7, 0.7)), "sum to 1"),
    ],
)
def test_impossible_tasks_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        LinearTasks(*arguments)


def test_a_task_that_is_none_is_refused():
    with pytest.raises(ValueError, match="none of them"):
        LinearTasks(1, 2, 2).own(2)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        LinearTasks(1, 2, 2).label_weights(SEEDS, "labels", 1.5, draws=1)
