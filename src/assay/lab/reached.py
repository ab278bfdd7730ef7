"""The definitions that code can reach: names are followed through modules and imports, in this package, in a study's
folder and in any other local source. Nothing is imported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .library import Library
from .references import Alias, Reference
from .source import Parsed, Statement, sees_all

if TYPE_CHECKING:
    from .study import Study

# Rewording a claim, redrawing a figure or changing the engine must not rerun a training.
_WITHOUT = (
    "assay.lab",
    "assay.report",
    "assay.apps",
    "assay.benchmarks",
    "assay.cli",
    "assay._lazy",
    "assay._extras",
    "assay._reports",
)
# Parameters are made with pydantic, and their values are in every unit's address; Altair draws what was measured.
_LABS_OWN = ("pydantic", "altair")
JUDGING_ROOMS = ("claims", "figures")


class Reached:
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
            if name in self._touched or is_without(name) or not name:
                continue
            self._touched.add(name)
            waiting.append(name.rpartition(".")[0])
            if self.library.path(name) is None or name.rpartition(".")[2] in JUDGING_ROOMS:
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
        if (module, name) in self._names or is_without(module):
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
        if module in self._modules or is_without(module):
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
            module = module_at(self._package, self._folder or path.parent, path)
            if module.rpartition(".")[2] not in JUDGING_ROOMS:
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
        if self.library.path(module) is None or is_without(module):
            return
        parsed = self.library.parsed(module)
        for statement in parsed.binding.get(reference[0], ()):
            if statement.is_class and len(reference) == 1:
                yield module, statement
            for alias in statement.aliases.get(reference[0], ()):
                target = self.library.absolute(module, alias)
                yield from self._classes(target, (*([alias.name] if alias.name else []), *reference[1:]) or ("",))


def is_without(module: str) -> bool:
    return f"{module}.".startswith(tuple(f"{name}." for name in _WITHOUT)) or module == "assay"


def module_at(package: str, folder: Path, path: Path) -> str:
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join((package, *(parts[:-1] if parts[-1] == "__init__" else parts)))
