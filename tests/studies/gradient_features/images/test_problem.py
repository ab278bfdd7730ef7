from __future__ import annotations

import math

import pytest
import torch

from assay.studies.gradient_features.images.problem import LabelledImages
from assay.training import Seeds

SEEDS = Seeds((0, 1))


def digits(task: str = "odd or even") -> LabelledImages:
    return LabelledImages.of("digits", task, (3, 8), 10_000)


def test_images_are_centred_and_have_the_norm_of_a_normal_input():
    data = digits()
    assert float(data.train.mean(0).abs().max()) < 1e-4
    assert float(data.train.square().sum(1).mean()) == pytest.approx(data.dim, rel=1e-4)
    assert data.dim == 64


def test_even_classes_are_positive_and_two_classes_have_their_own_signs():
    data = digits()
    assert torch.equal(data.train_labels, 1.0 - 2.0 * (data.train_classes % 2))
    pair = digits("two classes")
    assert set(pair.train_labels.tolist()) == {-1.0, 1.0}
    assert len(pair.train) < len(data.train) / 3
    assert torch.equal(pair.train_labels > 0, pair.train_classes == 1)


def test_a_seed_sees_different_images_and_not_its_companions():
    data = digits("two classes")
    sample = data.sample(SEEDS, "train", 50)
    assert sample.inputs.shape == (2, 50, 64)
    assert len(torch.unique(sample.inputs[0], dim=0)) > 45
    assert torch.equal(data.sample(Seeds((1,)), "train", 50).inputs[0], sample.inputs[1])
    everything = data.sample(SEEDS, "train", 10_000)
    assert everything.inputs.shape[1] == len(data.train)  # never one image twice, so that halves share none


def test_shuffled_labels_change_hands_and_keep_their_number():
    data = digits()
    true, shuffled = (data.sample(SEEDS, "train", 200, labels) for labels in ("true", "shuffled"))
    assert torch.equal(true.inputs, shuffled.inputs)
    assert torch.equal(true.labels.sum(1), shuffled.labels.sum(1))
    assert 0.3 < float((true.labels == shuffled.labels).float().mean()) < 0.7


def test_test_images_are_halved():
    data = digits()
    chosen, judged = (data.tested(SEEDS, half) for half in (0, 1))
    assert abs(chosen.labels.shape[1] - judged.labels.shape[1]) <= 1
    assert chosen.labels.shape[1] + judged.labels.shape[1] == len(data.test)
    assert math.isfinite(float(judged.inputs.sum()))
