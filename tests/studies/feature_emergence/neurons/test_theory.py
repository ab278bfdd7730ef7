"""The plane in which neurons are looked at."""

from __future__ import annotations

import torch

from assay.studies.feature_emergence.neurons.theory import disk


def test_the_truth_lies_at_the_right_edge_and_points_are_cosines():
    generator = torch.Generator().manual_seed(3)
    truth = torch.randn(7, generator=generator)
    first = torch.randn(5, 7, generator=generator)
    last = torch.stack([truth, -2 * truth, *first[2:]])
    points = disk([first, last], truth)
    assert points.shape == (2, 5, 2)
    expected = torch.nn.functional.cosine_similarity(first.double(), truth.double()[None])
    torch.testing.assert_close(points[0, :, 0], expected)
    torch.testing.assert_close(points[1, :2], torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).double(), atol=1e-7, rtol=0)
    assert bool((points.norm(dim=-1) <= 1 + 1e-9).all()), "directions are seen inside the unit disk"
    torch.testing.assert_close(points[0, 2:], points[1, 2:])


def test_the_second_axis_is_the_one_along_which_neurons_differ_most():
    truth = torch.tensor([1.0, 0.0, 0.0])
    rows = torch.tensor([[0.0, 1.0, 0.1], [0.0, -1.0, 0.1], [0.0, 1.0, -0.1], [1.0, 1.0, 0.0]])
    points = disk([rows], truth)[0]
    along = torch.nn.functional.normalize(rows, dim=-1)[:, 1].double()
    torch.testing.assert_close(points[:, 1].abs(), along.abs(), atol=2e-2, rtol=0)
