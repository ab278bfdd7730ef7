"""Where studies lie: in the package, under an entry point, and in a folder given by ``--studies DIR``."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from .errors import UserError
from .installed import entry_points
from .library import Library

ENTRY_POINT = "assay.studies"
OUTSIDE = "assay_outside_studies"


@dataclass(frozen=True)
class Place:
    """Where a study lies: the package that holds its rooms, what a message calls it, and its file where that is known
    before anything is imported."""

    package: str
    title: str
    names: tuple[str, ...]
    file: Path | None = None

    def path(self) -> Path | None:
        """The file of its study.py, found without importing it."""
        return self.file or Library((self.package.partition(".")[0],)).path(f"{self.package}.study")

    def may_hold(self, study: str) -> bool:
        """Whether the study is likely to be here, without importing anything: by the folder's name or the file's
        text."""
        if study in (name.replace("_", "-") for name in self.names):
            return True
        if self.file is None:
            return False
        text = self.file.read_text(encoding="utf-8", errors="replace")
        return re.search(rf"Study\(\s*[\"']{re.escape(study)}[\"']", text) is not None


def places(outside: str | None) -> Iterator[Place]:
    # By name: the lab finds whatever studies there are, and knows none.
    for folder in importlib.import_module(ENTRY_POINT).__path__:
        for path in sorted(Path(folder).glob("*/study.py")):
            yield _in_folder(ENTRY_POINT, path)
    for point in entry_points(group=ENTRY_POINT):
        # Either the package of a study (pkg.walk) or the object in it (pkg.walk.study:study).
        package = point.module.removesuffix(".study")
        names = (point.name, package.rpartition(".")[2])
        yield Place(package, f"the study of the entry point '{point.name} = {point.value}'", names)
    for folder in (outside or "").split(os.pathsep):
        if folder:
            yield from _outside(Path(folder))


def _in_folder(package: str, path: Path) -> Place:
    name = path.parent.name
    return Place(f"{package}.{name}", f"the study '{name}'", (name,), path)


def _outside(folder: Path) -> Iterator[Place]:
    paths = sorted(folder.glob("*/study.py"))
    if not paths:
        raise UserError(f"the folder {folder} holds no study (a folder with a study.py in it)")
    # One package per folder: two folders may each hold a study of the same name.
    package = f"{OUTSIDE}_{hashlib.blake2b(str(folder.resolve()).encode(), digest_size=4).hexdigest()}"
    _register(package, folder)
    for path in paths:
        _register(f"{package}.{path.parent.name}", path.parent)
        yield _in_folder(package, path)


def _register(name: str, folder: Path) -> None:
    """A package whose modules live in ``folder``, so that a study's rooms import each other relatively."""
    if name not in sys.modules:
        module = ModuleType(name)
        module.__path__ = [str(folder.resolve())]
        sys.modules[name] = module
