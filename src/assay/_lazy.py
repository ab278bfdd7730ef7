"""A room's names are imported when they are first asked for, so that naming one method does not import all of them."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A package that knows which of its modules has a name, and under which name there."""

    _homes: dict[str, tuple[str, str]]

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__["_homes"]:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module, attribute = self._homes[name]
        found = getattr(importlib.import_module(f"{self.__name__}.{module}"), attribute)
        setattr(self, name, found)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        # Python binds an imported submodule in its package. Where a function has its module's name the room offers the
        # function, and who imported what before must not matter.
        if isinstance(value, ModuleType) and name in self._homes:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._homes})


def offer(package: str) -> None:
    """Let ``package`` offer what its ``__init__.py`` imports under ``if TYPE_CHECKING``: type checkers and editors
    read that block as it stands, and a name in it is imported when somebody asks for it."""
    room = sys.modules[package]
    homes: dict[str, tuple[str, str]] = {}
    for block in ast.parse(Path(str(room.__file__)).read_text(encoding="utf-8")).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    homes |= {alias.asname or alias.name: (line.module, alias.name) for alias in line.names}
    room.__dict__["_homes"] = homes
    room.__class__ = _Room
