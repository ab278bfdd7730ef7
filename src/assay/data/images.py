"""Image sets by name: scikit-learn's digits always, any other from Parquet files in ``$ASSAY_DATA`` or from the hub."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from assay._extras import extra, needs

from . import catalog, tables
from .catalog import DataUnavailable

if TYPE_CHECKING:
    from PIL.Image import Image

Written = tuple[tuple[Path, int, int], ...]  # files with the time they were written and their size


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
    tables.check(split, limit)
    paths = catalog.files(catalog.known(name, "images"), split)
    seen = [path.stat() for path in paths]
    written = tuple((path, at.st_mtime_ns, at.st_size) for path, at in zip(paths, seen, strict=True))
    pixels, labels, classes = _pixels(name, split, limit, written)
    scale = 16.0 if name == "digits" else 255.0
    return ImageSet(torch.from_numpy(pixels).float().div_(scale), torch.tensor(labels), name, classes)


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


def decoded(source: bytes | Path, name: str) -> Image:
    """An image of the set ``name``, from its file or from the bytes of one."""
    if find_spec("PIL") is None:
        raise DataUnavailable(needs(f"decoding the images of {name!r}", "data"))
    from PIL import Image

    try:
        image = Image.open(source if isinstance(source, Path) else io.BytesIO(source))
        image.load()
    except (OSError, SyntaxError, ValueError) as error:
        which = source if isinstance(source, Path) else "an image"
        raise DataUnavailable(f"{which} of {name!r} cannot be decoded: {error}") from error
    return image


def rank_within_class(labels: np.ndarray) -> np.ndarray:
    """How many of the same class come before each (n,)."""
    rank = np.empty(len(labels), dtype=np.int64)
    for c in np.unique(labels):
        rank[labels == c] = np.arange((labels == c).sum())
    return rank


@lru_cache(maxsize=16)
def _pixels(name: str, split: str, limit: int | None, written: Written) -> tuple[np.ndarray, np.ndarray, int]:
    """Pixels as small integers (n, channels, height, width), labels (n,), number of classes. ``written`` tells the
    files and when they were written, so that exchanged ones are read again."""
    if name == "digits":
        return _digits(split, limit)
    files = [path for path, _, _ in written]
    if files:
        rows = tables.from_parquet(name, files, "images", limit)
    else:
        rows = tables.from_hub(catalog.known(name), split, limit)
    return _decode(name, rows.values), rows.labels, rows.classes


def _digits(split: str, limit: int | None) -> tuple[np.ndarray, np.ndarray, int]:
    """Every fourth image of every class is a test image: stratified, and the same on every machine."""
    with extra("lab", "the image set 'digits'"):
        from sklearn.datasets import load_digits

    bunch = load_digits()
    kept = np.flatnonzero((rank_within_class(bunch.target) % 4 == 3) == (split == "test"))[:limit]
    return bunch.images[kept][:, None].astype(np.uint8), bunch.target[kept].astype(np.int64), 10


def _decode(name: str, encoded: list[bytes]) -> np.ndarray:
    opened = [decoded(data, name) for data in encoded]
    # Some colour sets hold a few grey files: one colour image makes the whole set colour.
    mode = "L" if all(image.mode in ("L", "1") for image in opened) else "RGB"
    arrays = [np.asarray(image.convert(mode)) for image in opened]
    if len({array.shape for array in arrays}) != 1:
        raise ValueError(f"the images of {name!r} must all have one size")
    stacked = np.stack(arrays)
    return stacked[:, None] if mode == "L" else np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))
