"""Checks that several parts ask of their parameters."""

from __future__ import annotations

from collections.abc import Sequence


def check_rising(**grids: Sequence[float]) -> None:
    """Refuse a grid unless its values rise."""
    for name, values in grids.items():
        if list(values) != sorted(set(values)):
            raise ValueError(f"{name} needs values that rise, not {values}")
