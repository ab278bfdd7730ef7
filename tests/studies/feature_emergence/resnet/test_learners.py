"""Filters of a small ResNet on two classes of the digits."""

from dataclasses import replace

import pytest
import torch

from assay.studies.feature_emergence.resnet.learners import ResNetFilters
from assay.training.seeds import Seeds

SMALL = ResNetFilters(width=2, epochs=2, snapshots=(0, 1, 2), chunks=3, chunk_steps=2, batch=16, keep=3)


def test_resnet_filters_have_the_stated_shapes(pair):
    report = SMALL.train(*pair, Seeds((0, 1)))
    assert set(report.filters) == set(report.test_accuracy) == {0, 1, 2}
    assert [tuple(stage.shape) for stage in report.filters[0]] == [(2, 2, 18), (2, 3, 36), (2, 3, 72), (2, 3, 144)]
    assert [tuple(stage.shape) for stage in report.chunk_means] == [
        (2, 3, 2, 18),
        (2, 3, 3, 36),
        (2, 3, 3, 72),
        (2, 3, 3, 144),
    ]
    assert not torch.equal(report.filters[0][0], report.filters[2][0])
    assert report.test_accuracy[2].shape == (2,)


def test_the_chunks_are_the_gradients_of_plain_descent(pair):
    plain = replace(SMALL, epochs=1, snapshots=(0, 1), chunks=1, chunk_steps=4, momentum=0.0, learning_rate=0.1)
    train = replace(pair[0], images=pair[0].images[:64], labels=pair[0].labels[:64])
    report = plain.train(train, pair[1], Seeds((0,)))
    for before, after, mean in zip(report.filters[0], report.filters[1], report.chunk_means, strict=True):
        torch.testing.assert_close(after - before, -0.1 * 4 * mean[:, 0], rtol=1e-3, atol=1e-6)


def test_shuffled_labels_change_the_gradients_but_not_the_start(pair):
    true, null = (replace(SMALL, shuffle_labels=each).train(*pair, Seeds((0,))) for each in (False, True))
    assert torch.equal(true.filters[0][3], null.filters[0][3])
    assert not torch.equal(true.chunk_means[3], null.chunk_means[3])
    again = SMALL.train(*pair, Seeds((5, 0)))
    torch.testing.assert_close(again.chunk_means[2][1], true.chunk_means[2][0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("change", [{"snapshots": (0, 3)}, {"chunk_steps": 100}])
def test_impossible_schedules_are_refused(pair, change):
    with pytest.raises(ValueError, match=r"snapshots|more steps"):
        replace(SMALL, **change).train(*pair, Seeds((0,)))
