"""Small image sets."""

import pytest

from assay.data.images import load_images, two_classes


@pytest.fixture(scope="module")
def digits():
    return load_images("digits", limit=400), load_images("digits", "test", limit=200)


@pytest.fixture(scope="module")
def pair(digits):
    return [two_classes(each, 0, 1) for each in digits]
