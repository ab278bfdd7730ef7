from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.studies.fourier_circuits.problem import ModularAddition
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2))


@pytest.mark.parametrize(("p", "k"), [(2, 4), (5, 2), (7, 3)])
def test_inputs_are_all_tuples_in_order_with_their_sums(p, k):
    problem = ModularAddition(p, k)
    inputs = problem.inputs(torch.arange(problem.size))
    assert inputs.tolist() == [list(digits) for digits in itertools.product(range(p), repeat=k)]
    assert problem.labels(inputs).tolist() == [sum(digits) % p for digits in itertools.product(range(p), repeat=k)]
    assert torch.equal(problem.flat(inputs), torch.arange(problem.size))


@given(st.integers(0, 23**5 - 1))
def test_large_problems_decode_on_the_fly(flat):
    problem = ModularAddition(23, 5)
    assert int(problem.flat(problem.inputs(torch.tensor(flat)))) == flat


def test_a_split_is_a_partition_and_each_seeds_own():
    problem = ModularAddition(5, 3)
    train, test = problem.split(SEEDS, 62)
    for seed in range(3):
        assert sorted([*train[seed].tolist(), *test[seed].tolist()]) == list(range(125))
    assert not torch.equal(train[0], train[1])
    assert torch.equal(problem.split(Seeds((1,)), 62)[0][0], train[1])


def test_the_right_answer_is_where_every_cosine_peaks():
    problem = ModularAddition(7, 3)
    inputs = problem.inputs(torch.arange(problem.size))
    for frequency in (1, 2, 3):
        cos, sin = problem.features(frequency)
        total = inputs.sum(1) % 7
        logits = cos[total].unsqueeze(1) * cos + sin[total].unsqueeze(1) * sin  # cos(ζ(Σa − c))
        assert torch.equal(logits.argmax(1), problem.labels(inputs))


def test_both_token_forms():
    problem = ModularAddition(7, 3)
    inputs = torch.tensor([[4, 0, 6]])
    assert problem.sequence(inputs).tolist() == [[4, 0, 6, 7]]
    assert problem.sequence(inputs, "operators").tolist() == [[4, 8, 0, 8, 6, 7]]
    for form, length, vocabulary in (("short", 4, 8), ("operators", 6, 9)):
        assert problem.length(form) == length
        assert problem.vocabulary(form) == vocabulary
        assert problem.sequence(inputs, form).shape[-1] == length


def test_refusals():
    for p, k in ((1, 2), (5, 1)):
        with pytest.raises(ValueError, match="p ≥ 2 and k ≥ 2"):
            ModularAddition(p, k)
    with pytest.raises(ValueError, match="64-bit"):
        ModularAddition(997, 7)
    problem = ModularAddition(5, 2)
    with pytest.raises(ValueError, match="cannot be drawn"):
        problem.split(SEEDS, 26)
    with pytest.raises(ValueError, match="lie in 0"):
        problem.flat(torch.tensor([5, 0]))
    with pytest.raises(ValueError, match="frequencies lie"):
        problem.features(3)
    with pytest.raises(ValueError, match="unknown form"):
        problem.sequence(torch.tensor([[1, 2]]), "long")
