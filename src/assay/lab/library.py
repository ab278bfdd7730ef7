"""Where modules lie: local source is read, installed packages are known by name, and nothing is imported."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import sysconfig
from functools import cache
from pathlib import Path

from .references import Alias
from .source import Parsed, parse


class Library:
    """The modules that can be found from here, read as they are now. Made for one question and then thrown away, so
    that no edit is missed."""

    def __init__(self, own: tuple[str, ...]) -> None:
        self._own = own  # packages whose source counts wherever it lies
        self._paths: dict[str, Path | None] = {}
        self._parsed: dict[str, Parsed] = {}
        self._opaque: dict[str, Path | None] = {}
        self._roots: dict[str, tuple[tuple[Path, ...], bool]] = {}

    def opaque(self, root: str) -> Path | None:
        """The file of a package of one's own that cannot be read as source: compiled, or in an archive."""
        if root not in self._opaque:
            self._opaque[root] = self._find_opaque(root)
        return self._opaque[root]

    def _find_opaque(self, root: str) -> Path | None:
        try:
            spec = importlib.util.find_spec(root)
        except (ValueError, ImportError):
            return None
        origin = Path(spec.origin) if spec is not None and spec.origin else None
        if origin is None or spec is None or _is_standard(origin) or self.is_installed(root):
            return None
        return next((path for path in (origin, *origin.parents) if path.is_file()), None)

    def path(self, module: str) -> Path | None:
        """The file of a module whose source is local: this package, a study's, an editable install, PYTHONPATH."""
        if module not in self._paths:
            self._paths[module] = self._find(module)
        return self._paths[module]

    def parsed(self, module: str) -> Parsed:
        if module not in self._parsed:
            path = self.path(module)
            assert path is not None
            self._parsed[module] = parse(path.read_bytes())
        return self._parsed[module]

    def is_installed(self, root: str) -> bool:
        """Whether a top-level package lies among the installed ones and so counts by its version."""
        return self._root(root)[1]

    def absolute(self, module: str, alias: Alias) -> str:
        """The full name of the module that an import in ``module`` names."""
        if not alias.level:
            return alias.module
        path = self.path(module)
        package = module if path is not None and path.name == "__init__.py" else module.rpartition(".")[0]
        parts = package.split(".")
        return ".".join(part for part in (*parts[: len(parts) - alias.level + 1], alias.module) if part)

    def _find(self, module: str) -> Path | None:
        root, _, rest = module.partition(".")
        folders, installed = self._root(root)
        if installed and root not in self._own:
            return None
        for folder in folders:
            if folder.is_file():
                if not rest:
                    return folder
                continue
            path = folder.joinpath(*rest.split(".")) if rest else folder
            found = next((f for f in (path / "__init__.py", path.with_suffix(".py")) if f.is_file()), None)
            if found is not None and (rest or found.name == "__init__.py"):
                return found
        return None

    def _root(self, root: str) -> tuple[tuple[Path, ...], bool]:
        """Where a top-level module lies, and whether that is a place for installed packages."""
        if root not in self._roots:
            self._roots[root] = _locate(root)
        return self._roots[root]


def _locate(root: str) -> tuple[tuple[Path, ...], bool]:
    try:
        spec = importlib.util.find_spec(root)
    except (ValueError, ImportError):  # a package made by hand has no specification
        spec = None
        loaded = getattr(sys.modules.get(root), "__path__", ())
        return tuple(Path(place) for place in loaded), False
    if spec is None:
        return (), False
    places = tuple(Path(place) for place in spec.submodule_search_locations or ())
    if not places and spec.origin and spec.origin.endswith(".py"):
        places = (Path(spec.origin),)
    installed = any({"site-packages", "dist-packages"} & set(place.parts) for place in places)
    installed = installed or any(_is_recorded(place) for place in places)
    if not places or (not installed and any(map(_is_standard, places))):
        # Compiled modules that lie beside installed packages count by version; Python's own do not count.
        origin = spec.origin or ""
        return (), "site-packages" in origin or "dist-packages" in origin
    return places, installed


def _is_recorded(place: Path) -> bool:
    """Whether an installer put a package into the folder it lies in, as ``pip install --target`` does: its record lies
    beside it. That of an editable install lies elsewhere."""
    entry = place.name if place.suffix == ".py" else f"{place.name}/"
    for record in place.parent.glob("*.dist-info/RECORD"):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if any(line.startswith(entry) for line in record.read_text(encoding="utf-8").splitlines()):
                return True
    return False


def _is_standard(path: Path) -> bool:
    """Whether a file is Python's own."""
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return not installed and any(path.is_relative_to(folder) for folder in _standard_folders())


@cache
def _standard_folders() -> tuple[Path, ...]:
    return tuple(Path(sysconfig.get_paths()[name]) for name in ("stdlib", "platstdlib"))
