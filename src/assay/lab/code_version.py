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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UserError, plain, position
from .library import Library
from .source import Alias, Parsed, Reference, Statement, sees_all

if TYPE_CHECKING:
    from .study import Study

# Rewording a claim, redrawing a figure or changing the engine must not rerun a training.
_WITHOUT = ("assay.lab", "assay.report", "assay.apps", "assay.benchmarks", "assay.cli", "assay._lazy", "assay._extras")
# The lab hands every arm its seeds' streams, whether or not the study imports them by name.
_ALWAYS = (("assay.training.seeds", "Seeds"),)
# Parameters are made with it, and their values are in every unit's address.
_LABS_OWN = ("pydantic",)
# Their distributions have the same name: looking through all that is installed takes a while.
_OWN_NAME = ("torch", "numpy", "scipy", "transformers")
_JUDGING_ROOMS = ("claims", "figures")


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
    waiting = [_module_at(package, folder, path) for path in sorted(folder.rglob("*.py"))]
    while waiting:
        module = waiting.pop()
        path = None if module in found or _is_without(module) else library.path(module)
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
        if room in _JUDGING_ROOMS:
            why = f"its code is in {room}.py, and claims and figures do not count when a stored result is reused"
            raise UserError(f"study '{study.name}', arm '{arm.name}'{where}: {why}; move it to study.py or beside it")
        if library.path(module) is None or _is_without(module):
            why = f"its code is in the module '{module}', whose source is not local"
            raise UserError(
                f"study '{study.name}', arm '{arm.name}'{where}: {why}, so a change to it would go unnoticed; "
                "define the arm in the study's folder and call that code from it"
            )


