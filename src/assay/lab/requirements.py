"""What an arm may need beyond the package itself, and whether it is there."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from assay.data.images import obtainable

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
                return f"it needs the extra '{name}' (pip install 'assay[{name}]')"
        elif kind == "data":
            if reason := obtainable(name):
                return f"it needs the data set '{name}': {reason}"
        elif kind == "model":
            if reason := _absent_model(name):
                return f"it needs the model '{name}': {reason}"
        else:
            raise ValueError(f"unknown requirement '{need}'")
    return None


def data_fingerprints(needs: str | Iterable[str]) -> dict[str, str]:
    """A hash of the files of every data set among the needs that lies under ``$ASSAY_DATA``."""
    names = [need.partition(":")[2] for need in ([needs] if isinstance(needs, str) else needs) if need[:5] == "data:"]
    found = {name: _fingerprint(Path(os.environ.get("ASSAY_DATA", "")) / name) for name in names}
    return {name: hashed for name, hashed in found.items() if hashed}


@cache
def _fingerprint(folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=12)
    files = sorted(folder.glob("*.parquet")) if "ASSAY_DATA" in os.environ else []
    for path in files:
        digest.update(f"{path.name}\n".encode())
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "blake2b").digest())
    return digest.hexdigest() if files else ""


def _absent_model(name: str) -> str | None:
    from assay.methods.gemfilter.models import why_absent

    return why_absent(name)
