"""Labelled images for every seed, and inputs that replace them."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from assay.data.images import ImageSet, conform
from assay.training.seeds import Seeds

from ..problem import standardized


@dataclass(frozen=True)
class Labelled:
    """Inputs (seeds, n, dim), possibly one set seen by all seeds, with labels (seeds, n), for training and testing."""

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor


def labelled(train: ImageSet, test: ImageSet, seeds: Seeds) -> Labelled:
    """Standardised images for every seed, without copies."""

    def shared(values: Tensor) -> Tensor:
        return values.to(seeds.device).expand(len(seeds), *values.shape)

    inputs, test_inputs = (part.to(seeds.dtype) for part in standardized(train, test))
    return Labelled(shared(inputs), shared(train.labels), shared(test_inputs), shared(test.labels))


def gaussian_inputs(like: Labelled, seeds: Seeds) -> tuple[Tensor, Tensor]:
    """Standard normal inputs for training and testing, as many as there are images; every seed has its own."""
    shapes = (like.inputs.shape[1:], like.test_inputs.shape[1:])
    return seeds.normal("injected", *shapes[0]), seeds.normal("injected test", *shapes[1])


def image_inputs(train: ImageSet, test: ImageSet, like: ImageSet, seeds: Seeds) -> tuple[Tensor, Tensor]:
    """Unrelated images for training and testing, brought to the size of the labelled ones and standardised."""
    other = labelled(conform(train, like), conform(test, like), seeds)
    return other.inputs, other.test_inputs
