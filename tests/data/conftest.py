"""Small data sets in the layout of ``$ASSAY_DATA``, and a hub that needs no network."""

import io
import sys
import types
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image


class Shelf:
    """A data folder to which tests bring sets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @staticmethod
    def png(array: np.ndarray) -> dict[str, object]:
        """An image as the hub keeps it."""
        buffer = io.BytesIO()
        Image.fromarray(array).save(buffer, format="PNG")
        return {"bytes": buffer.getvalue(), "path": None}

    @staticmethod
    def arrays(shape: tuple[int, ...], n: int = 6) -> list[np.ndarray]:
        return [np.random.default_rng(i).integers(0, 256, shape, dtype=np.uint8) for i in range(n)]

    def table(self, name: str, columns: dict[str, object], splits: tuple[str, ...] = ("train", "test")) -> None:
        """The same rows for every split, in two files that are to be read in order."""
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        frame = pl.DataFrame(columns)
        half = len(frame) // 2
        for split in splits:
            for i, part in enumerate((frame[:half], frame[half:])):
                part.write_parquet(self.folder / name / f"{split}-0000{i}-of-00002.parquet")

    def images(self, name, arrays, labels, column="image", splits=("train", "test")) -> None:
        self.table(name, {column: [self.png(array) for array in arrays], "label": labels}, splits)

    def files(self, name: str, arrays: list[np.ndarray], suffix: str = "png") -> None:
        """Images as files in a folder: those of a class in a domain."""
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        for i, array in enumerate(arrays):
            Image.fromarray(array).save(self.folder / name / f"{i}.{suffix}")


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    return Shelf(tmp_path)


class HubRows:
    """The few calls of a ``datasets`` table that the readers make."""

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


@pytest.fixture
def hub(monkeypatch):
    """A hub in place of the real one: ``hub.serves[name, split]`` has the columns, ``hub.asked`` what was asked."""
    hub = types.SimpleNamespace(serves={}, asked=[])

    def load_dataset(name, configuration, split):
        hub.asked.append((name, configuration, split))
        if (name, split) not in hub.serves:
            raise OSError("no route")
        return HubRows(hub.serves[name, split])

    monkeypatch.delenv("ASSAY_DATA", raising=False)
    monkeypatch.setitem(
        sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset, Image=lambda decode: 0)
    )
    monkeypatch.setattr("assay.data.catalog.find_spec", lambda name: object())
    return hub
