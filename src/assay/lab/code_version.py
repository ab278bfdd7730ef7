"""The code version of an arm: a hash over every definition that its function can reach, and nothing else.

From the arm's function the names it uses are followed: through its module, through imports, into this package, the
study's folder and any other local source (editable installs, PYTHONPATH). A definition that no name leads to does not
count, so adding an arm, a claim or a helper reruns nothing. A statement that acts when its module is imported always
counts. Installed packages count by their versions.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UserError, plain, position
from .library import Library
from .reached import JUDGING_ROOMS, Reached, is_without, module_at
from .source import Parsed, Statement

if TYPE_CHECKING:
    from .study import Study

# The lab hands every arm its seeds' streams, whether or not the study imports them by name.
_ALWAYS = (("assay.training.seeds", "Seeds"),)
# Their distributions have the same name: looking through all that is installed takes a while.
_OWN_NAME = ("torch", "numpy", "scipy", "transformers")


@dataclass(frozen=True)
class ArmCode:
    """What an arm's results depend on: a digest per source file, and the versions of installed packages."""

    files: Mapping[str, str]
    packages: Mapping[str, str]

    @property
    def source(self) -> str:
        """The version of the local source alone."""
        return _hash(f"{name}:{digest}" for name, digest in sorted(self.files.items()))

    @property
    def version(self) -> str:
        return _hash([self.source, *(f"{name}=={number}" for name, number in sorted(self.packages.items()))])


def arm_codes(study: Study, arms: Iterable[str] | None = None) -> dict[str, ArmCode]:
    """The code of each of a study's arms (all of them by default), read from the files as they are now."""
    library = Library(("assay", study.module.partition(".")[0]))
    return {name: _arm_code(study, name, library) for name in (study.arms if arms is None else arms)}


def study_sources(package: str, folder: Path) -> dict[str, Path]:
    """Every local module that a study may execute, with its file: the rooms in its folder and all that they import.
    Nothing is imported to find out."""
    library = Library(("assay", package.partition(".")[0]))
    found: dict[str, Path] = {}
    waiting = [module_at(package, folder, path) for path in sorted(folder.rglob("*.py"))]
    while waiting:
        module = waiting.pop()
        path = None if module in found or is_without(module) else library.path(module)
        if path is None:
            continue
        found[module] = path
        for alias in library.parsed(module).imports:
            target = library.absolute(module, alias)
            waiting += [target, *([f"{target}.{alias.name}"] if alias.name else [])]
    return found


def check_arm_places(study: Study) -> None:
    """Refuse an arm whose code cannot be followed: it would be reused after it has changed."""
    library = Library(("assay", study.module.partition(".")[0]))
    for arm in study.arms.values():
        function = plain(arm.function)
        module = getattr(function, "__module__", "") or ""
        room = module.rpartition(".")[2]
        where = position(function)
        if room in JUDGING_ROOMS:
            why = f"its code is in {room}.py, and claims and figures do not count when a stored result is reused"
            raise UserError(f"study '{study.name}', arm '{arm.name}'{where}: {why}; move it to study.py or beside it")
        if library.path(module) is None or is_without(module):
            why = f"its code is in the module '{module}', whose source is not local"
            raise UserError(
                f"study '{study.name}', arm '{arm.name}'{where}: {why}, so a change to it would go unnoticed; "
                "define the arm in the study's folder and call that code from it"
            )


def _arm_code(study: Study, arm: str, library: Library) -> ArmCode:
    reached = Reached(library, study)
    given = study.arms[arm]
    function = plain(given.function)
    module, words = function.__module__, function.__qualname__.split(".")
    simple = given.function is function and "<" not in function.__qualname__ and len(words) == 1
    if "<lambda>" not in words:
        reached.name(module, words[0])
    if not simple or module != given.home:
        # Made by a call, whose arguments are in a statement that no name leads to.
        home = given.home if library.path(given.home) is not None else module
        if not reached.made(home, arm):
            reached.whole(home)
    for room, name in _ALWAYS:
        reached.name(room, name)
    for base in given.model.__mro__:  # the arm is handed these: properties and validators are code
        reached.name(base.__module__, base.__qualname__.partition(".")[0])
    reached.follow()
    counted = reached.statements.items()
    files = {_label(name, study, library): _ordered(library.parsed(name), found) for name, found in counted}
    files |= {f"{root} ({path.name})": _file_digest(path) for root, path in reached.opaque.items()}
    return ArmCode(files, {name: _version_of(name) for name in sorted(reached.packages)})


def _ordered(parsed: Parsed, counted: Mapping[int, Statement]) -> str:
    """One digest of what counts in a file. Order is part of it where it matters: for what acts, and for a name that is
    bound twice."""
    often = {name for name, those in parsed.binding.items() if len(those) > 1}
    acting = [s for s in counted.values() if s.effect or s.binds & often]
    rest = [s for s in counted.values() if not (s.effect or s.binds & often)]
    in_order = [s.digest for s in sorted(acting, key=lambda statement: (statement.place, statement.digest))]
    return _hash([*in_order, "", *sorted(statement.digest for statement in rest)])


def _file_digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest()


def _label(module: str, study: Study, library: Library) -> str:
    """A file in words that do not tell where it lies: ``learners.py`` in the study, ``../shared.py`` beside it."""
    package = study.module.rpartition(".")[0]
    if f"{module}.".startswith(f"{package}."):
        rest = module.removeprefix(package).removeprefix(".")
        return f"{rest.replace('.', '/') or '__init__'}.py"
    root = study.module.partition(".")[0]
    if root != "assay" and f"{module}.".startswith(f"{root}."):
        return f"../{module.removeprefix(root).removeprefix('.').replace('.', '/')}.py"
    path = library.path(module)
    return f"{module.replace('.', '/')}{'/__init__' if path is not None and path.name == '__init__.py' else ''}.py"


def installed_versions(roots: Iterable[str]) -> list[str]:
    """The versions of those packages among ``roots`` that are installed, and Python's own."""
    library = Library(("assay",))
    found = [f"{name} {_version_of(name)}" for name in sorted(roots) if name and library.is_installed(name)]
    return [f"Python {sys.version_info[0]}.{sys.version_info[1]}", *found]


@cache  # a package that is exchanged under a running process is not loaded anew, so this is what runs
def _version_of(package: str) -> str:
    found = []
    for name in dict.fromkeys(_distributions().get(package, ()) if package not in _OWN_NAME else (package,)):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(metadata.version(name).partition("+")[0])  # a build for another device is the same version
    return " ".join(sorted(found)) or "unknown"


@cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _hash(parts: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        digest.update(f"{part}\n".encode())
    return digest.hexdigest()
