"""What a method hands back: an object that a person reads, a script takes apart, a file keeps and a chart shows.

A report is a frozen dataclass that inherits from ``Report`` and says what its rows are and, where there is something to
see, what its chart is. Altair is imported when a chart is asked for.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from ._extras import extra


class Report(ABC):
    """``table`` for rows, ``to_dict`` and ``save`` for JSON, ``figure`` for a chart."""

    @abstractmethod
    def table(self) -> list[dict[str, Any]]:
        """The rows, ready for a data frame."""

    @abstractmethod
    def figure(self) -> Any:
        """An Altair chart; it needs the extra ``lab``."""

    def to_dict(self) -> dict[str, Any]:
        """Everything that JSON can hold; what is not finite becomes None."""
        found = plain(self)
        assert isinstance(found, dict)
        return {"report": type(self).__name__, **found}

    def save(self, path: str | Path) -> Path:
        """Write ``to_dict`` as JSON."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return path


def plain(value: Any) -> Any:
    """Dataclasses, mappings and sequences as JSON's own kinds."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def altair(what: str) -> Any:
    """The charting library, or one sentence that says what needs it."""
    with extra("lab", what):
        import altair as alt
    return alt


def lines(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as text in columns, for a ``repr``."""
    cells = [list(columns), *([_cell(row.get(column)) for column in columns] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
