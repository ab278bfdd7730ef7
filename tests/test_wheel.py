"""The wheel installs into an empty environment and works outside the checkout."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(words, folder, *, status=0):
    """What a command says: on standard output, or on standard error where it is to fail."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=1200)
    assert done.returncode == status, f"{words}\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}"
    return done.stderr if status else done.stdout


@pytest.mark.slow
def test_wheel_works_outside_the_checkout(tmp_path):
    run([sys.executable, "-m", "build", "--outdir", str(tmp_path / "dist"), str(ROOT)], tmp_path)
    (wheel,) = (tmp_path / "dist").glob("assay_lab-*.whl")
    (source,) = (tmp_path / "dist").glob("assay_lab-*.tar.gz")
    with tarfile.open(source) as packed:
        assert "CHANGELOG.md" in {Path(name).name for name in packed.getnames()}
    home = tmp_path / "home"
    home.mkdir()
    run([sys.executable, "-m", "venv", str(tmp_path / "venv")], home)
    python = str(tmp_path / "venv/bin/python")
    assay = str(tmp_path / "venv/bin/assay")
    constraints = ROOT / "constraints.txt"
    (torch,) = [line for line in constraints.read_text().splitlines() if line.startswith("torch==")]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", str(constraints)]
    run([*pip, torch], home)

    # The core alone: methods work, and the command says what it lacks.
    run([*pip, str(wheel)], home)
    script = (
        "import torch; from assay.methods import linearized; print(linearized(torch.nn.Linear(3, 2))(torch.ones(1, 3)))"
    )
    assert "tensor" in run([python, "-c", script], home)
    assert "the extra 'lab'" in run([assay, "list"], home, status=2)

    # With the laboratory.
    run([*pip, f"assay-lab[lab] @ {wheel.as_uri()}"], home)
    studies = json.loads(run([assay, "list", "--json"], home))
    assert "feature-emergence" in [study["study"] for study in studies]
    document = json.loads(run([assay, "run", "feature-emergence", "--preset", "smoke", "--json"], home))
    assert document["runs"][0]["status"] == "complete"
    index = Path(run([assay, "report", "--export", "none"], home).strip())
    assert (home / index).exists()
    assert (home / "report/feature-emergence.html").stat().st_size > 100_000
    assert 'id="differs"' in (home / "report/feature-emergence.html").read_text(), (
        "the words of docs/ are installed too"
    )
