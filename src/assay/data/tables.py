"""Rows of real data: a column of images or texts and one of labels, from Parquet files or from the hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from assay._extras import extra

from . import catalog
from .catalog import SPLITS, DataUnavailable, Entry
from .layout import COLUMNS, LABELS, Kind

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Rows:
    """Encoded images or texts, their labels (n,), and the number of classes of the whole split."""

    values: list[Any]
    labels: np.ndarray
    classes: int


def check(split: str, limit: int | None) -> None:
    """Refuse a split or a limit that cannot be meant."""
    if split not in SPLITS:
        raise ValueError(f"split must be 'train' or 'test', not {split!r}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")


def from_parquet(name: str, files: Sequence[Path], kind: Kind, limit: int | None = None) -> Rows:
    """The first ``limit`` rows of these files, in order."""
    labels = labels_of(name, files)
    with _scanned(name, files) as frame:
        schema = frame.collect_schema()
        value = _column(name, schema.names(), COLUMNS[kind])
        chosen = frame.select(value)
        if schema[value].is_nested():  # the hub keeps an image with the path that it had
            chosen = chosen.unnest(value).select("bytes")
        values = (chosen.head(limit) if limit else chosen).collect().to_series().to_list()
    return Rows(values, labels[:limit], int(labels.max()) + 1)


def labels_of(name: str, files: Sequence[Path]) -> np.ndarray:
    """Every label in these files (n,)."""
    with _scanned(name, files) as frame:
        label = _column(name, frame.collect_schema().names(), LABELS)
        return _whole_numbers(name, frame.select(label).collect().to_series().to_numpy())


def from_hub(entry: Entry, split: str, limit: int | None = None) -> Rows:
    """The first ``limit`` rows of a split as the hub has it."""
    missing = catalog.absent(entry, (split,))
    if refusal := catalog.hub_refusal(entry):
        raise DataUnavailable(f"{missing}, and {refusal}")
    import datasets

    try:
        rows: Any = datasets.load_dataset(entry.hub, entry.configuration, split=entry.split(split))
    except Exception as error:  # the hub's failures have no common class
        raise DataUnavailable(f"{missing}, and the hub did not give {entry.hub}: {_line(error)}") from error
    kind = entry.kind or "images"
    value, label = _column(entry.name, rows.column_names, COLUMNS[kind]), _column(entry.name, rows.column_names, LABELS)
    labels = _whole_numbers(entry.name, np.asarray(rows[label]))
    rows = rows.select(range(min(limit or len(rows), len(rows))))
    if kind == "text":
        values = list(rows[value])
    else:
        encoded = rows.cast_column(value, datasets.Image(decode=False))[value]
        values = [each["bytes"] for each in encoded]
    return Rows(values, labels[:limit], int(labels.max()) + 1)


@contextmanager
def _scanned(name: str, files: Sequence[Path]) -> Iterator[pl.LazyFrame]:
    with extra("lab", "reading Parquet files"):
        import polars as pl

    try:
        yield pl.scan_parquet(list(files))
    except pl.exceptions.PolarsError as error:
        raise DataUnavailable(f"the files of {name!r} in {files[0].parent} cannot be read: {_line(error)}") from error


def _column(name: str, columns: Iterable[str], known: Sequence[str]) -> str:
    there = list(columns)
    for column in known:
        if column in there:
            return column
    raise DataUnavailable(f"{name!r} needs a column named {' or '.join(known)}, and its data has {', '.join(there)}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _whole_numbers(name: str, labels: np.ndarray) -> np.ndarray:
    if not len(labels):
        raise DataUnavailable(f"{name!r} has no rows")
    whole = labels.dtype.kind in "iub" or (labels.dtype.kind == "f" and bool(np.all(labels % 1 == 0)))
    if not whole or labels.min() < 0:
        raise DataUnavailable(f"the labels of {name!r} must be whole numbers from 0 in every row")
    return labels.astype(np.int64)
