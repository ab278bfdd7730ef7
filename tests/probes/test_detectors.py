from __future__ import annotations

import pytest
import torch

from assay.probes.detectors import (
    aligned_neurons,
    detector_counts,
    group_errors,
    response_ratio,
    responses,
    singleton_detectors,
)

DIRECTIONS = torch.eye(3)
WEIGHTS = torch.tensor([[2.0, 0.0, 0.1], [2.0, 2.0, 0.0], [1.4, 0.0, 0.0], [0.0, 0.0, 5.0]])


def test_detectors_by_hand():
    assert aligned_neurons(WEIGHTS, DIRECTIONS, 1.5).int().tolist() == [[1, 0, 0], [1, 1, 0], [0, 0, 0], [0, 0, 1]]
    single = singleton_detectors(WEIGHTS, DIRECTIONS, 1.5, 1.3)
    assert single.int().tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert detector_counts(single).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="low must be at most 1"):
        singleton_detectors(WEIGHTS, DIRECTIONS, 1.0, 2.0)


def test_detectors_turn_with_their_directions():
    turn = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0))).Q
    turned = singleton_detectors(WEIGHTS @ turn, DIRECTIONS @ turn, 1.5, 1.3)
    assert torch.equal(turned, singleton_detectors(WEIGHTS, DIRECTIONS, 1.5, 1.3))


def test_responses_are_a_sum_over_neurons():
    biases = torch.tensor([-1.0, -1.5, -2.0, 0.0])
    slow = [sum(max(0.0, float(w @ v) + float(b)) for w, b in zip(WEIGHTS, biases, strict=True)) for v in DIRECTIONS]
    found = responses(WEIGHTS, biases, DIRECTIONS)
    torch.testing.assert_close(found, torch.tensor(slow))
    assert float(response_ratio(found, [0, 1], [2])) == pytest.approx((slow[0] + slow[1]) / 2 / slow[2])


def test_group_errors_count_ties():
    scores = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    labels = torch.tensor([0, 0, 1, 1])
    easy = torch.tensor([True, True, False, False])
    assert group_errors(scores, labels, {"easy": easy, "hard": ~easy}) == {"easy": 0.5, "hard": 0.5}
    with pytest.raises(ValueError, match="picks at least one"):
        group_errors(scores, labels, {"none": torch.zeros(4, dtype=torch.bool)})
    with pytest.raises(ValueError, match="scores are"):
        group_errors(scores, labels[:2], {})
