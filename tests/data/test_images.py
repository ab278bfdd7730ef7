import io
import sys
import types

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

from assay.data import images
from assay.data.images import DataUnavailable, available, conform, load_images, obtainable, two_classes


def png(array):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, format="PNG")
    return {"bytes": buffer.getvalue(), "path": None}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    return tmp_path


def write(folder, name, column, arrays, labels, splits=("train", "test")):
    (folder / name).mkdir(exist_ok=True)
    for split in splits:
        half = len(arrays) // 2  # two shards, to be read in order
        for i, part in enumerate((slice(0, half), slice(half, None))):
            frame = pl.DataFrame({column: [png(a) for a in arrays[part]], "label": labels[part]})
            frame.write_parquet(folder / name / f"{split}-0000{i}-of-00002.parquet")


def random_images(shape, n=6):
    return [np.random.default_rng(i).integers(0, 256, shape, dtype=np.uint8) for i in range(n)]


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
def test_parquet_is_decoded_exactly(folder, column, shape, channels):
    arrays = random_images(shape)
    write(folder, "mine", column, arrays, [0, 1, 2, 0, 1, 2])
    loaded = load_images("mine", "test")
    assert loaded.images.shape == (6, channels, 5, 4)
    expected = np.stack(arrays).reshape(6, 5, 4, channels).transpose(0, 3, 1, 2) / 255
    np.testing.assert_allclose(loaded.images.numpy(), expected, atol=1e-6)
    assert loaded.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert available("mine") is None


def test_a_limit_keeps_the_first_images_and_all_classes(folder):
    write(folder, "mine", "image", random_images((3, 3)), [0, 0, 0, 0, 0, 4])
    loaded = load_images("mine", limit=4)
    assert len(loaded) == 4
    assert loaded.classes == 5


def test_one_colour_image_makes_the_set_colour(folder):
    write(folder, "mine", "image", [*random_images((3, 3), 2), *random_images((3, 3, 3), 2)], [0, 1, 0, 1])
    assert load_images("mine").images.shape == (4, 3, 3, 3)


def test_a_missing_set_names_folder_and_extra(folder, monkeypatch):
    monkeypatch.setattr(images, "find_spec", lambda name: None)
    with pytest.raises(DataUnavailable, match="assay-lab\\[data\\]") as caught:
        load_images("mnist")
    assert str(folder / "mnist") in str(caught.value)
    assert str(folder / "mnist") in available("mnist")


def test_a_set_without_a_test_split_is_not_available(folder):
    write(folder, "mine", "image", random_images((3, 3)), [0] * 6, splits=("train",))
    assert "test-*.parquet" in available("mine")


def test_an_unknown_set_is_not_asked_of_the_hub(monkeypatch):
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    with pytest.raises(DataUnavailable, match="hub is asked only for mnist"):
        load_images("no-such-set")
    with pytest.raises(DataUnavailable):
        load_images("../mnist")


def test_what_the_hub_serves_is_obtainable_and_the_hub_is_not_asked(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace())  # any call would raise
    monkeypatch.setattr(images, "find_spec", lambda name: object())
    assert obtainable("mnist") is None
    assert available("mnist") is not None
    assert obtainable("digits") is None
    assert "hub is asked only for" in obtainable("faces")
    monkeypatch.setattr(images, "find_spec", lambda name: None if name == "datasets" else object())
    assert "assay-lab[data]" in obtainable("mnist")


class HubRows:
    """The few calls of a ``datasets`` table that the reader makes."""

    def __init__(self, rows):
        self.rows, self.column_names = rows, list(rows)

    def __len__(self):
        return len(self.rows["label"])

    def __getitem__(self, column):
        return self.rows[column]

    def select(self, indices):
        return HubRows({key: [values[i] for i in indices] for key, values in self.rows.items()})

    def cast_column(self, column, feature):
        return self


def test_the_hub_is_read_when_a_known_set_is_named(monkeypatch):
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    asked = []

    def load_dataset(path, configuration, split):
        asked.append((path, split))
        if split == "valid":
            raise OSError("no route")
        return HubRows({"image": [png(a) for a in random_images((2, 2))], "label": [0, 1, 2, 3, 4, 5]})

    fake = types.SimpleNamespace(load_dataset=load_dataset, Image=lambda decode: None)
    monkeypatch.setitem(sys.modules, "datasets", fake)
    monkeypatch.setattr(images, "find_spec", lambda name: object())
    images._pixels.cache_clear()
    loaded = load_images("svhn", limit=3)
    assert len(loaded) == 3
    assert loaded.classes == 6
    with pytest.raises(DataUnavailable, match="no route"):
        load_images("tiny_imagenet", "test")
    assert asked == [("ufldl-stanford/svhn", "train"), ("zh-plus/tiny-imagenet", "valid")]
    images._pixels.cache_clear()


def test_two_classes_have_labels_minus_one_and_one():
    digits = load_images("digits")
    pair = two_classes(digits, 3, 8)
    assert len(pair) == int(((digits.labels == 3) | (digits.labels == 8)).sum())
    assert torch.equal(pair.images[pair.labels == 1], digits.images[digits.labels == 8])
    assert sorted(set(pair.labels.tolist())) == [-1, 1]


def test_conform_brings_size_and_channels(folder):
    write(folder, "mine", "image", random_images((16, 16, 3)), [0] * 6)
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


def test_exchanged_files_are_read_again(folder):
    first, second = random_images((3, 3)), random_images((4, 4))
    write(folder, "mine", "image", first, [0, 1, 2, 0, 1, 2])
    assert load_images("mine", "test").images.shape == (6, 1, 3, 3)
    write(folder, "mine", "image", second, [0, 1, 2, 0, 1, 2])
    assert load_images("mine", "test").images.shape == (6, 1, 4, 4)
