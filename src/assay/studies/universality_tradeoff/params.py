"""What several parts read: the size of the linear tasks and their pretraining, checks of grids, and how many labelled
samples there are. A budget beyond these would be recorded under a wrong number, so it is refused when a run is planned,
before anything is hashed or computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from pydantic import Field, model_validator

from assay import lab
from assay.data import catalog

from .images.problem import MADE as MADE_IMAGES
from .learners import LinearPretraining
from .problem import LinearTasks
from .text.problem import MADE as MADE_TEXTS
from .text.problem import load_texts

DIGITS = 1352  # training images of scikit-learn's digits, whose reading takes a second


def check_rising(**grids: Sequence[float]) -> None:
    """Refuse a grid whose values do not rise; it is named as its parameter is."""
    for name, values in grids.items():
        if list(values) != sorted(set(values)):
            raise ValueError(f"{name} must rise and name no value twice, not {tuple(values)}")


def training_samples(name: str) -> int | None:
    """Of a set that lies on this machine; None where it is made up in any number, or is not here."""
    if name in MADE_IMAGES:
        return None
    if name == MADE_TEXTS:
        return len(load_texts(name, "train"))
    if name == "digits":
        return DIGITS
    files = catalog.files(catalog.known(name), "train")
    return sum(_rows(path, path.stat().st_mtime_ns) for path in files) if files else None


@lru_cache(maxsize=64)
def _rows(path: Path, written: int) -> int:
    """By the file's own count; ``written`` tells exchanged files apart."""
    import polars as pl

    return int(pl.scan_parquet(path).select(pl.len()).collect().item())


def check_images(parameter: str, labels: Sequence[int], sources: Iterable[str], limit: int, *, share: int = 1) -> None:
    """Refuse more labelled images than a set has, of at most ``limit``; of a ``share``-th of them where the rest is
    kept."""
    for name in sources:
        known = training_samples(name)
        there = limit if known is None else min(limit, known)
        if max(labels) > there // share:
            kept = " half of them, which is what tuning leaves:" if share == 2 else ""
            raise lab.UserError(
                f"{parameter} asks for {max(labels):,} labelled images, and {name} has {there:,} to train on "
                f"(image_limit is {limit:,});{kept} ask for at most {there // share:,}"
            )


def check_texts(labels: Sequence[int], sources: Iterable[str], *, times: int = 1, held: int = 0) -> None:
    """Refuse more labelled texts than a set has: ``times`` as many, and ``held`` ones beside them."""
    for name in sources:
        there = training_samples(name)
        if there is not None and times * max(labels) + held > there:
            more = f", as many to try settings on and {held:,} that settings are judged by" if held else ""
            raise lab.UserError(
                f"text_labels asks for {max(labels):,} labelled texts{more}, and {name} has {there:,} to train on: "
                f"ask for at most {max((there - held) // times, 0):,}"
            )


class Linear(lab.Params):
    shared: int = Field(2, ge=1, description="features s that all linear tasks share")
    relevant: int = Field(5, ge=2, description="features r of each linear task, shared ones among them")
    spurious: int = Field(4, ge=0, description="spurious coordinates of linear data")
    linear_steps: int = Field(1200, ge=10, description="steps of projected descent on a linear representation")
    linear_batch: int = Field(1000, ge=10, description="fresh pairs per step")

    @model_validator(mode="after")
    def _features_go_together(self) -> Linear:
        if self.shared >= self.relevant:
            raise ValueError("relevant must exceed shared, or tasks have no features of their own")
        return self

    def problem(self, tasks: int) -> LinearTasks:
        return LinearTasks(self.shared, self.relevant, tasks, self.spurious)

    def pretraining(self) -> LinearPretraining:
        return LinearPretraining(self.linear_steps, self.linear_batch)
