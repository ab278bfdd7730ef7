"""The code version of a study: a hash over the syntax trees that its results depend on."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# Rewording a claim, redrawing a figure or changing the engine must not rerun a training.
_WITHOUT = ("assay.lab", "assay.report", "assay.web", "assay.benchmarks", "assay.cli")
# The lab hands every arm its seeds' streams, whether or not the study imports them by name.
_ALWAYS = ("assay.training.seeds",)


@cache
def code_version(module: str) -> str:
    """Hash of ``module`` (a study's ``study.py``) and of everything it imports from this package or from its own: the
    folder of ``--studies``, or the package that an entry point names."""
    package, root = module.rpartition(".")[0], module.partition(".")[0]
    digest = hashlib.blake2b(digest_size=12)
    for name in sorted(_closure(module, ("assay", root))):
        path = _source(name)
        if path is not None:
            # Where the folder lies decides no result.
            label = name.removeprefix(package) if root == "assay" else name.removeprefix(package).removeprefix(root)
            digest.update(f"{label}:{_tree(path)}\n".encode())
    return digest.hexdigest()


def _closure(module: str, packages: tuple[str, ...]) -> set[str]:
    seen: set[str] = set()
    package = module.rpartition(".")[0]
    without = tuple(f"{name}." for name in (*_WITHOUT, f"{package}.claims", f"{package}.figures"))
    waiting = [module, *_ALWAYS]
    while waiting:
        name = waiting.pop()
        # The package's own __init__.py holds its version, which decides no result.
        if name in seen or name == "assay" or f"{name}.".startswith(without) or _source(name) is None:
            continue
        seen.add(name)
        waiting += [found for found in _imports(name) if f"{found}.".startswith(tuple(f"{p}." for p in packages))]
    return seen


def _imports(module: str) -> Iterator[str]:
    path = _source(module)
    assert path is not None
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            name = ".".join(part for part in (base, node.module or "") if part)
            yield name
            # `from assay.probes import directions` names a module, not an attribute.
            yield from (f"{name}.{alias.name}" for alias in node.names)


@cache
def _source(module: str) -> Path | None:
    """The file of a module, found by path alone: importing it could pull in heavy optional packages."""
    parts = module.split(".")
    for cut in range(len(parts), 0, -1):
        parent = sys.modules.get(".".join(parts[:cut]))
        if parent is not None and hasattr(parent, "__path__"):
            path = Path(next(iter(parent.__path__))).joinpath(*parts[cut:])
            candidates = (path / "__init__.py", path.with_suffix(".py"))
            return next((candidate for candidate in candidates if candidate.is_file()), None)
    return None


def _tree(path: Path) -> str:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, False):
            node.body = node.body[1:]
    tree.body = [kept for statement in tree.body if (kept := _without_values(statement)) is not None]
    return hashlib.blake2b(_dump(tree).encode(), digest_size=12).hexdigest()


def _dump(tree: ast.AST) -> str:
    """``ast.dump`` as Python 3.11 writes it, so that one store serves machines with different Pythons."""
    for node in ast.walk(tree):
        if getattr(node, "type_params", None) == []:  # a field since 3.12
            del node.type_params  # type: ignore[attr-defined]
    # Since 3.13 empty fields are left out unless asked for.
    return ast.dump(tree, **({"show_empty": True} if sys.version_info >= (3, 13) else {}))


def _without_values(statement: ast.stmt) -> ast.stmt | None:
    """A statement without parameters' defaults, presets and settings: their values are in every unit's address
    already, and a new preset or a reworded question must not rerun the others."""
    if isinstance(statement, ast.Assign) and _names(statement.value) == "Study":
        return None
    if isinstance(statement, ast.ClassDef) and any(_names(base) == "Params" for base in statement.bases):
        statement.body = [part for part in statement.body if not _is_field(part)]
    return statement


def _is_field(part: ast.stmt) -> bool:
    """A parameter is annotated; a plain or private constant and a ClassVar are code."""
    return isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.unparse(part.annotation)


def _names(node: ast.expr) -> str:
    """The last word of ``lab.Study(...)`` or ``lab.Params``."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
