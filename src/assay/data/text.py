"""Text sets by name: short texts with a label each, from Parquet files in ``$ASSAY_DATA`` or from the hub."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from . import catalog, tables


@dataclass(frozen=True)
class TextSet:
    """Texts (n) and their labels (n,), int64."""

    texts: tuple[str, ...]
    labels: Tensor
    name: str
    classes: int

    def __len__(self) -> int:
        return len(self.labels)


def load_text(name: str, split: str = "train", *, limit: int | None = None) -> TextSet:
    """The set's texts in stored order, the first ``limit`` of them when a limit is given. The split "test" is the one
    with labels that is not for training: of SST-2 the hub's ``validation``."""
    tables.check(split, limit)
    entry = catalog.known(name, "text")
    files = catalog.files(entry, split)
    rows = tables.from_parquet(name, files, "text", limit) if files else tables.from_hub(entry, split, limit)
    if not all(isinstance(text, str) for text in rows.values):
        raise catalog.DataUnavailable(f"the texts of {name!r} must be strings in every row")
    return TextSet(tuple(rows.values), torch.tensor(rows.labels), name, rows.classes)
