"""Where runs and studies of one's own lie: as given, by an environment variable, or by default."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import UserError
from .store import Store


def stored_studies(runs: Path, *, cells: bool = False) -> list[str]:
    """The names under which runs, or cells of sweeps, are stored."""
    try:
        return sorted(path.name for path in runs.iterdir() if Store(runs, path.name).manifest_ids(cells=cells))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise UserError(f"cannot read {runs}: {error.strerror or error}") from None


def runs_folder(given: str | Path | None) -> Path:
    """The folder of stored runs: as given, or ``$ASSAY_RUNS``, or ``runs``."""
    return Path(given if given is not None else os.environ.get("ASSAY_RUNS") or "runs")


def studies_folder(given: str | Path | None) -> str | None:
    """The folder with studies of one's own: as given, or ``$ASSAY_STUDIES`` (several may stand there)."""
    text = str(given) if given is not None else os.environ.get("ASSAY_STUDIES", "")
    folders = [folder for folder in text.split(os.pathsep) if folder]
    for folder in folders:
        if not Path(folder).is_dir():
            is_file = Path(folder).exists()
            raise UserError(f"the studies folder {folder} {'is a file' if is_file else 'does not exist'}")
    return os.pathsep.join(str(Path(folder).resolve()) for folder in folders) or None
