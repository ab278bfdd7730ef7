"""What the lab's tests share: the studies kept for them, a silent progress, and a way to run a plan."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import settings

from assay.lab import discovery, results, runner
from assay.lab.dispatch import Options
from assay.lab.events import Event, Said, Started, UnitDone
from assay.lab.planning import make_plan
from assay.lab.store import Store
from assay.lab.units import Request

# A busy machine is no failure: no property here is about time.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

FIXTURES = Path(__file__).parent / "fixtures"
OUTSIDE = Path(__file__).parent / "outside"


class Silent:
    """A listener that keeps what it was told."""

    def __init__(self) -> None:
        self.total = 0
        self.said: list[str] = []
        self.finished: list[tuple[str, bool]] = []
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        match event:
            case Started(total=total):
                self.total = total
            case UnitDone(unit=unit, reused=reused):
                self.finished.append((unit.key, reused))
            case Said(sentence=sentence):
                self.said.append(sentence)


class Bench:
    """Runs studies of one folder into one store folder."""

    def __init__(self, runs: Path, outside: Path = FIXTURES) -> None:
        self.runs = runs
        self.outside = str(outside)

    def study(self, name: str):
        return discovery.find(name, self.outside)

    def store(self, name: str) -> Store:
        return Store(self.runs, name)

    def plan(self, name: str, **request):
        return make_plan(self.study(name), Request(**{"preset": "smoke", **request}), self.store(name))

    def run(self, name: str, *, jobs: int | None = 1, backend: str = "loky", address: str | None = None, **request):
        self.progress = Silent()
        options = Options(jobs, backend, address, self.outside)
        return runner.run(self.plan(name, **request), self.store(name), options, self.progress)

    def load(self, name: str, manifest):
        return results.load(self.store(name), self.study(name), manifest)

    def frame(self, name: str, manifest) -> pl.DataFrame:
        return self.load(name, manifest).frame


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path / "runs")


@pytest.fixture(scope="session")
def make_bench():
    return Bench


@pytest.fixture(scope="session")
def fixtures_folder():
    return FIXTURES


@pytest.fixture(scope="session")
def outside_folder():
    return OUTSIDE


@pytest.fixture
def coin_copy(tmp_path):
    """Copies of the coin study, each in a studies folder of its own, with some files rewritten."""
    made = 0

    def copy(**rewritten: str) -> Path:
        nonlocal made
        made += 1
        folder = tmp_path / f"studies{made}"
        shutil.copytree(OUTSIDE / "coin", folder / "coin", ignore=shutil.ignore_patterns("__pycache__"))
        for room, text in rewritten.items():
            (folder / "coin" / f"{room}.py").write_text(text)
        return folder

    return copy
