"""What every report of a method or probe can do: show itself, give its rows, go to a file, become a picture.

A report is a frozen dataclass that says what its rows are and how they are drawn:

    @dataclass(frozen=True, repr=False)
    class Found(Report):
        values: Tensor

        def table(self) -> list[dict[str, Any]]: ...
        def _chart(self, alt: Any, data: Any) -> Any: ...
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from ._extras import extra


class Report(ABC):
    """A dataclass with rows. ``repr`` shows them, ``save`` writes the fields as JSON, ``figure`` is an Altair chart."""

    @abstractmethod
    def table(self) -> list[dict[str, Any]]:
        """The rows, each a dict of plain numbers and words."""

    @abstractmethod
    def _chart(self, alt: Any, data: Any) -> Any:
        """The picture, made with the module ``alt`` of the rows as Altair's ``data``."""

    def _heading(self) -> str:
        return type(self).__name__

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values that JSON has: tensors are lists, and what is not finite is None."""
        found: dict[str, Any] = plain(self)
        return found

    def save(self, path: str | Path) -> Path:
        """Write ``to_dict()`` as JSON; returns the path."""
        target = Path(path)
        target.write_text(json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
        return target

    def figure(self) -> Any:
        """An Altair chart of the report; ``.save("x.svg")`` writes it. Needs the extra ``lab``."""
        with extra("lab", "a figure"):
            import altair
        alt: Any = altair
        return self._chart(alt, alt.Data(values=plain(self.table())))

    def __repr__(self) -> str:
        return "\n".join([self._heading(), *lines_of(self.table())])


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # tensors, arrays and NumPy's numbers
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def lines_of(rows: list[dict[str, Any]], most: int = 30) -> list[str]:
    """Rows in columns that line up: numbers to the right, words to the left."""
    if not rows:
        return ["  (no rows)"]
    names = list(rows[0])
    cells = [names, *([_cell(row[name]) for name in names] for row in rows[:most])]
    widths = [max(len(line[k]) for line in cells) for k in range(len(names))]
    right = [isinstance(rows[0][name], (int, float)) for name in names]
    shown = [
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right, strict=True))
        for line in cells
    ]
    more = [f"  ... and {len(rows) - most} more rows"] if len(rows) > most else []
    return [f"  {line.rstrip()}" for line in shown] + more


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
