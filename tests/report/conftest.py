"""A site made once from two small studies, and a way to run others."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assay.lab import discovery, runner
from assay.lab.plan import Request, make_plan
from assay.lab.store import Store
from assay.report import site as report

HERE = Path(__file__).parent
COIN = HERE.parent / "lab" / "outside"
GALLERY = HERE / "outside"


class Silent:
    def start(self, total): ...
    def latest(self, label, metric, value): ...
    def done(self, unit, *, stored, seconds): ...
    def say(self, sentence): ...


def stored_run(outside: Path, name: str, runs: Path, **request):
    """Run a study and give what the report takes: (study, store, manifest)."""
    study, store = discovery.find(name, str(outside)), Store(runs, name)
    options = runner.Options(jobs=1, outside=str(outside))
    result = runner.run(make_plan(study, Request(**request)), store, options, Silent())
    assert not result.failures
    return study, store, store.manifest(result.manifest["id"])


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
        stored_run(GALLERY, "gallery", base / "runs", overrides={"level": "0.4", "small.size": "2"}),
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
