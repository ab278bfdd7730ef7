import os
from pathlib import Path

import numpy as np
import pytest
import torch

from assay.data import images
from assay.data.catalog import DataUnavailable, UnknownData, available
from assay.data.images import conform, load_images, two_classes


def test_digits_are_split_by_class_and_need_nothing(monkeypatch):
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    train, test = load_images("digits"), load_images("digits", "test")
    assert len(train) + len(test) == 1797
    assert train.images.shape[1:] == (1, 8, 8)
    assert train.images.dtype == torch.float32
    assert (train.images.min(), train.images.max()) == (0, 1)
    shares = torch.bincount(test.labels) / torch.bincount(torch.cat([train.labels, test.labels]))
    assert ((shares - 0.25).abs() < 0.01).all()
    assert available("digits") is None


def test_the_tensors_handed_out_are_the_callers_own():
    load_images("digits").images.zero_()
    assert load_images("digits").images.max() == 1


@pytest.mark.parametrize(("column", "shape", "channels"), [("image", (5, 4), 1), ("img", (5, 4, 3), 3)])
def test_parquet_is_decoded_exactly(shelf, column, shape, channels):
    arrays = shelf.arrays(shape)
    shelf.images("mine", arrays, [0, 1, 2, 0, 1, 2], column)
    loaded = load_images("mine", "test")
    assert loaded.images.shape == (6, channels, 5, 4)
    expected = np.stack(arrays).reshape(6, 5, 4, channels).transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
    assert np.array_equal(loaded.images.numpy(), expected)
    assert loaded.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert available("mine") is None


def test_images_may_be_plain_bytes(shelf):
    arrays = shelf.arrays((3, 3))
    shelf.table("mine", {"image": [shelf.png(array)["bytes"] for array in arrays], "label": [0] * 6})
    plain = load_images("mine").images
    shelf.images("mine", arrays, [0] * 6)
    assert torch.equal(plain, load_images("mine").images)


def test_a_limit_keeps_the_first_images_and_all_classes(shelf):
    shelf.images("mine", shelf.arrays((3, 3)), [0, 0, 0, 0, 0, 4])
    loaded = load_images("mine", limit=4)
    assert len(loaded) == 4
    assert loaded.classes == 5


def test_one_colour_image_makes_the_set_colour(shelf):
    shelf.images("mine", [*shelf.arrays((3, 3), 2), *shelf.arrays((3, 3, 3), 2)], [0, 1, 0, 1])
    assert load_images("mine").images.shape == (4, 3, 3, 3)


def test_a_missing_set_names_folder_and_extra(shelf, monkeypatch):
    monkeypatch.setattr("assay.data.catalog.find_spec", lambda name: None)
    with pytest.raises(DataUnavailable, match=r"assay-lab\[data\]") as caught:
        load_images("mnist")
    assert str(shelf.folder / "mnist") in str(caught.value)
    assert not isinstance(caught.value, UnknownData)


@pytest.mark.parametrize("name", ["no-such-set", "../mnist", "", ".", "a" * 1000, "nul\0"])
def test_an_unknown_set_is_not_asked_of_the_hub(hub, shelf, name):
    with pytest.raises(UnknownData, match=r"unknown image set .*allowed: digits, mnist"):
        load_images(name)
    assert hub.asked == []


def test_a_set_of_another_kind_is_refused(shelf):
    shelf.table("mine", {"text": ["a", "b"], "label": [0, 1]})
    for name in ("sst2", "mine"):
        with pytest.raises(UnknownData, match=f"'{name}' is no image set but a text set"):
            load_images(name)


def test_the_hub_is_read_when_a_known_set_is_named(hub, shelf, monkeypatch):
    monkeypatch.delenv("ASSAY_DATA")
    rows = {"image": [shelf.png(array) for array in shelf.arrays((2, 2))], "label": [0, 1, 2, 3, 4, 5]}
    hub.serves["ufldl-stanford/svhn", "train"] = rows
    images._pixels.cache_clear()
    loaded = load_images("svhn", limit=3)
    assert len(loaded) == 3
    assert loaded.classes == 6
    with pytest.raises(DataUnavailable, match=r"'tiny_imagenet' is not on this machine.*did not give.*no route"):
        load_images("tiny_imagenet", "test")
    assert hub.asked == [("ufldl-stanford/svhn", "cropped_digits", "train"), ("zh-plus/tiny-imagenet", None, "valid")]
    images._pixels.cache_clear()


