"""Source read as text: what a module's statements bind, and what they refer to. Nothing is imported."""

from __future__ import annotations

import ast
import copy
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeGuard

from .references import (
    Alias,
    Reference,
    by_text,
    constant,
    import_nodes,
    imported,
    last_word,
    refers,
    targets,
)

# A decorator that keeps or calls elsewhere what it decorates may make code run that no name leads to. These do not.
_PURE = frozenset(
    (
        "abstractmethod",
        "asynccontextmanager",
        "cache",
        "cached_property",
        "classmethod",
        "contextmanager",
        "dataclass",
        "final",
        "inference_mode",
        "lru_cache",
        "no_grad",
        "overload",
        "override",
        "property",
        "runtime_checkable",
        "staticmethod",
        "total_ordering",
        "wraps",
    )
)
_REGISTERS = frozenset(("arm", "claim", "claims_over", "figure", "table"))  # what a study is told by decoration
_SEES_ALL = frozenset((("eval",), ("exec",), ("globals",), ("vars",), ("sys", "modules")))


@dataclass(frozen=True)
class Statement:
    """A statement at the top of a module: what it binds, a digest of what it says, and what it refers to.

    ``aliases`` are its imports, at whatever depth; ``effect`` says that it acts when its module is imported; ``made``
    is the name of the arm that it registers by a call, empty where that name is not written out. Of a class, ``bases``
    tells what it derives from, ``hooks`` whether it acts when others derive from it, ``is_class`` that it is one, and
    ``model``, where it derives from another, is the class as it counts where it holds a study's parameters: without the
    values, which are in every unit's address.
    """

    place: int
    binds: frozenset[str]
    digest: str
    refers: frozenset[Reference]
    aliases: dict[str, tuple[Alias, ...]]
    effect: bool
    modules: tuple[Alias, ...] = ()
    dynamic: bool = False
    made: str | None = None
    bases: tuple[Reference, ...] = ()
    hooks: bool = False
    model: Statement | None = None
    is_class: bool = False


@dataclass(frozen=True)
class Parsed:
    """A module's text, taken apart: its imports at once, its statements when somebody asks for them. Most modules are
    only looked through for what they import."""

    text: bytes
    lazy: dict[str, tuple[Alias, ...]]  # names that a package offers to type checkers and hands out by __getattr__
    stars: tuple[Alias, ...]
    imports: tuple[Alias, ...]

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        found = _body(self.text)
        if found is None:  # one statement that says everything
            return (Statement(0, frozenset(), _hash(self.text.decode(errors="replace")), frozenset(), {}, True),)
        body, _ = found
        functions = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        return tuple(made for place, node in enumerate(body) for made in _statements(place, node, functions))

    @cached_property
    def binding(self) -> dict[str, tuple[Statement, ...]]:
        binding: dict[str, list[Statement]] = {}
        for statement in self.statements:
            for name in statement.binds:
                binding.setdefault(name, []).append(statement)
        return {name: tuple(those) for name, those in binding.items()}


@lru_cache(maxsize=2048)  # by content, so an edit is never missed
def parse(text: bytes) -> Parsed:
    """Take a module's text apart; a file that cannot be parsed imports nothing."""
    body, lazy = _body(text) or ([], {})
    imports = [alias for node in import_nodes(body) for alias in targets(node)]
    stars = tuple(Alias(alias.module, None, alias.level) for alias in imports if alias.name == "*")
    return Parsed(text, lazy, stars, tuple(imports))


