from __future__ import annotations

import pytest
import torch

from assay.probes import ridge_head
from assay.studies.universality_tradeoff.images.problem import MADE, load_source, mixtures


@pytest.mark.parametrize("name", [*MADE, "digits"])
@pytest.mark.parametrize("side", [8, 12])
def test_sources_are_grey_images_of_one_size_with_ten_classes(name, side):
    train, test = (load_source(name, split, side=side, limit=200) for split in ("train", "test"))
    assert train.images.shape == (200, 1, side, side)
    assert 0 <= float(train.images.min()) <= float(train.images.max()) <= 1
    assert set(train.labels.tolist()) == set(range(10))
    assert not torch.equal(train.images, test.images[:200])
    again = load_source(name, "train", side=side, limit=200)
    torch.testing.assert_close(again.images, train.images)


@pytest.mark.parametrize("name", list(MADE))
def test_the_classes_of_made_up_sets_can_be_told_apart(name):
    """Stripes come at any phase, which pixels do not tell linearly: their spectrum does."""
    train, test = (load_source(name, split, side=8, limit=500) for split in ("train", "test"))
    read = [torch.fft.fft2(each.images).abs() if name == "stripes" else each.images for each in (train, test)]
    head = ridge_head(read[0].flatten(1), train.labels)
    right = torch.as_tensor(head.predict(read[1].flatten(1))) == test.labels
    assert float(right.double().mean()) > 0.6


def test_mixtures_grow_one_set_at_a_time():
    assert mixtures(("a", "b", "c")) == ("a", "a+b", "a+b+c")
