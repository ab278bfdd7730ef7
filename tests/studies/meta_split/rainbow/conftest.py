"""RainbowMNIST made of digits."""

import pytest

from assay.data.images import load_images
from assay.studies.meta_split.rainbow.problem import Rainbow


@pytest.fixture(scope="module")
def digits():
    return load_images("digits")


@pytest.fixture(scope="module")
def rainbow(digits):
    return Rainbow(digits, 8)
