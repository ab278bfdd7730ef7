"""How many images there are to train on. A budget of labels beyond them would be recorded under a wrong number, so it
is refused when a run is planned, before anything is hashed or computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from assay.data import catalog
from assay.lab import UserError

from .problem import MADE

DIGITS = 1352  # training images of scikit-learn's digits, whose reading takes a second


def training_images(name: str) -> int | None:
    """Of a set that lies on this machine; None where it is made up in any number, or is not here."""
    return None if name in MADE else DIGITS if name == "digits" else stored_samples(name)


def stored_samples(name: str) -> int | None:
    """Training samples of a set in the data folder; None where it is not there."""
    files = catalog.files(catalog.known(name), "train")
    return sum(map(_rows, files)) if files else None


def _rows(path: Path) -> int:
    """By the file's own count, which is read in a millisecond."""
    import polars as pl

    return int(pl.scan_parquet(path).select(pl.len()).collect().item())


def check_images(parameter: str, labels: Sequence[int], sources: Iterable[str], limit: int, *, share: int = 1) -> None:
    """Refuse more labelled images than a set has, of at most ``limit``; of a ``share``-th of them where the rest is
    kept."""
    for name in sources:
        known = training_images(name)
        there = limit if known is None else min(limit, known)
        if max(labels) > there // share:
            kept = " half of them, which is what tuning leaves:" if share == 2 else ""
            raise UserError(
                f"{parameter} asks for {max(labels):,} labelled images, and {name} has {there:,} to train on "
                f"(image_limit is {limit:,});{kept} ask for at most {there // share:,}"
            )
