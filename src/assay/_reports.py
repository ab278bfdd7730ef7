"""What the reports of methods and probes share: a repr that reads, a table, JSON, and Altair where it is installed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from assay._extras import extra

NOT_SAVED: Mapping[str, bool] = {"saved": False}
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b6472", "#7a4fb5")


class Report:
    """Base of frozen dataclasses (``repr=False``) that say in ``headline`` what was found and list it in ``table``.
    A field with ``metadata=NOT_SAVED`` stays out of the JSON: what is large and can be computed again."""

    def headline(self) -> str:
        """What was found, in a line or two."""
        raise NotImplementedError

    def table(self) -> list[dict[str, Any]]:
        """The rows of the report; ``polars.DataFrame`` and ``pandas.DataFrame`` take them as they are."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The report in plain values, as JSON knows them; what is not finite is None."""
        kept = [field.name for field in fields(self) if field.metadata.get("saved", True)]  # type: ignore[arg-type]
        return {name: plain(getattr(self, name)) for name in kept}

    def save(self, path: str | Path) -> None:
        """Write ``to_dict`` as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n", encoding="utf-8")

    def __repr__(self) -> str:
        return "\n".join([self.headline(), *lines_of(self.table())])


def plain(value: Any) -> Any:
    """Tensors, arrays and dataclasses as lists, numbers and dictionaries."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lines_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows as lines of text with a head, one column under each name."""
    if not rows:
        return []
    cells = [list(rows[0]), *([_short(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]


def _short(value: Any) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def charts(what: str) -> Any:
    """Altair, imported when a figure is drawn; where it is absent one sentence says that ``what`` needs it."""
    with extra("lab", what):
        import altair
    return altair
