import re

import pytest
import torch

from assay.probes.specialisation import (
    aligned_counts,
    alignments,
    lucky_neurons,
    mixed_neurons,
    smallest_neurons,
    specialisation,
)


def test_alignments_are_absolute_cosines_of_any_scale():
    weights = torch.tensor([[3.0, 4.0, 0.0], [0.0, -1e-30, 0.0]])
    found = alignments(weights, torch.tensor([[2.0, 0.0, 0.0], [0.0, 5.0, 0.0]]))
    torch.testing.assert_close(found, torch.tensor([[0.6, 0.8], [0.0, 1.0]]))
    torch.testing.assert_close(alignments(1e6 * weights, torch.eye(3)), alignments(weights, torch.eye(3)))


def test_a_neuron_of_norm_zero_aligns_with_nothing_and_says_so():
    with pytest.warns(UserWarning, match="1 neurons have norm zero"):
        found = alignments(torch.tensor([[0.0, 0.0], [1.0, 0.0]]), torch.eye(2))
    assert found.tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_lucky_mixed_and_aligned_by_hand():
    squares = torch.tensor(
        [
            [0.30, 0.04, 0.01],  # lucky: second at most 0.05
            [0.90, 0.10, 0.00],  # lucky by the ratio, and mixed
            [0.30, 0.10, 0.00],  # mixed only
            [0.20, 0.01, 0.00],  # neither: too weak
        ]
    )
    cosines = squares.sqrt()
    assert lucky_neurons(cosines).tolist() == [True, True, False, False]
    assert mixed_neurons(cosines).tolist() == [False, True, True, False]
    assert aligned_counts(cosines).tolist() == [4, 2, 0]


def test_the_smallest_are_chosen_with_ties_by_index():
    assert smallest_neurons(torch.tensor([2.0, 1.0, 1.0, 3.0]), 0.25).tolist() == [False, True, False, False]
    assert not smallest_neurons(torch.ones(2, 5), 0.0).any()


def test_the_report_knows_whom_pruning_would_hit():
    weights = torch.diag(torch.tensor([2.0, 2.0, 0.5, 1.0]))
    found = specialisation(
        weights, torch.eye(4), groups=["head", "head", "tail", "tail"], frequencies=[10, 10, 1, 1], alpha=0.25
    )
    assert found.pruned_share == {"head": 0.0, "tail": 1.0}
    assert found.neuron_share == {"head": 0.5, "tail": 0.5}
    assert found.favours("tail")
    assert not found.favours("head")
    assert [row.lucky for row in found.rows] == [1, 1, 1, 1]
    assert [row.norm for row in found.rows] == [2.0, 2.0, 0.5, 1.0]
    assert "4 lucky and 0 mixed of 4 neurons" in str(found)


def with_idle(alpha):
    """Eight specialists, a neuron on an axis that is no feature, and three dead ones."""
    weights = torch.cat([torch.diag(torch.tensor([2.0, 2, 2, 2, 0.5, 1, 1, 1, 3])), torch.zeros(3, 9)])
    with pytest.warns(UserWarning, match="3 neurons have norm zero"):
        return specialisation(weights, torch.eye(9)[:8], groups=["head"] * 4 + ["tail"] * 4, alpha=alpha)


def test_a_neuron_that_aligns_with_nothing_is_nobodys_specialist():
    found = with_idle(4 / 12)
    assert (found.pruned, found.unaligned, found.pruned_unaligned) == (4, 4, 3)
    assert found.pruned_share == {"head": 0.0, "tail": 1.0}
    assert found.neuron_share == {"head": 0.5, "tail": 0.5}
    assert found.favours("tail")
    assert not found.favours("head")
    assert [row.norm for row in found.rows] == [2.0, 2.0, 2.0, 2.0, 0.5, 1.0, 1.0, 1.0]
    assert [row.lucky for row in found.rows] == [1] * 8
    assert re.search(r"4 align with nothing.*0\.333333 would hit 3", str(found))


def test_pruning_that_hits_dead_neurons_alone_favours_nobody():
    found = with_idle(0.125)
    assert (found.pruned, found.pruned_unaligned) == (2, 2)
    with pytest.raises(ValueError, match="align with nothing"):
        found.favours("head")
    assert "nan" not in str(found)


def test_a_share_that_rounds_to_no_neuron_is_said_and_favours_nobody():
    found = specialisation(torch.eye(3), torch.eye(3), groups=["head", "head", "tail"], alpha=0.1)
    assert found.pruned == 0
    assert "pruning at 0.1 would hit none of them" in str(found)
    assert "nan" not in str(found)
    with pytest.raises(ValueError, match="hits none of 3 neurons"):
        found.favours("tail")
    assert specialisation(torch.eye(3), torch.eye(3), alpha=0.3).pruned == 1


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: alignments(torch.ones(2, 3), torch.zeros(1, 3)), "no direction"),
        (lambda: smallest_neurons(torch.ones(4), 1.0), "must lie in"),
        (lambda: smallest_neurons(torch.ones(4), 0.9), "prunes all"),
        (lambda: specialisation(torch.ones(4, 3), torch.eye(3), groups=["a"]), "one entry"),
        (lambda: specialisation(torch.ones(4, 3), torch.eye(3)[:1]), "at least two"),
        (lambda: specialisation(torch.full((4, 3), torch.nan), torch.eye(3)), "weights .*not"),
        (lambda: specialisation(torch.ones(4, 3), torch.eye(3) * torch.inf), "directions .*not"),
    ],
)
def test_bad_input_is_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()