def _body(text: bytes) -> tuple[list[ast.stmt], dict[str, tuple[Alias, ...]]] | None:
    """A module's statements without those for type checkers and for the module as a program, and what the former
    import; None where the text cannot be parsed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    body: list[ast.stmt] = []
    lazy: dict[str, tuple[Alias, ...]] = {}
    for node in tree.body:
        if isinstance(node, ast.If) and (_for_checkers(node) or _is_main(node)):
            if _for_checkers(node):
                lazy |= imported(ast.Module(node.body, []))
            body += node.orelse
        else:
            body.append(node)
    return body, lazy


def _statements(place: int, node: ast.stmt, functions: set[str]) -> Iterator[Statement]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        # One for each name: what is counted is that this name stands for that thing, where somebody uses it.
        for name, aliases in imported(node).items():
            digest = _hash(f"{name} {aliases}")
            yield Statement(place, frozenset((name,)), digest, frozenset(), {name: aliases}, False)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    elif isinstance(node, ast.Assign) and last_word(node.value) in ("Study", "Part"):
        return  # presets, settings and words: their values are in every unit's address
    elif isinstance(node, ast.Expr) and (registering := _registering(node.value)) is not None:
        call, given = registering
        made = constant(call.args[0]) if call.args else ""
        yield _statement(place, ast.Expr(ast.Tuple(given, ast.Load())), frozenset(), effect=False, made=made)
    elif isinstance(node, ast.ClassDef):
        yield _class(place, node)
    else:
        yield _statement(place, node, frozenset(_bound(node)), effect=_acts(node, functions))


def _registering(node: ast.expr) -> tuple[ast.Call, list[ast.expr]] | None:
    """The call of ``study.arm(...)`` and its kin, with what it is then called with: ``study.arm(...)(function)``."""
    given: list[ast.expr] = []
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _REGISTERS:
            return node, given
        given += [*node.args, *(keyword.value for keyword in node.keywords)]
        node = node.func
    return None


def _class(place: int, node: ast.ClassDef) -> Statement:
    binds = frozenset((node.name,))
    node.decorator_list = [d for d in node.decorator_list if _registering(d) is None]
    effect = bool(node.keywords) or any(last_word(decorator) not in _PURE for decorator in node.decorator_list)
    hooks = bool(node.keywords) or any(
        isinstance(part, ast.FunctionDef) and part.name == "__init_subclass__" for part in node.body
    )
    bases = tuple(reference for base in node.bases for reference in refers(base))
    model = _model(place, node) if node.bases else None  # what derives from nothing holds no parameters
    made = _statement(place, node, binds, effect=effect)
    return replace(made, bases=bases, hooks=hooks, model=model, is_class=True)


def _model(place: int, node: ast.ClassDef) -> Statement:
    """A class as it counts where it holds a study's parameters: without their values, but with what types they name."""
    fields = [part for part in node.body if _is_field(part)]
    named = frozenset(reference for part in fields for reference in refers(part.annotation))
    stripped = copy.copy(node)  # what is taken away from its functions is taken away from the class as well
    stripped.body = [part for part in node.body if not _is_field(part)]
    model = _statement(place, stripped, frozenset((node.name,)), effect=False)
    return replace(model, refers=model.refers | named)


def _statement(
    place: int, node: ast.stmt, binds: frozenset[str], *, effect: bool, made: str | None = None
) -> Statement:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        node.decorator_list = [d for d in node.decorator_list if _registering(d) is None]
    _normalise(node)
    modules, dynamic = by_text(node)
    return Statement(place, binds, _digest(node), refers(node), imported(node), effect, modules, dynamic, made)


def _acts(node: ast.stmt, functions: set[str]) -> bool:
    """Whether a statement does something when its module is imported, beside giving something a name."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return any(last_word(d) not in _PURE for d in node.decorator_list if _registering(d) is None)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        given = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not all(_plain_target(target) for target in given):
            return True
        # What a function of one's own is called with may be kept by it: ``level = register("level")(lambda: 1)``.
        calls = [part for part in ast.walk(node.value) if isinstance(part, ast.Call)] if node.value else []
        return any(isinstance(c.func, ast.Call) or getattr(c.func, "id", "") in functions for c in calls)
    return True


def _plain_target(target: ast.expr) -> bool:
    """A name, or several: not an entry of a table or an attribute, which would change what another name stands for."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(_plain_target(part) for part in target.elts)
    return isinstance(target, ast.Name) or (isinstance(target, ast.Starred) and _plain_target(target.value))


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.name
        return
    yield from imported(node)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner.id
        elif isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield inner.name


def _for_checkers(node: ast.If) -> bool:
    return last_word(node.test) == "TYPE_CHECKING"


def _is_main(node: ast.If) -> bool:
    """``if __name__ == "__main__":``, which no import runs."""
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))


def _normalise(node: ast.stmt) -> None:
    """Take away what decides no result: docstrings, and annotations of functions that nobody else looks at."""
    for inner in ast.walk(node):
        if isinstance(inner, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(inner, False):
            inner.body = inner.body[1:]
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if any(last_word(decorator) not in _PURE for decorator in inner.decorator_list):
                continue  # functools.singledispatch tells by them which one to call
            inner.returns = None
            for argument in ast.walk(inner.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None


def _is_field(part: ast.stmt) -> TypeGuard[ast.AnnAssign]:
    """A parameter is annotated; a plain or private constant and a ClassVar are code."""
    named = isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.target.id[:1] != "_"
    return named and "ClassVar" not in ast.unparse(part.annotation)  # type: ignore[attr-defined]


def sees_all(statement: Statement) -> bool:
    """Whether a statement may reach any name of its module by text."""
    return any(reference[:length] in _SEES_ALL for reference in statement.refers for length in (1, 2))


def _digest(node: ast.AST) -> str:
    return _hash(_dump(node))


def _dump(tree: ast.AST) -> str:
    """``ast.dump`` as Python 3.11 writes it, so that one store serves machines with different Pythons."""
    for node in ast.walk(tree):
        if getattr(node, "type_params", None) == []:  # a field since 3.12
            del node.type_params  # type: ignore[attr-defined]
    # Since 3.13 empty fields are left out unless asked for.
    return ast.dump(tree, **({"show_empty": True} if sys.version_info >= (3, 13) else {}))


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
