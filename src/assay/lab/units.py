"""A request, and the units of work that it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .store import unit_key


@dataclass(frozen=True)
class Request:
    """What a person asked for: the study is resolved against it."""

    preset: str = "laptop"
    overrides: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    arms: str | None = None
    device: str = "cpu"
    point: Mapping[str, str] = field(default_factory=dict)
    first_seed: int = 0
    stored: bool = False  # what is stored, on whatever device and with whatever packages it was computed


@dataclass(frozen=True)
class Unit:
    """One arm × one point of its grid × one chunk of seeds. It travels by name: no code, only words and numbers.

    ``code`` is the version of the arm's code, which whoever computes the unit compares with its own; ``takes`` are the
    seeds that a run reads from it, all of them unless it was stored by a run with more.
    """

    study: str
    arm: str
    point: Mapping[str, Any]
    seeds: tuple[int, ...]
    params: Mapping[str, Any]
    device: str
    dtype: str
    address: str
    inputs: str
    code: str
    takes: tuple[int, ...]

    @property
    def key(self) -> str:
        return unit_key(self.address, self.inputs, self.seeds)

    @property
    def label(self) -> str:
        return f"{self.point_label} {seed_words(self.takes)}"

    @property
    def point_label(self) -> str:
        return " ".join([self.arm, *(f"{name}={value}" for name, value in self.point.items())])

    def anew(self) -> Unit:
        """The unit to compute where the stored one cannot be used: the seeds that are wanted, and no others."""
        return replace(self, seeds=self.takes)

    def halves(self) -> list[Unit]:
        """The same seeds in two units, for a device that cannot hold them all at once."""
        middle = (len(self.takes) + 1) // 2
        parts = [part for part in (self.takes[:middle], self.takes[middle:]) if part]
        return [replace(self, seeds=part, takes=part) for part in parts]


def seed_words(seeds: tuple[int, ...]) -> str:
    return f"seeds {seeds[0]}–{seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
