"""Names in a piece of code: which it reads, which modules it imports, and what its imports bind."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# Where statements stand in others, in the order in which Python's own walk meets them.
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")

Reference = tuple[str, ...]  # ("learners", "toss") for learners.toss


@dataclass(frozen=True)
class Alias:
    """What an import binds: a module, or a name in one. ``level`` counts the dots of a relative import."""

    module: str
    name: str | None
    level: int


def refers(node: ast.AST) -> frozenset[Reference]:
    """Every name that is read, with the attributes asked of it."""
    found: set[Reference] = set()
    inside: set[int] = set()  # names that are the root of an attribute seen already
    for inner in ast.walk(node):  # outer nodes come first, so a.b.c is met before a.b and a
        if isinstance(inner, ast.Attribute) and id(inner) not in inside:
            words: list[str] = []
            at: ast.expr = inner
            while isinstance(at, ast.Attribute):
                inside.add(id(at))
                words.append(at.attr)
                at = at.value
            if isinstance(at, ast.Name):
                inside.add(id(at))
                found.add((at.id, *reversed(words)))
        elif isinstance(inner, ast.Name) and id(inner) not in inside:
            found.add((inner.id,))
    return frozenset(found)


def by_text(node: ast.AST) -> tuple[tuple[Alias, ...], bool]:
    """Modules that are imported by ``import_module("...")``, and whether one is whose name is not written out."""
    found, dynamic = [], False
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and last_word(inner) in ("import_module", "__import__"):
            name = constant(inner.args[0]) if inner.args else ""
            level = len(name) - len(name.lstrip("."))
            found += [Alias(name[level:], None, level)] if name else []
            dynamic = dynamic or not name
    return tuple(found), dynamic


def import_nodes(body: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports in a piece of code, at whatever depth. They are statements: no expression is looked into."""
    for start in body:
        waiting = deque([start])
        while waiting:
            node = waiting.popleft()
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                yield node
            elif not isinstance(node, ast.expr):
                for field in _BLOCKS:
                    waiting.extend(getattr(node, field, ()))


def imported(node: ast.AST) -> dict[str, tuple[Alias, ...]]:
    """What the imports in a piece of code bind, at whatever depth; a name may be bound by several."""
    found: dict[str, tuple[Alias, ...]] = {}
    for inner in import_nodes([node]):
        for part in inner.names:
            if part.name == "*":
                continue
            if isinstance(inner, ast.ImportFrom):
                name, alias = part.asname or part.name, Alias(inner.module or "", part.name, inner.level)
            else:
                root = part.name.partition(".")[0]
                name, alias = part.asname or root, Alias(part.name if part.asname else root, None, 0)
            found[name] = (*found.get(name, ()), alias)
    return found


def targets(node: ast.Import | ast.ImportFrom) -> list[Alias]:
    """Every module that an import may execute, a name in one among them: it may be a module itself."""
    if isinstance(node, ast.Import):
        return [Alias(name.name, None, 0) for name in node.names]
    return [Alias(node.module or "", name.name, node.level) for name in node.names]


def constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def last_word(node: ast.expr) -> str:
    """The last word of ``lab.Study(...)`` or ``lab.Params``."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
