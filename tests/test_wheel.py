"""The wheel installs into an empty environment and works outside the checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(words, folder, **options):
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=1200, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.slow
def test_wheel_works_outside_the_checkout(tmp_path):
    run([sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path / "dist"), str(ROOT)], tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    home = tmp_path / "home"
    home.mkdir()
    run([sys.executable, "-m", "venv", str(tmp_path / "venv")], home)
    python = tmp_path / "venv/bin/python"
    constraints = ROOT / "constraints.txt"
    (torch,) = [line for line in constraints.read_text().splitlines() if line.startswith("torch==")]
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, torch], home)
    run([*pip, "-c", str(constraints), str(wheel)], home)
    assay = str(tmp_path / "venv/bin/assay")
    studies = json.loads(run([assay, "list", "--json"], home))
    assert "feature-emergence" in [study["study"] for study in studies]
    document = json.loads(run([assay, "run", "feature-emergence", "--preset", "smoke", "--json"], home))
    assert document["runs"][0]["status"] == "complete"
    index = Path(run([assay, "report", "--export", "none"], home).strip())
    assert (home / index).exists()
    assert (home / "report/feature-emergence.html").stat().st_size > 100_000
