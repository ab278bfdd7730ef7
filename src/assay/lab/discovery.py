"""Finding studies: in the package, under an entry point, and in a folder given by ``--studies DIR``."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from .errors import UserError, unknown
from .study import Study

ENTRY_POINT = "assay.studies"
_PACKAGE = "assay_outside_studies"


@dataclass(frozen=True)
class _Place:
    """Where a study lies: the package that holds its rooms, what a message calls it, and its file where that is known
    before anything is imported."""

    package: str
    title: str
    names: tuple[str, ...]
    file: Path | None = None

    def may_hold(self, study: str) -> bool:
        """Whether the study is likely to be here, without importing anything: by the folder's name or the file's
        text."""
        if study in (name.replace("_", "-") for name in self.names):
            return True
        if self.file is None:
            return False
        text = self.file.read_text(encoding="utf-8", errors="replace")
        return re.search(rf"Study\(\s*[\"']{re.escape(study)}[\"']", text) is not None


@cache
def studies(outside: str | None = None) -> dict[str, Study]:
    """All studies by name, sorted. ``outside`` is a folder with one folder per study."""
    found: dict[str, Study] = {}
    for place in _places(outside):
        study = _load(place)
        if study.name in found:
            raise _twice(study.name)
        found[study.name] = study
    return dict(sorted(found.items()))


@cache
def find(name: str, outside: str | None = None) -> Study:
    """One study by its name. Others are loaded only when it is not where its name says, so that one which cannot be
    loaded stands in nobody else's way."""
    places = list(_places(outside))
    likely = [place for place in places if place.may_hold(name)]
    found = [study for study in map(_load, likely) if study.name == name]
    known, broken = [study.name for study in found], []
    for place in [] if found else places:
        try:
            study = _load(place)
        except UserError as error:
            broken.append(str(error))
        else:
            known.append(study.name)
            found += [study] if study.name == name else []
    if len(found) > 1:
        raise _twice(name)
    if not found:
        raise UserError("; and ".join([str(unknown("study", name, sorted(known))), *broken]))
    return found[0]


def _twice(name: str) -> UserError:
    return UserError(f"two studies are called '{name}'; rename one of them")


def _places(outside: str | None) -> Iterator[_Place]:
    # By name: the lab finds whatever studies there are, and knows none.
    for folder in importlib.import_module(ENTRY_POINT).__path__:
        for path in sorted(Path(folder).glob("*/study.py")):
            yield _in_folder(ENTRY_POINT, path)
    for point in entry_points(group=ENTRY_POINT):
        # Either the package of a study (pkg.walk) or the object in it (pkg.walk.study:study).
        package = point.module.removesuffix(".study")
        names = (point.name, package.rpartition(".")[2])
        yield _Place(package, f"the study of the entry point '{point.name} = {point.value}'", names)
    if outside is not None:
        yield from _outside(Path(outside))


def _in_folder(package: str, path: Path) -> _Place:
    name = path.parent.name
    return _Place(f"{package}.{name}", f"the study '{name}'", (name,), path)


def _outside(folder: Path) -> Iterator[_Place]:
    paths = sorted(folder.glob("*/study.py"))
    if not paths:
        raise UserError(f"the folder {folder} holds no study (a folder with a study.py in it)")
    # One package per folder: two folders may each hold a study of the same name.
    package = f"{_PACKAGE}_{hashlib.blake2b(str(folder.resolve()).encode(), digest_size=4).hexdigest()}"
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


def _load(place: _Place) -> Study:
    try:
        return _loaded(place)
    except UserError:
        # What was half loaded would be in the way of a second attempt, whose claims would be registered twice.
        for name in [name for name in sys.modules if name.startswith(f"{place.package}.")]:
            del sys.modules[name]
        raise


@cache
def _loaded(place: _Place) -> Study:
    module = _import(place, "study")
    study = getattr(module, "study", None)
    if not isinstance(study, Study):
        raise UserError(f"{module.__file__} does not define a lab.Study called 'study'")
    assert module.__file__ is not None
    study.module, study.folder = module.__name__, Path(module.__file__).parent
    for room in ("claims", "figures"):
        if (study.folder / f"{room}.py").exists():
            _import(place, room)
    study.check()
    return study


def _import(place: _Place, room: str) -> ModuleType:
    try:
        return importlib.import_module(f"{place.package}.{room}")
    except Exception as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{place.title} cannot be loaded: {what}{_position(error)}") from error


def _position(error: Exception) -> str:
    """Where in the study's own files it went wrong; a syntax error says so itself, a missing module is nowhere."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    if isinstance(error, SyntaxError) or len(frames) < 2:  # the first frame is the call in this file
        return ""
    return f" ({frames[-1].filename}, line {frames[-1].lineno})"
