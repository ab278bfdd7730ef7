"""What every report can do: be read, become a table, a dictionary, a JSON file or a picture."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor


class Report:
    """The base of frozen dataclasses that a method returns (declare them with ``repr=False``). A report says its
    ``title`` and its ``table``, and draws its ``figure``."""

    def title(self) -> str:
        """What was measured, in a line."""
        raise NotImplementedError

    def table(self) -> list[dict[str, Any]]:
        """One row per measured number, as plain values: ``polars.DataFrame(report.table())`` is a frame."""
        raise NotImplementedError

    def figure(self) -> Any:
        """An Altair chart of the table; needs the extra ``lab``."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values; what is not finite becomes None."""
        return {each.name: plain(getattr(self, each.name)) for each in fields(self)}  # type: ignore[arg-type]

    def save(self, path: str | Path) -> None:
        """Write ``to_dict`` as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=1, ensure_ascii=False), encoding="utf-8")

    def __repr__(self) -> str:
        return f"{self.title()}\n{as_text(self.table())}"


def plain(value: Any) -> Any:
    """Tensors, arrays, dataclasses and containers as what JSON knows."""
    if isinstance(value, (Tensor, np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def as_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as aligned columns; numbers with four digits, to the right."""
    if not rows:
        return "(no rows)"
    names = list(rows[0])
    cells = [[_shown(row[name]) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[at]) for line in cells)) for at, name in enumerate(names)]
    right = [all(isinstance(row[name], (int, float)) or row[name] is None for row in rows) for name in names]
    lines = [names, *cells]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
