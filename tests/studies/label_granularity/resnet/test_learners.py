from __future__ import annotations

import pytest
import torch

from assay.studies.label_granularity.resnet.learners import Augment, ResNetSweep


def test_augmentation_shifts_and_mirrors():
    images = torch.arange(64.0).view(1, 1, 8, 8).repeat(50, 1, 1, 1)
    moved = Augment(0)(images)
    assert moved.shape == images.shape
    assert not torch.equal(moved, images)
    kept = torch.nn.functional.pad(images[:1], (1, 1, 1, 1))
    windows = {tuple(kept[0, 0, i : i + 8, j : j + 8].flatten().tolist()) for i in range(3) for j in range(3)}
    assert {tuple(image.flatten().tolist()) for image in moved} <= windows
    colour = Augment(0)(torch.arange(64.0).view(1, 1, 8, 8).repeat(50, 3, 1, 1))
    assert any(row[0, 3, 2] > row[0, 3, 5] for row in colour)


@pytest.mark.parametrize("scheme", ["one pass", "groups", "clusters per class", "random", "one per sample"])
def test_resnet_sweep_on_digits(scheme):
    found = ResNetSweep("digits", 80, 1, 1).run(scheme, 2, 0, "cpu")
    assert 0 <= found.error <= 1
    assert found.classes == {"one pass": 2, "groups": 4, "one per sample": 72}.get(scheme, 4)
