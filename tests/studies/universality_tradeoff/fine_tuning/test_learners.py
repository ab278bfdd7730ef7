from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from assay.studies.universality_tradeoff.fine_tuning.learners import (
    FineTuning,
    labelled,
    probed,
    separation,
    share_right,
)
from assay.studies.universality_tradeoff.images.learners import make_encoder
from assay.studies.universality_tradeoff.images.problem import load_source
from assay.training.seeds import stream

TRAIN, TEST = (load_source("digits", split, side=8, limit=300) for split in ("train", "test"))
ENCODER = make_encoder("cnn", 8, 4, 6, stream(0, "encoder")).eval()


def test_labelled_images_are_balanced_and_nested_and_apart_from_the_rest():
    few, rest = labelled(TRAIN, 20, 0)
    more, _ = labelled(TRAIN, 50, 0)
    assert torch.equal(few, more[:20])
    assert torch.bincount(TRAIN.labels[few]).tolist() == [2] * 10
    assert not set(few.tolist()) & set(rest.tolist())
    assert len(few) + len(rest) == len(TRAIN)


@pytest.mark.parametrize("strength", [0.0, 0.1])
def test_fine_tuning_learns_repeats_and_leaves_its_start(strength):
    chosen, _ = labelled(TRAIN, 60, 0)
    kept = {name: value.clone() for name, value in ENCODER.state_dict().items()}
    recipe = FineTuning(steps=60, rate=1e-2, strength=strength)
    images, labels = TRAIN.images[chosen], TRAIN.labels[chosen]
    state = torch.random.get_rng_state()
    torch.manual_seed(5)
    one = recipe.train(ENCODER, images, labels, 10, 0)
    torch.manual_seed(5)
    two = recipe.train(ENCODER, images, labels, 10, 0)
    torch.random.set_rng_state(state)
    assert share_right(one, images, labels) > 0.3  # chance is 0.1
    assert share_right(one, TEST.images, TEST.labels) == share_right(two, TEST.images, TEST.labels)
    for name, value in ENCODER.state_dict().items():
        torch.testing.assert_close(value, kept[name])


def test_the_regulariser_changes_neither_batches_nor_labelled_views():
    """With a vanishing strength it ends where the plain loss does, but for the statistics of normalisation."""
    chosen, _ = labelled(TRAIN, 40, 0)
    mlp = make_encoder("mlp", 8, 16, 6, stream(0, "encoder")).eval()
    ends = [
        FineTuning(steps=10, strength=strength).train(mlp, TRAIN.images[chosen], TRAIN.labels[chosen], 10, 0)
        for strength in (0.0, 1e-12)
    ]
    torch.testing.assert_close(ends[0](TEST.images), ends[1](TEST.images), atol=1e-4, rtol=0)


def test_a_diverged_network_has_no_accuracy():
    lost = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    nn.init.constant_(lost[1].weight, math.nan)
    assert math.isnan(share_right(lost, TEST.images, TEST.labels))
    assert math.isnan(probed(lost, (TRAIN.images, TRAIN.labels), (TEST.images, TEST.labels)))


def test_separation_is_large_for_tight_classes():
    labels = torch.arange(60) % 3
    noise = torch.randn(60, 3, generator=torch.Generator().manual_seed(0))
    found = [separation(torch.eye(3)[labels] + size * noise, labels) for size in (0.05, 0.5)]
    assert found[0] > 20 > found[1]
    assert separation(noise, labels) < 0.3
