"""What a run tells whoever started it, while it goes on: typed events, handed to one function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .units import Unit


class Event:
    """Something that a run tells: Started, Measured, Advanced, UnitDone, Said or Finished."""


@dataclass(frozen=True)
class Started(Event):
    """The run has its plan: ``total`` units, of which ``stored`` need not be computed. ``run`` is its id, empty for
    work that no run is written down for."""

    study: str
    total: int
    stored: int
    run: str = ""


@dataclass(frozen=True)
class Measured(Event):
    """The newest value of a metric, the mean over a unit's seeds."""

    unit: str
    metric: str
    value: float


@dataclass(frozen=True)
class Advanced(Event):
    """A unit at work has come so far: ``done`` of ``total`` steps, as its arm counts them."""

    unit: str
    done: float
    total: float


@dataclass(frozen=True)
class UnitDone(Event):
    """A unit is there: computed in so many seconds, reused, or failed with an error."""

    unit: Unit
    reused: bool
    seconds: float
    error: str = ""


@dataclass(frozen=True)
class Said(Event):
    """A sentence for the reader: an arm that is left out, a damaged unit, a failure with its file and line."""

    sentence: str


@dataclass(frozen=True)
class Finished(Event):
    """The run is over: complete, failed or interrupted."""

    status: str
    seconds: float


Listener = Callable[[Event], None]


def nobody(event: Event) -> None:
    """The listener of a run that nobody watches."""
