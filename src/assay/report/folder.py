"""The folder that a report is written into."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from assay.lab import UserError


@dataclass(frozen=True)
class Folder:
    """Writes files below ``root``; a place that cannot be written is the caller's to mend."""

    root: Path

    def prepare(self) -> None:
        """Refuse an unwritable place before any figure is drawn."""
        probe = self.root / f".probe-{secrets.token_hex(4)}"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise UserError(f"cannot write the report to {self.root}: {error.strerror or error}") from None

    def save(self, name: str, content: str | bytes) -> str:
        """Write one file and return its address relative to the site's pages."""
        path = self.root / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError as error:
            raise UserError(f"cannot write the report to {path}: {error.strerror or error}") from None
        return name