@pytest.mark.parametrize("split", ["valid", "test"])
def test_a_file_has_the_hubs_name_of_a_split_or_ours(shelf, split):
    shelf.images("tiny_imagenet", shelf.arrays((3, 3)), [0] * 6, splits=("train", split))
    assert len(load_images("tiny_imagenet", "test")) == 6


def test_two_classes_have_labels_minus_one_and_one():
    digits = load_images("digits")
    pair = two_classes(digits, 3, 8)
    assert len(pair) == int(((digits.labels == 3) | (digits.labels == 8)).sum())
    assert torch.equal(pair.images[pair.labels == 1], digits.images[digits.labels == 8])
    assert sorted(set(pair.labels.tolist())) == [-1, 1]


def test_conform_brings_size_and_channels(shelf):
    shelf.images("mine", shelf.arrays((16, 16, 3)), [0] * 6)
    other, digits = load_images("mine"), load_images("digits")
    changed = conform(other, digits)
    assert changed.images.shape == (6, 1, 8, 8)
    torch.testing.assert_close(changed.images.mean(dim=(1, 2, 3)), other.images.mean(dim=(1, 2, 3)))
    assert torch.equal(conform(digits, digits).images, digits.images)


@pytest.mark.parametrize("arguments", [{"split": "validation"}, {"limit": 0}])
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match=r"split|limit"):
        load_images("digits", **arguments)


@pytest.mark.parametrize("pair", [(3, 3), (0, 10), (-1, 2)])
def test_bad_classes_are_refused(pair):
    with pytest.raises(ValueError, match="different classes"):
        two_classes(load_images("digits"), *pair)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"image": [b"no image", b""], "label": [0, 1]}, "an image of 'mine' cannot be decoded"),
        ({"image": [b"", b""]}, "'mine' needs a column named label or fine_label, and its data has image"),
        ({"image": [b"", b""], "label": ["cat", "dog"]}, "labels of 'mine' must be whole numbers from 0"),
        ({"image": [b"", b""], "label": [0, None]}, "labels of 'mine' must be whole numbers from 0"),
        ({"image": [b"", b""], "label": [0, -1]}, "labels of 'mine' must be whole numbers from 0"),
        ({"picture": [b"", b""], "label": [0, 1]}, "'mine' needs a column named image or img"),
    ],
)
def test_files_that_cannot_be_used_are_refused_in_a_sentence(shelf, columns, says):
    shelf.table("mine", columns)
    with pytest.raises(DataUnavailable, match=says):
        load_images("mine")


def test_a_damaged_file_is_refused_in_a_sentence(shelf):
    shelf.images("mnist", shelf.arrays((3, 3)), [0] * 6)
    (shelf.folder / "mnist" / "train-00000-of-00002.parquet").write_bytes(b"damaged")
    with pytest.raises(DataUnavailable, match=r"the files of 'mnist' in .* cannot be read"):
        load_images("mnist")


def test_exchanged_files_are_read_again(shelf):
    shelf.images("mine", shelf.arrays((3, 3)), [0, 1, 2, 0, 1, 2])
    assert load_images("mine", "test").images.shape == (6, 1, 3, 3)
    shelf.images("mine", shelf.arrays((4, 4)), [0, 1, 2, 0, 1, 2])
    assert load_images("mine", "test").images.shape == (6, 1, 4, 4)


@pytest.mark.data
@pytest.mark.skipif(not Path(os.environ.get("ASSAY_DATA", ""), "mnist").is_dir(), reason="no mnist in $ASSAY_DATA")
def test_the_real_mnist_is_read():
    test = load_images("mnist", "test")
    assert test.images.shape == (10_000, 1, 28, 28)
    assert test.labels[:5].tolist() == [7, 2, 1, 0, 4]
