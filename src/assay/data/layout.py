"""How data sets lie on this machine: each in a folder of ``$ASSAY_DATA``, which has the set's name.

Images and texts are Parquet files ``<split>-*.parquet``, as on the Hugging Face hub. A set of domains has one
sub-folder per domain, with Parquet files or with one sub-folder of image files per class.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

Kind = Literal["images", "text", "domains"]
COLUMNS: dict[Kind, tuple[str, ...]] = {
    "images": ("image", "img"),
    "text": ("sentence", "text"),
    "domains": ("image", "img"),
}
LABELS = ("label", "fine_label")
IMAGE_SUFFIXES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff"))


def root() -> Path | None:
    """The data folder, whether or not it is there; None where ``$ASSAY_DATA`` names none."""
    named = os.environ.get("ASSAY_DATA", "")
    return Path(named) if named else None


def folders() -> dict[str, Path]:
    """Every folder of the data folder by its name."""
    base = root()
    return sub_folders(base) if base else {}


def sub_folders(folder: Path) -> dict[str, Path]:
    """The folders within a folder by name and in order, hidden ones aside: sets, domains of a set, classes of a
    domain."""
    try:
        found = [path for path in folder.iterdir() if not path.name.startswith((".", "__")) and path.is_dir()]
    except OSError:  # not there, or not to be read: no set lies in it
        return {}
    return {path.name: path for path in sorted(found)}


def shards(folder: Path, splits: Iterable[str]) -> list[Path]:
    """The files of the first of these splits that has any, in order."""
    found = (sorted(folder.glob(f"{split}-*.parquet")) for split in splits)
    return next((files for files in found if files), [])


def image_files(folder: Path) -> list[Path]:
    """All images of a class, in order."""
    return sorted(_images(folder))


def kind_of(folder: Path) -> Kind | None:
    """What lies in a folder, told by the columns of its Parquet files; None where that cannot be told."""
    files = sorted(folder.glob("*.parquet"))
    if files:
        columns = _columns(files[0])
        kinds: tuple[Kind, ...] = ("images", "text")
        return next((kind for kind in kinds if set(COLUMNS[kind]) & columns), None)
    return "domains" if sub_folders(folder) else None


def lacks_domains(folder: Path) -> str | None:
    """What keeps a folder from being a set of domains, as the end of a sentence; None when nothing does."""
    found = sub_folders(folder)
    tables = [name for name, path in found.items() if any(path.glob("*.parquet"))]
    if not found:
        return f"{folder} has no sub-folder for each domain"
    if tables and len(tables) < len(found):
        return f"some domains in {folder} are Parquet files and some are image files"
    for name, path in found.items():
        if name not in tables and not any(next(_images(each), None) for each in sub_folders(path).values()):
            return f"{path} holds neither Parquet files nor one sub-folder of images per class"
    return None


def contents(folder: Path) -> dict[str, Path]:
    """Every file of a set by its path within the folder."""
    files = sorted(folder.glob("*.parquet"))
    if not files:
        for domain in sub_folders(folder).values():
            files += sorted(domain.glob("*.parquet")) or image_files(domain)
    return {path.relative_to(folder).as_posix(): path for path in files}


def _images(folder: Path) -> Iterator[Path]:
    return (p for p in folder.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES and not p.name.startswith("."))


def _columns(file: Path) -> set[str]:
    if find_spec("polars") is None:
        return set()
    import polars as pl

    try:
        return set(pl.scan_parquet(file).collect_schema().names())
    except (pl.exceptions.PolarsError, OSError):
        return set()
