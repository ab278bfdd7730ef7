"""A site made once from two small studies, and a way to run others."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assay import lab
from assay.report import site as report

HERE = Path(__file__).parent
COIN = HERE.parent / "lab" / "outside"
GALLERY = HERE / "outside"


def stored_run(outside: Path, name: str, runs: Path, **request) -> lab.Run:
    """Run a study and give what the report takes."""
    run = lab.run(name, jobs=1, runs=runs, studies=outside, **request)
    assert not run.manifest.failures
    return lab.open_run(name, run.id, runs=runs, studies=outside)


@dataclass
class Site:
    folder: Path
    said: list[str] = field(default_factory=list)

    def text(self, page: str) -> str:
        return (self.folder / page).read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    base = tmp_path_factory.mktemp("site")
    made = Site(base / "deep" / "report")
    chosen = [
        stored_run(COIN, "coin", base / "runs", preset="smoke"),
        stored_run(GALLERY, "gallery", base / "runs", set={"level": "0.4", "small.size": "2"}),
    ]
    index = report.write(chosen, made.folder, formats=("svg", "png", "pdf"), say=made.said.append)
    assert index == made.folder / "index.html"
    return made


@pytest.fixture(scope="session")
def run_study():
    return stored_run


@pytest.fixture(scope="session")
def coin_folder():
    return COIN / "coin"
