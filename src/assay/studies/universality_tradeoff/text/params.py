"""How many texts there are to train on: budgets of labels beyond them are refused when a run is planned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay.lab import UserError

from ..images.params import stored_samples
from .problem import MADE, load_texts


def training_texts(name: str) -> int | None:
    """Of a set that lies on this machine or is made up; None where it is not here."""
    return len(load_texts(name, "train")) if name == MADE else stored_samples(name)


def check_texts(labels: Sequence[int], sources: Iterable[str], *, times: int = 1, held: int = 0) -> None:
    """Refuse more labelled texts than a set has: ``times`` as many, and ``held`` ones beside them."""
    for name in sources:
        there = training_texts(name)
        if there is not None and times * max(labels) + held > there:
            more = f", as many to try settings on and {held:,} that settings are judged by" if held else ""
            raise UserError(
                f"text_labels asks for {max(labels):,} labelled texts{more}, and {name} has {there:,} to train on: "
                f"ask for at most {max((there - held) // times, 0):,}"
            )
