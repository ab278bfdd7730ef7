"""Finding studies: in the package, under an entry point, and in a folder given by ``--studies DIR``."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from .errors import UserError, unknown
from .study import Study

ENTRY_POINT = "assay.studies"
_PACKAGE = "assay_outside_studies"


@cache
def studies(outside: str | None = None) -> dict[str, Study]:
    """All studies by name, sorted. ``outside`` is a folder with one folder per study."""
    found: dict[str, Study] = {}
    for package in _packages(outside):
        study = _load(package)
        if study.name in found:
            raise UserError(f"two studies are called '{study.name}'; rename one of them")
        found[study.name] = study
    return dict(sorted(found.items()))


def find(name: str, outside: str | None = None) -> Study:
    known = studies(outside)
    if name not in known:
        raise unknown("study", name, known)
    return known[name]


def _packages(outside: str | None) -> Iterator[str]:
    # By name: the lab finds whatever studies there are, and knows none.
    for folder in importlib.import_module(ENTRY_POINT).__path__:
        for path in sorted(Path(folder).glob("*/study.py")):
            yield f"{ENTRY_POINT}.{path.parent.name}"
    for point in entry_points(group=ENTRY_POINT):
        importlib.import_module(point.module)
        yield point.module
    if outside is not None:
        yield from _outside(Path(outside))


def _outside(folder: Path) -> Iterator[str]:
    paths = sorted(folder.glob("*/study.py"))
    if not paths:
        raise UserError(f"the folder {folder} holds no study (a folder with a study.py in it)")
    # One package per folder: two folders may each hold a study of the same name.
    package = f"{_PACKAGE}_{hashlib.blake2b(str(folder.resolve()).encode(), digest_size=4).hexdigest()}"
    _register(package, folder)
    for path in paths:
        name = f"{package}.{path.parent.name}"
        _register(name, path.parent)
        yield name


def _register(name: str, folder: Path) -> None:
    """A package whose modules live in ``folder``, so that a study's rooms import each other relatively."""
    if name not in sys.modules:
        module = ModuleType(name)
        module.__path__ = [str(folder.resolve())]
        sys.modules[name] = module


def _load(package: str) -> Study:
    module = _import(f"{package}.study")
    study = getattr(module, "study", None)
    if not isinstance(study, Study):
        raise UserError(f"{module.__file__} does not define a lab.Study called 'study'")
    assert module.__file__ is not None
    study.module, study.folder = module.__name__, Path(module.__file__).parent
    for room in ("claims", "figures"):
        if (study.folder / f"{room}.py").exists():
            _import(f"{package}.{room}")
    return study


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except UserError:
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{where.filename}, line {where.lineno}"
        raise UserError(f"the study '{name.split('.')[-2]}' cannot be loaded: {error} ({place})") from error
