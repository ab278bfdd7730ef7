"""Image sets by name: scikit-learn's digits always, any other from Parquet files in ``$ASSAY_DATA`` or from the hub."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from assay._extras import extra, needs

HUB = {  # set: (name on the hub, configuration, name of the test split)
    "mnist": ("ylecun/mnist", None, "test"),
    "fashion_mnist": ("zalando-datasets/fashion_mnist", None, "test"),
    "cifar10": ("uoft-cs/cifar10", None, "test"),
    "cifar100": ("uoft-cs/cifar100", None, "test"),
    "svhn": ("ufldl-stanford/svhn", "cropped_digits", "test"),
    "tiny_imagenet": ("zh-plus/tiny-imagenet", None, "valid"),
}
SPLITS = ("train", "test")
IMAGE_COLUMNS = ("image", "img")
LABEL_COLUMNS = ("label", "fine_label")


class DataUnavailable(RuntimeError):
    """A named image set is neither in the data folder nor to be had from the hub."""


@dataclass(frozen=True)
class ImageSet:
    """Images (n, channels, height, width), float32 in [0, 1]; labels (n,), int64."""

    images: Tensor
    labels: Tensor
    name: str
    classes: int

    def __len__(self) -> int:
        return len(self.labels)


def load_images(name: str, split: str = "train", *, limit: int | None = None) -> ImageSet:
    """The set's images in stored order, the first ``limit`` of them when a limit is given. Decoded pixels stay in
    memory for the next call; the tensors handed out are the caller's own."""
    if split not in SPLITS:
        raise ValueError(f"split must be 'train' or 'test', not {split!r}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    folder = "" if name == "digits" else os.environ.get("ASSAY_DATA", "")
    written = tuple((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in _files(name, split, folder))
    pixels, labels, classes = _pixels(name, split, limit, folder, written)
    scale = 16.0 if name == "digits" else 255.0
    return ImageSet(torch.from_numpy(pixels).float().div_(scale), torch.tensor(labels), name, classes)


def available(name: str) -> str | None:
    """None when the set can be read without the network, else the reason why not, as a sentence."""
    if name == "digits":
        return None if find_spec("sklearn") else needs("the image set 'digits'", "lab")
    folder = os.environ.get("ASSAY_DATA", "")
    for split in SPLITS:
        if not _files(name, split, folder):
            return _not_found(name, split, folder)
    if find_spec("PIL") is None:
        return needs(f"decoding the images of {name!r}", "data")
    return None


def obtainable(name: str) -> str | None:
    """None when the set can be read from this machine or asked of the hub (which happens when it is loaded, not
    here), else the reason why not."""
    reason = available(name)
    if reason is None:
        return None
    if refusal := _hub_refusal(name):
        return f"{reason}, and {refusal}"
    return None if find_spec("PIL") else reason


def two_classes(image_set: ImageSet, a: int, b: int) -> ImageSet:
    """The images of two classes, in order, with labels -1 for class ``a`` and +1 for class ``b``."""
    if a == b or not all(0 <= c < image_set.classes for c in (a, b)):
        raise ValueError(
            f"two different classes among 0..{image_set.classes - 1} of {image_set.name} are needed, not {a} and {b}"
        )
    kept = (image_set.labels == a) | (image_set.labels == b)
    labels = torch.where(image_set.labels[kept] == b, 1, -1)
    return ImageSet(image_set.images[kept], labels, f"{image_set.name}:{a}-{b}", 2)


def conform(image_set: ImageSet, like: ImageSet) -> ImageSet:
    """The images brought to the size and the channels of another set: averaged over areas, grey or repeated."""
    channels, height, width = like.images.shape[1:]
    images = functional.interpolate(image_set.images, size=(height, width), mode="area")
    if images.shape[1] != channels:
        images = images.mean(dim=1, keepdim=True).expand(-1, channels, -1, -1).contiguous()
    return replace(image_set, images=images)


@lru_cache(maxsize=16)
def _pixels(
    name: str, split: str, limit: int | None, folder: str, written: tuple[tuple[str, int, int], ...]
) -> tuple[np.ndarray, np.ndarray, int]:
    """Pixels as small integers (n, channels, height, width), labels (n,), number of classes. ``written`` says when the
    files were, so that exchanged ones are read again."""
    if name == "digits":
        return _digits(split, limit)
    files = _files(name, split, folder)
    encoded, labels, classes = _read_parquet(files, limit) if files else _read_hub(name, split, limit, folder)
    return _decode(name, encoded), labels, classes


def _digits(split: str, limit: int | None) -> tuple[np.ndarray, np.ndarray, int]:
    """Every fourth image of every class is a test image: stratified, and the same on every machine."""
    with extra("lab", "the image set 'digits'"):
        from sklearn.datasets import load_digits

    bunch = load_digits()
    rank = np.empty(len(bunch.target), dtype=int)  # how many images of the same class come before
    for c in range(10):
        rank[bunch.target == c] = np.arange((bunch.target == c).sum())
    kept = np.flatnonzero((rank % 4 == 3) == (split == "test"))[:limit]
    return bunch.images[kept][:, None].astype(np.uint8), bunch.target[kept].astype(np.int64), 10


def _files(name: str, split: str, folder: str) -> list[Path]:
    if not folder or not name.replace("_", "").replace("-", "").isalnum():
        return []
    return sorted((Path(folder) / name).glob(f"{split}-*.parquet"))


def _not_found(name: str, split: str, folder: str) -> str:
    where = f"{Path(folder) / name} holds no {split}-*.parquet" if folder else "ASSAY_DATA names no data folder"
    return f"the image set {name!r} is not on this machine: {where}"


def _column(columns: Sequence[str], known: Sequence[str]) -> str:
    for column in known:
        if column in columns:
            return column
    raise DataUnavailable(f"a column named {' or '.join(known)} is needed, and the data has {', '.join(columns)}")


def _read_parquet(files: list[Path], limit: int | None) -> tuple[list[bytes], np.ndarray, int]:
    with extra("lab", "reading Parquet files"):
        import polars as pl

    frame = pl.scan_parquet(files)
    columns = frame.collect_schema().names()
    image, label = _column(columns, IMAGE_COLUMNS), _column(columns, LABEL_COLUMNS)
    classes = int(frame.select(pl.col(label).max()).collect().item()) + 1
    chosen = frame.select(pl.col(image).struct.field("bytes"), pl.col(label))
    rows = (chosen.head(limit) if limit else chosen).collect()
    return rows["bytes"].to_list(), rows[label].to_numpy().astype(np.int64), classes


def _hub_refusal(name: str) -> str | None:
    """Why the hub is not asked for a set, or None when it would be."""
    if name not in HUB:
        return f"the hub is asked only for {', '.join(HUB)}"
    if find_spec("datasets") is None:
        return needs("fetching it from the hub", "data")
    return None


def _read_hub(name: str, split: str, limit: int | None, folder: str) -> tuple[list[bytes], np.ndarray, int]:
    missing = _not_found(name, split, folder)
    if refusal := _hub_refusal(name):
        raise DataUnavailable(f"{missing}, and {refusal}")
    import datasets

    path, configuration, test_split = HUB[name]
    try:
        rows: Any = datasets.load_dataset(path, configuration, split="train" if split == "train" else test_split)
    except Exception as error:  # the hub's failures have no common class
        raise DataUnavailable(f"{missing}, and the hub did not give {path}: {error}") from error
    image, label = _column(rows.column_names, IMAGE_COLUMNS), _column(rows.column_names, LABEL_COLUMNS)
    classes = int(np.max(rows[label])) + 1
    rows = rows.select(range(min(limit or len(rows), len(rows)))).cast_column(image, datasets.Image(decode=False))
    return [entry["bytes"] for entry in rows[image]], np.asarray(rows[label], dtype=np.int64), classes


def _decode(name: str, encoded: list[bytes]) -> np.ndarray:
    if find_spec("PIL") is None:
        raise DataUnavailable(needs(f"decoding the images of {name!r}", "data"))
    from PIL import Image

    opened = [Image.open(io.BytesIO(data)) for data in encoded]
    # Some colour sets hold a few grey files: one colour image makes the whole set colour.
    mode = "L" if all(image.mode in ("L", "1") for image in opened) else "RGB"
    arrays = [np.asarray(image.convert(mode)) for image in opened]
    if len({array.shape for array in arrays}) != 1:
        raise ValueError(f"the images of {name!r} must all have one size")
    stacked = np.stack(arrays)
    return stacked[:, None] if mode == "L" else np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))
