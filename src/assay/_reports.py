"""What a method hands back: an object that a person reads, a script takes apart, a file keeps and a chart shows.

A report is a frozen dataclass (``repr=False``) that inherits from ``Report`` and says what its rows are and what its
chart is. Altair is imported when a chart is asked for.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from ._extras import extra

NOT_SAVED: Mapping[str, bool] = {"saved": False}
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b6472", "#7a4fb5")
MOST_ROWS = 30


class Report(ABC):
    """``table`` for rows, ``to_dict`` and ``save`` for JSON, ``figure`` for a chart. A field with
    ``metadata=NOT_SAVED`` stays out of the JSON: what is large and can be computed again."""

    @abstractmethod
    def table(self) -> list[dict[str, Any]]:
        """The rows as plain values; ``polars.DataFrame`` and ``pandas.DataFrame`` take them as they are."""

    @abstractmethod
    def figure(self) -> Any:
        """An Altair chart; ``.save("x.svg")`` writes it. It needs the extra ``lab``."""

    def headline(self) -> str:
        """What was found, in a line or two."""
        return type(self).__name__

    def to_dict(self) -> dict[str, Any]:
        """Everything that JSON can hold; what is not finite becomes None."""
        kept = [field.name for field in fields(self) if field.metadata.get("saved", True)]  # type: ignore[arg-type]
        return {"report": type(self).__name__, **{name: plain(getattr(self, name)) for name in kept}}

    def save(self, path: str | Path) -> Path:
        """Write ``to_dict`` as JSON; returns the path."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        path.write_text(text + "\n", encoding="utf-8")
        return path

    def __repr__(self) -> str:
        return f"{self.headline()}\n{lines(self.table())}"


@dataclass(frozen=True, repr=False)
class RowReport(Report, Sequence[Any]):
    """A report that is a list of rows, each a dataclass: it is gone through, counted and indexed like one."""

    rows: tuple[Any, ...]

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def __len__(self) -> int:
        return len(self.rows)

    def table(self) -> list[dict[str, Any]]:
        return [plain(row) for row in self.rows]


def plain(value: Any) -> Any:
    """Tensors, arrays, dataclasses, mappings and sequences as JSON's own kinds."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # tensors, arrays and NumPy's numbers
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def altair(what: str = "a figure") -> Any:
    """The charting library, or one sentence that says what needs it."""
    with extra("lab", what):
        import altair as alt
    return alt


def chart(rows: Sequence[Mapping[str, Any]], what: str = "a figure") -> Any:
    """A chart over rows, with as many as there are."""
    alt = altair(what)
    return alt.Chart(alt.Data(values=plain(rows)))


def curves(rows: Sequence[Mapping[str, Any]], x: str, y: str, colour: str | None = None, **titles: str) -> Any:
    """Lines through points over a quantitative axis, one for each value of ``colour``."""
    base = chart(rows).mark_line(point=True)
    shown = base.encode(x=_axis(x, titles), y=_axis(y, titles))
    shown = (
        shown
        if colour is None
        else shown.encode(color={"field": colour, "type": "nominal", "title": titles.get(colour)})
    )
    return shown.properties(width=380, height=240)


def bars(rows: Sequence[Mapping[str, Any]], name: str, value: str, colour: str | None = None, **titles: str) -> Any:
    """Horizontal bars, one for each row, in the order of the rows."""
    order = list(dict.fromkeys(row[name] for row in rows))
    base = chart(rows).mark_bar()
    shown = base.encode(y={"field": name, "type": "nominal", "sort": order, "title": None}, x=_axis(value, titles))
    if colour is not None:
        shown = shown.encode(color={"field": colour, "type": "nominal"}, yOffset={"field": colour, "type": "nominal"})
    return shown.properties(width=380)


def _axis(name: str, titles: Mapping[str, str]) -> dict[str, Any]:
    return {"field": name, "type": "quantitative", "title": titles.get(name, name.replace("_", " "))}


def lines(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows as text in columns that line up, for a ``repr``: numbers to the right, words to the left."""
    if not rows:
        return "(no rows)"
    names = list(columns or rows[0])
    cells = [names, *([_cell(row.get(name)) for name in names] for row in rows[:MOST_ROWS])]
    widths = [max(len(line[place]) for line in cells) for place in range(len(names))]
    words = [any(isinstance(row.get(name), str) for row in rows) for name in names]
    shown = [
        "  ".join(cell.ljust(w) if word else cell.rjust(w) for cell, w, word in zip(line, widths, words, strict=True))
        for line in cells
    ]
    more = [f"... and {len(rows) - MOST_ROWS} more rows"] if len(rows) > MOST_ROWS else []
    return "\n".join([*(line.rstrip() for line in shown), *more])


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
