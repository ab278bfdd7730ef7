"""Side-by-side speed and memory, one module each with a function ``run(device) -> dict`` with a list of rows."""

from __future__ import annotations

import importlib
import json
import pkgutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rich.table import Table

from assay.lab.backends import one_thread
from assay.lab.errors import UserError, unknown
from assay.lab.execute import environment

_ONLY_WHEN_NAMED = ("laptop",)  # half an hour


def names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def chosen(wanted: list[str] | None) -> list[str]:
    for name in wanted or []:
        if name not in names():
            raise unknown("benchmark", name, names())
    return wanted or [name for name in names() if name not in _ONLY_WHEN_NAMED]


def run(name: str, device: str) -> dict[str, Any]:
    """One benchmark's result with the machine it was measured on."""
    module = importlib.import_module(f"{__name__}.{name}")
    with one_thread() if device == "cpu" else nullcontext():
        measured = module.run(device)
    about = (module.__doc__ or "").strip()
    return {"benchmark": name, "about": about, "device": device, **environment(device), **measured}


def table(result: dict[str, Any]) -> Table:
    """The rows of a result for the terminal."""
    columns = list(result["rows"][0])
    shown = Table(*columns, title=f"{result['benchmark']} on {result['device']}: {result['about']}")
    for row in result["rows"]:
        shown.add_row(*("–" if row[column] is None else str(row[column]) for column in columns))
    return shown


def save(result: dict[str, Any], folder: Path) -> Path:
    path = folder / f"bench.{result['benchmark']}.{result['device']}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise UserError(f"cannot write the result {path}: {error.strerror or error}") from None
    return path
