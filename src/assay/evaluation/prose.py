"""English prose that machines carry without a download: haystacks to hide needles in, of several kinds."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

#: A text of fewer characters is no haystack.
_LEAST = 20_000
_MOST = 400_000
_TEXTS = (".txt", ".md", ".rst")
_PROSE = re.compile(r"[A-Za-z][^.!?]{30,}[.!?]")


@cache
def manual_text() -> str:
    """English prose that every Python carries: the language's own manual."""
    from pydoc_data.topics import topics

    prose = (re.sub(r"\s+", " ", re.sub(r"[*`=~^-]{2,}", " ", topics[name])) for name in sorted(topics))
    return "\n".join(prose)


@cache
def licence_text() -> str:
    """The licences of the installed packages, each once."""
    return _joined(_licences())


@cache
def package_text() -> str:
    """How the installed packages describe themselves: the sentences among code, tables and links."""
    return _joined(_descriptions())


@cache
def library_text() -> str:
    """What Python's standard library says of itself: the sentences in the docstrings of its modules."""
    return _joined(_docstrings())


def folder_text(folder: str | Path) -> str:
    """The text files of a folder (.txt, .md, .rst), or one file, as running text."""
    path = Path(folder).expanduser()
    found = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.suffix in _TEXTS)
    text = "\n".join(re.sub(r"\s+", " ", each.read_text(errors="replace")).strip() for each in found)
    if len(text) < _LEAST:
        raise ValueError(f"{folder} holds {len(text):,} characters of text; a haystack has at least {_LEAST:,}")
    return text


def _docstrings() -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        texts = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, documented)]
        yield " ".join(_PROSE.findall(re.sub(r"\s+", " ", " ".join(texts))))


def _licences() -> Iterator[str]:
    for package in _packages():
        for path in package.files or ():
            if re.match(r"(licen[cs]e|copying|notice)", path.name, re.IGNORECASE) and path.suffix in (
                "",
                ".txt",
                ".md",
            ):
                try:
                    yield path.read_text()
                except (OSError, UnicodeDecodeError):
                    continue


def _descriptions() -> Iterator[str]:
    for package in _packages():
        text = package.read_text("METADATA") or ""
        text = re.sub(r"```.*?```|<[^>]*>|https?://\S+", " ", text.partition("\n\n")[2], flags=re.DOTALL)
        lines = [line for line in text.splitlines() if not re.match(r"\s{4}|[>|#.*=-]|\[!", line)]
        yield " ".join(_PROSE.findall(re.sub(r"[*`_\[\]]+", "", " ".join(lines))))


def _packages() -> list[metadata.Distribution]:
    """By name, so that the order is not the file system's."""
    return sorted(metadata.distributions(), key=lambda package: str(package.metadata["Name"]).lower())


def _joined(texts: Iterator[str]) -> str:
    """Texts one after the other, equal ones once, until there is enough."""
    seen: dict[str, None] = {}
    for text in texts:
        if plain := re.sub(r"\s+", " ", text).strip():
            seen[plain] = None
        if sum(map(len, seen)) > _MOST:
            break
    return "\n".join(seen)[:_MOST]


KINDS: dict[str, Callable[[], str]] = {"manual": manual_text, "licences": licence_text, "packages": package_text}


def haystacks() -> dict[str, str]:
    """The kinds of prose that this machine has enough of; Python's manual is always among them."""
    found = {name: read() for name, read in KINDS.items()}
    return {name: text for name, text in found.items() if len(text) >= _LEAST or name == "manual"}


def halves(text: str) -> tuple[str, str]:
    """Two texts that share no sentence."""
    middle = text.find(". ", len(text) // 2)
    cut = len(text) // 2 if middle < 0 else middle + 1
    return text[:cut].strip(), text[cut:].strip()