class _Reached:
    """The definitions that are reached so far, by module. Goes by a list, since code calls code in long chains."""

    def __init__(self, library: Library, study: Study) -> None:
        self.library = library
        self.statements: dict[str, dict[int, Statement]] = {}
        self.packages: set[str] = set()
        self.opaque: dict[str, Path] = {}
        self._package = study.module.rpartition(".")[0]
        self._folder = study.folder
        # The classes that hold the study's parameters, whose values are in every unit's address.
        self._models = {(base.__module__, base.__qualname__) for base in study.model.__mro__}
        self._waiting: list[tuple[str, Statement]] = []
        self._touched: set[str] = set()
        self._names: set[tuple[str, str]] = set()
        self._modules: set[str] = set()

    def follow(self) -> None:
        """Follow everything that was named, to the end."""
        while self._waiting:
            module, statement = self._waiting.pop()
            parsed = self.library.parsed(module)
            for alias in (*(a for those in statement.aliases.values() for a in those), *statement.modules):
                self._touch_alias(module, alias)
            for alias in statement.modules:
                self.whole(self.library.absolute(module, alias))
            if sees_all(statement):
                self.whole(module)
            # This package's own rooms hand out their names so, and know no study.
            if statement.dynamic and (module.startswith(self._package) or not module.startswith("assay.")):
                self._everything()
            for reference in statement.refers:
                self._reference(module, parsed, statement, reference)

    def touch(self, module: str) -> None:
        """Count what a module does when it is imported, and what it imports does."""
        waiting = [module]
        while waiting:
            name = waiting.pop()
            if name in self._touched or _is_without(name) or not name:
                continue
            self._touched.add(name)
            waiting.append(name.rpartition(".")[0])
            if self.library.path(name) is None or name.rpartition(".")[2] in _JUDGING_ROOMS:
                continue
            parsed = self.library.parsed(name)
            for alias in parsed.imports:
                target = self.library.absolute(name, alias)
                waiting += [target, *([f"{target}.{alias.name}"] if alias.name else [])]
            for statement in parsed.statements:
                if statement.effect or self._hooked(name, statement):
                    self._include(name, statement)

    def name(self, module: str, name: str) -> None:
        """Follow a name of a module to what defines it."""
        if (module, name) in self._names or _is_without(module):
            return
        self._names.add((module, name))
        self.touch(module)
        if self.library.path(module) is None:
            self._outside(module)
            return
        parsed = self.library.parsed(module)
        self._bound(module, parsed, name, ())
        if name not in parsed.binding:
            for alias in parsed.lazy.get(name, ()):
                self._alias(module, alias, ())
            if self.library.path(f"{module}.{name}") is not None:
                self.whole(f"{module}.{name}")
            for statement in parsed.binding.get("__getattr__", ()):
                self._include(module, statement)
            for star in parsed.stars:
                self.name(self.library.absolute(module, star), name)

    def whole(self, module: str) -> None:
        """Count every definition of a module: it is used as an object, so any may be meant."""
        if module in self._modules or _is_without(module):
            return
        self._modules.add(module)
        self.touch(module)
        if self.library.path(module) is None:
            self._outside(module)
            return
        for statement in self.library.parsed(module).statements:
            self._include(module, statement)

    def made(self, module: str, arm: str) -> bool:
        """Count the call by which a module registers an arm; False where there is none that names it."""
        self.touch(module)
        calls = [s for s in self.library.parsed(module).statements if s.made in (arm, "")]
        for statement in calls:
            self._include(module, statement)
        return any(statement.made == arm for statement in calls)

    def _everything(self) -> None:
        """Count the whole study: it imports something whose name is made while it runs."""
        for path in self._folder.rglob("*.py") if self._folder else ():
            module = _module_at(self._package, self._folder or path.parent, path)
            if module.rpartition(".")[2] not in _JUDGING_ROOMS:
                self.whole(module)

    def _include(self, module: str, statement: Statement) -> None:
        if statement.model is not None and any((module, name) in self._models for name in statement.binds):
            statement = statement.model
        counted = self.statements.setdefault(module, {})
        if id(statement) not in counted:
            counted[id(statement)] = statement
            self._waiting.append((module, statement))

    def _reference(self, module: str, parsed: Parsed, statement: Statement, reference: Reference) -> None:
        root, rest = reference[0], reference[1:]
        for alias in statement.aliases.get(root, ()):
            self._alias(module, alias, rest)
        self._bound(module, parsed, root, rest)
        if root not in parsed.binding and root not in statement.aliases:
            for alias in parsed.lazy.get(root, ()):
                self._alias(module, alias, rest)
            for star in parsed.stars:
                self.name(self.library.absolute(module, star), root)

    def _bound(self, module: str, parsed: Parsed, name: str, rest: Reference) -> None:
        for statement in parsed.binding.get(name, ()):
            self._include(module, statement)
            for alias in statement.aliases.get(name, ()):
                self._alias(module, alias, rest)

    def _alias(self, module: str, alias: Alias, rest: Reference) -> None:
        target = self.library.absolute(module, alias)
        if alias.name is not None:
            if self._defines(target, alias.name) or self.library.path(f"{target}.{alias.name}") is None:
                self.name(target, alias.name)
                return
            target = f"{target}.{alias.name}"
        self.touch(target)
        while rest and self.library.path(f"{target}.{rest[0]}") is not None and not self._defines(target, rest[0]):
            target, rest = f"{target}.{rest[0]}", rest[1:]
            self.touch(target)
        if self.library.path(target) is None and not rest:
            self._outside(target)
        elif rest:
            self.name(target, rest[0])
        elif target != module:
            self.whole(target)

    def _touch_alias(self, module: str, alias: Alias) -> None:
        target = self.library.absolute(module, alias)
        self.touch(target)
        if alias.name:
            self.touch(f"{target}.{alias.name}")

    def _outside(self, module: str) -> None:
        """Count what is not source here: an installed package by its version, another file by its contents."""
        root = module.partition(".")[0]
        if root in _LABS_OWN or not root:
            return
        if self.library.is_installed(root):
            self.packages.add(root)
        elif (path := self.library.opaque(root)) is not None:
            self.opaque[root] = path

    def _defines(self, module: str, name: str) -> bool:
        """Whether a name of a package is something else than its module of that name."""
        if self.library.path(module) is None:
            return False
        for statement in self.library.parsed(module).binding.get(name, ()):
            aliases = statement.aliases.get(name, ())
            targets = [f"{self.library.absolute(module, alias)}.{alias.name}" for alias in aliases if alias.name]
            if not aliases or any(target != f"{module}.{name}" for target in targets):
                return True
        return False

    def _hooked(self, module: str, statement: Statement, depth: int = 8) -> bool:
        """Whether a class derives from one that acts when others do (``__init_subclass__``, a metaclass)."""
        for base in statement.bases if depth else ():
            for home, found in self._classes(module, base):
                if found.hooks or self._hooked(home, found, depth - 1):
                    return True
        return False

    def _classes(self, module: str, reference: Reference) -> Iterator[tuple[str, Statement]]:
        if self.library.path(module) is None or _is_without(module):
            return
        parsed = self.library.parsed(module)
        for statement in parsed.binding.get(reference[0], ()):
            if statement.model is not None and len(reference) == 1:
                yield module, statement
            for alias in statement.aliases.get(reference[0], ()):
                target = self.library.absolute(module, alias)
                yield from self._classes(target, (*([alias.name] if alias.name else []), *reference[1:]) or ("",))


def _arm_code(study: Study, arm: str, library: Library) -> ArmCode:
    reached = _Reached(library, study)
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


def _is_without(module: str) -> bool:
    return f"{module}.".startswith(tuple(f"{name}." for name in _WITHOUT)) or module == "assay"


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


def _module_at(package: str, folder: Path, path: Path) -> str:
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))


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
