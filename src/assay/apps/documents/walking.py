"""Which files a person means by a folder: what git would track, without binaries and other people's code."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Folders that hold other people's code, builds or caches; hidden ones are passed over as well.
_PASSED_OVER = {"node_modules", "venv", "__pycache__", "site-packages", "dist", "build", "target"}
# Text that nobody wrote to be read. What is no text at all is found out by its content.
_NOT_MEANT = {".svg", ".lock", ".map"}


@dataclass(frozen=True)
class Walked:
    """Files in the order of their paths, each with the name to show; and what was passed over, with the reason."""

    files: dict[Path, str]
    passed_over: dict[str, str] = field(default_factory=dict)


def walk(paths: Sequence[str | Path], *, largest: int = 20 * 2**20) -> Walked:
    """The files of some paths. A file that is named is always meant; folders are gone through."""
    files: dict[Path, str] = {}
    passed_over: dict[str, str] = {}
    for given in map(Path, paths):
        if not given.exists():
            raise ValueError(f"there is no file or folder {given}")
        if not given.is_dir():
            files[given.resolve()] = str(given)
            continue
        for path in _below(given, _ignored_above(given)):
            if path.suffix.lower() in _NOT_MEANT:
                continue
            if path.stat().st_size > largest:
                passed_over[str(path)] = f"it is larger than {largest // 2**20} MB"
            else:
                files.setdefault(path.resolve(), str(path))
    return Walked(dict(sorted(files.items(), key=lambda pair: pair[1])), passed_over)


def _below(folder: Path, rules: list[_Rule]) -> Iterator[Path]:
    rules = rules + _rules(folder)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise ValueError(f"cannot read the folder {folder}: {error.strerror}") from None
    for entry in entries:
        path, inside = Path(entry.path), entry.is_dir(follow_symlinks=False)
        if entry.name.startswith(".") or _ignored(path, inside, rules):
            continue
        if inside:
            if entry.name not in _PASSED_OVER and not entry.name.endswith(".egg-info") and not _an_index(path):
                yield from _below(path, rules)
        elif entry.is_file():
            yield path


def _an_index(folder: Path) -> bool:
    """An index that somebody put among the documents is none of them."""
    return (folder / "chunks").is_dir() and (folder / "manifest.json").is_file()


@dataclass(frozen=True)
class _Rule:
    """A line of a .gitignore: where it stands, its pattern, whether for folders only, and whether it takes back."""

    folder: Path
    pattern: re.Pattern[str]
    folders_only: bool
    back: bool


def _rules(folder: Path) -> list[_Rule]:
    try:
        lines = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        line = line.rstrip()
        back = line.startswith("!")
        words = line[1:] if back else line
        if not words or words.startswith("#"):
            continue
        folders_only, words = words.endswith("/"), words.rstrip("/")
        # A pattern with a slash is of this folder; one without is of any below.
        anywhere = "/" not in words
        parts = [".*" if part == "**" else _part(part) for part in words.lstrip("/").split("/")]
        text = ("(?:.*/)?" if anywhere else "") + "/".join(parts).replace(".*/", "(?:.*/)?")
        found.append(_Rule(folder.absolute(), re.compile(text + r"\Z"), folders_only, back))
    return found


def _part(part: str) -> str:
    """One name of a pattern, in which a star is no slash."""
    return fnmatch.translate(part).removesuffix(r"\Z").removesuffix(r"\z").replace(".*", "[^/]*")


def _ignored(path: Path, inside: bool, rules: Sequence[_Rule]) -> bool:
    found = False
    for rule in rules:
        if rule.folders_only and not inside:
            continue
        if rule.pattern.match(path.absolute().relative_to(rule.folder).as_posix()):
            found = not rule.back
    return found


def _ignored_above(folder: Path) -> list[_Rule]:
    """The rules of the repository that a folder lies in."""
    here = folder.absolute()
    above = [here, *here.parents]
    root = next((place for place in above if (place / ".git").exists()), None)
    if root is None or root == here:
        return []
    between = [place for place in reversed(here.parents) if place == root or root in place.parents]
    return [rule for place in between for rule in _rules(place)]
