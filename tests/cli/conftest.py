"""What tests of the command line share: the front door, and a run that is stored."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assay import cli

OUTSIDE = str(Path(__file__).parents[1] / "lab" / "outside")


@pytest.fixture
def assay(monkeypatch, capsys):
    """Call the front door with arguments; returns exit status, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["assay", *arguments])
        capsys.readouterr()
        try:
            cli.main()
        except SystemExit as end:
            status = int(end.code or 0)
        else:
            status = 0
        out, err = capsys.readouterr()
        return status, out, err

    return call


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    """A runs folder with a run of the coin, and what it printed."""
    runs = tmp_path_factory.mktemp("stored") / "runs"
    command = [sys.executable, "-m", "assay.cli", "run", "coin", "--studies", OUTSIDE, "--preset", "smoke", "--json"]
    done = subprocess.run([*command, "--runs", str(runs)], capture_output=True, text=True, check=True)
    return runs, done.stdout, done.stderr


@pytest.fixture
def runs(stored, tmp_path):
    """A copy of it that a test may damage."""
    shutil.copytree(stored[0], tmp_path / "runs")
    return tmp_path / "runs"
