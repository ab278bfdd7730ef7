"""A study in outline: what a listing shows of it, remembered until a file changes, so that it need not be imported."""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import assay

from .code_version import installed_versions, study_sources
from .library import Library
from .source import parse
from .study import Study

_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([A-Za-z_][\w.]*(?:[ \t]*,[ \t]*[A-Za-z_][\w.]*)*)", re.MULTILINE)


@dataclass(frozen=True)
class Outline:
    name: str
    title: str
    question: str
    source: str
    claims: list[str]
    headlines: list[str]
    arms: list[str]
    cost: dict[str, str]

    @classmethod
    def of(cls, study: Study) -> Outline:
        return cls(
            study.name,
            study.title,
            study.question,
            study.source,
            [claim.id for claim in study.ordered_claims()],
            [claim.id for claim in study.ordered_claims() if claim.headline],
            list(study.arms),
            {name: preset.cost for name, preset in study.presets.items()},
        )


def judging_mark(package: str, folder: Path) -> str:
    """A hash over everything that may have a say in a study's verdicts: every module that it may execute, all other
    files of its folder, the lab itself, and the versions of what is installed that they import."""
    digest = hashlib.blake2b(digest_size=16)
    sources = study_sources(package, folder)
    lab = {f"assay.lab.{path.stem}": path for path in Path(__file__).parent.glob("*.py")}
    others = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    kept = {name: path for name, path in others.items() if path.suffix != ".py" and "__pycache__" not in path.parts}
    for name, path in sorted({**sources, **lab, **kept}.items()):
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    roots = {alias.module.partition(".")[0] for path in sources.values() for alias in parse(path.read_bytes()).imports}
    for package_version in installed_versions({*roots, "numpy", "polars", "scipy"}):
        digest.update(package_version.encode())
    return digest.hexdigest()


def fingerprint(folder: Path) -> str:
    """A quicker one, for what a listing shows: the study's folder, this package, and whatever local source they import,
    read without taking it apart."""
    digest = hashlib.blake2b(digest_size=16)
    library = Library(("assay",))
    package = Path(assay.__file__).parent
    roots, waiting, seen = [folder, folder.parent, package], [], {"assay"}
    while roots:
        root = roots.pop()
        for label, path in _sources(root, package, folder):
            content = path.read_bytes()
            digest.update(f"{label} {len(content)}\n".encode() + content)
            waiting += [
                word.partition(".")[0] for words in _IMPORTS.findall(content) for word in words.decode().split(",")
            ]
        for name in {word.strip() for word in waiting} - seen:
            seen.add(name)
            found = library.path(name) if not library.is_installed(name) else None
            if found is not None:
                roots.append(found.parent if found.name == "__init__.py" else found)
        waiting.clear()
    return digest.hexdigest()


def _sources(root: Path, package: Path, folder: Path) -> list[tuple[str, Path]]:
    if root.is_file():
        return [(root.name, root)]
    if root == folder.parent and not folder.is_relative_to(package):
        # What studies of one folder share.
        paths = [p for p in root.rglob("*.py") if not any((f / "study.py").exists() for f in p.parents)]
    elif root == folder.parent:
        return []
    else:
        paths = [*root.rglob("*.py"), *root.rglob("paper.csv")]
    others = package / "studies"
    kept = [p for p in paths if root == folder or not p.is_relative_to(others)]
    return sorted((str(p.relative_to(root)), p) for p in kept if "__pycache__" not in p.parts)


def remembered(mark: str) -> Outline | None:
    """The outline that was kept under a fingerprint."""
    try:
        kept: dict[str, Any] = json.loads((_cache() / f"{mark}.json").read_text())
        return Outline(**kept)
    except (OSError, ValueError, TypeError):
        return None


def remember(mark: str, outline: Outline) -> None:
    with suppress(OSError):  # a home that cannot be written costs time and nothing else
        _cache().mkdir(parents=True, exist_ok=True)
        temporary = _cache() / f".tmp-{os.getpid()}-{mark}"
        temporary.write_text(json.dumps(asdict(outline)))
        temporary.replace(_cache() / f"{mark}.json")


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "assay" / "outlines"
