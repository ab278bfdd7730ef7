import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.data.images import ImageSet, load_images
from assay.data.long_tail import balanced, long_tailed, long_tailed_counts


def images(per_class: int = 50, classes: int = 4) -> ImageSet:
    labels = torch.arange(per_class * classes) % classes
    return ImageSet(torch.arange(len(labels)).float().view(-1, 1, 1, 1), labels, "made", classes)


@pytest.mark.parametrize(("ratio", "total"), [(100, 12_406), (50, 13_996), (10, 20_431)])
def test_the_cifar_profiles_have_their_known_sizes(ratio, total):
    counts = long_tailed_counts(10, 5000, ratio)
    assert sum(counts) == total
    assert counts[0] == 5000
    assert counts[-1] == 5000 // ratio


@given(classes=st.integers(2, 30), ratio=st.integers(1, 50), smallest=st.integers(1, 40))
def test_counts_fall_and_have_the_exact_end_ratio(classes, ratio, smallest):
    counts = long_tailed_counts(classes, smallest * ratio, ratio)
    assert counts == sorted(counts, reverse=True)
    assert counts[0] / counts[-1] == ratio


def test_a_subset_has_the_profile_in_the_order_asked_for():
    tail = long_tailed(images(), 8, largest=40, order=[2, 0, 3, 1], generator=torch.Generator().manual_seed(0))
    assert torch.bincount(tail.labels)[[2, 0, 3, 1]].tolist() == long_tailed_counts(4, 40, 8)
    kept = tail.images.flatten().long()
    assert len(kept.unique()) == len(kept)
    assert torch.equal(kept % 4, tail.labels)
    other = long_tailed(images(), 8, largest=40, order=[2, 0, 3, 1], generator=torch.Generator().manual_seed(1))
    assert not torch.equal(other.images, tail.images)


def test_the_largest_class_defaults_to_what_the_set_allows():
    tail = long_tailed(load_images("digits"), 10, generator=torch.Generator().manual_seed(0))
    counts = torch.bincount(tail.labels).tolist()
    assert counts == sorted(counts, reverse=True)
    assert counts[0] // counts[-1] == 10


def test_balanced_subsets_have_equal_counts():
    kept = balanced(images(), 7, generator=torch.Generator().manual_seed(0))
    assert torch.bincount(kept.labels).tolist() == [7] * 4


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: long_tailed_counts(10, 5000, 0.5), "at least 1"),
        (lambda: long_tailed_counts(10, 50, 100), "has none"),
        (lambda: long_tailed_counts(1, 50, 10), "two classes"),
        (lambda: long_tailed(images(), 2, largest=60, generator=torch.Generator()), "60 are wanted"),
        (lambda: long_tailed(images(), 2, order=[0, 0, 1, 2], generator=torch.Generator()), "each of the 4"),
    ],
)
def test_bad_tails_are_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()
