"""What an arm may need beyond the package itself, and whether it is there."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

_LARGE = 2**20
_EXTRAS = {
    "llm": ("transformers",),
    "data": ("datasets", "PIL"),
    "cluster": ("ray", "dask"),
    "web": ("fastapi", "uvicorn"),
}


def missing_requirement(needs: str | Iterable[str], device: str) -> str | None:
    """The first requirement that is not met, as the reason an arm cannot run; None when all are."""
    for need in [needs] if isinstance(needs, str) else needs:
        kind, _, name = need.partition(":")
        if kind == "gpu":
            if device != "cuda":
                return "it needs a GPU (--device cuda)"
        elif kind == "extra":
            if name not in _EXTRAS:
                raise ValueError(f"unknown extra '{name}' in the requirement '{need}' (allowed: {', '.join(_EXTRAS)})")
            if any(importlib.util.find_spec(module) is None for module in _EXTRAS[name]):
                return f"it needs the extra '{name}' (pip install 'assay-lab[{name}]')"
        elif kind == "data":
            from assay.data.catalog import obtainable

            if reason := obtainable(name):
                return f"it needs the data set '{name}': {reason}"
        elif kind == "model":
            if reason := _absent_model(name):
                return f"it needs the model '{name}': {reason}"
        elif kind == "text":
            if reason := _thin_text(name):
                return reason
        else:
            raise ValueError(f"unknown requirement '{need}'")
    return None


def fingerprints(needs: str | Iterable[str], files: Mapping[str, Path]) -> dict[str, str]:
    """A hash of the contents of every data set among the needs that lies under ``$ASSAY_DATA``, and of every file that
    is there. What is not here has no hash: a stored result may have been made where it is."""
    from assay.data import catalog

    names = [need.partition(":")[2] for need in ([needs] if isinstance(needs, str) else needs) if need[:5] == "data:"]
    found = {}
    for name in names:
        found[name] = _together((within, _data_digest(path)) for within, path in catalog.contents(name).items())
    for name, path in files.items():
        if path.exists():
            found[name] = _together((inner.name, _digest(inner)) for inner in _within(path))
    return {name: hashed for name, hashed in found.items() if hashed}


def _within(path: Path) -> list[Path]:
    """A file, or all that lie in a folder."""
    return [path] if path.is_file() else sorted(inner for inner in path.rglob("*") if inner.is_file())


def _together(digests: Iterable[tuple[str, str]]) -> str:
    lines = [f"{name}\n{digest}\n" for name, digest in digests]
    return hashlib.blake2b("".join(lines).encode(), digest_size=12).hexdigest() if lines else ""


def _data_digest(path: Path) -> str:
    """Single image files count by their size: there may be half a million, and every plan asks."""
    return _digest(path) if path.suffix == ".parquet" else str(path.stat().st_size)


def missing_files(files: Mapping[str, Path]) -> str | None:
    """The first file that an arm says it reads and that is not there, as the reason why it cannot run."""
    for name, path in files.items():
        if not path.exists():
            return f"it reads '{name}', and there is no {path}"
    return None


def _digest(path: Path) -> str:
    seen = path.stat()
    if seen.st_size < _LARGE:
        return hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest()
    return _digest_of_large(path, seen.st_mtime_ns, seen.st_size)


@lru_cache(maxsize=256)  # a file that was not written since has the contents it had
def _digest_of_large(path: Path, written: int, size: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=12)).hexdigest()


def _thin_text(name: str) -> str | None:
    """Why a file or folder of the user's is no text to hide facts in."""
    from assay.evaluation.prose import folder_text

    if not Path(name).exists():
        return f"there is neither a folder nor a file {name}"
    try:
        folder_text(name)
    except (OSError, ValueError) as error:
        return str(error)
    return None


def _absent_model(name: str) -> str | None:
    from assay.networks.pretrained import why_absent

    return why_absent(name)
