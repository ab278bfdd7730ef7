"""The documents of some paths, read anew each time: what did not change is known by its content further on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from assay.apps.documents.passages import pieces
from assay.apps.documents.reading import NoText, Text, read
from assay.apps.documents.walking import walk


@dataclass(frozen=True)
class Document:
    """A file: the name to show, its place, its text, and the stretches of it that can be cited."""

    name: str
    path: Path
    text: Text
    pieces: list[tuple[int, int]]

    @property
    def words(self) -> list[str]:
        """The text of every piece."""
        return [self.text.text[begin:end] for begin, end in self.pieces]


@dataclass(frozen=True)
class Library:
    """Documents by the name to show, and files that were passed over with the reason."""

    documents: dict[str, Document]
    passed_over: dict[str, str]
    roots: tuple[Path, ...]

    @classmethod
    def of(cls, paths: Sequence[str | Path], *, cache: Path | None = None) -> Library:
        """Read all files of some paths. A file that was named must have text; one of a folder may be passed over."""
        walked = walk(paths)
        named = {Path(path).resolve() for path in paths if not Path(path).is_dir()}
        found, passed_over = {}, dict(walked.passed_over)
        for path, name in walked.files.items():
            try:
                text = _read(path, cache)
            except NoText as error:
                if path in named:
                    raise
                passed_over[name] = str(error).replace(str(path), "it", 1)
                continue
            found[name] = Document(name, path, text, pieces(text))
        if not found:
            where = ", ".join(map(str, paths))
            more = f": {len(passed_over)} files were passed over" if passed_over else ""
            raise ValueError(f"there is no text to read in {where}{more}")
        return cls(found, passed_over, tuple(Path(path).resolve() for path in paths))

    def holds(self, path: Path) -> bool:
        """Whether a file lies where this library looked."""
        return any(root == path or root in path.parents for root in self.roots)


def _read(path: Path, cache: Path | None) -> Text:
    """PDFs take long to take apart: their text is kept, and used as long as size and time are the same."""
    if cache is None or path.suffix.lower() != ".pdf":
        return read(path)
    looked = path.stat()
    mark = hashlib.blake2b(f"{path} {looked.st_size} {looked.st_mtime_ns}".encode(), digest_size=16).hexdigest()
    kept = cache / f"{mark}.json"
    try:
        made = json.loads(kept.read_text(encoding="utf-8"))
        return Text(made["text"], "page", tuple(made["begins"]), tuple(made["numbers"]))
    except (OSError, ValueError, KeyError, TypeError):
        text = read(path)
    with suppress(OSError):  # where nothing can be kept, it is read again next time
        cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(vars(text)), encoding="utf-8")
        unfinished.replace(kept)
    return text
