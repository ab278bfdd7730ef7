"""Inputs that replace images."""

import torch

from assay.data.images import ImageSet
from assay.studies.feature_emergence.injected_inputs.problem import image_inputs
from assay.training.seeds import Seeds


def test_unrelated_images_can_be_injected(digits):
    seeds = Seeds((0,))
    generator = torch.Generator().manual_seed(0)
    other = ImageSet(torch.rand(30, 3, 12, 12, generator=generator), torch.zeros(30, dtype=torch.long), "other", 1)
    inputs, test_inputs = image_inputs(other, other, digits[0], seeds)
    assert inputs.shape == test_inputs.shape == (1, 30, 64)
    assert inputs.mean().abs() < 1e-5
