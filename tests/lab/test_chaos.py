"""Faults at random moments, for less than a minute; `make chaos N=1000` goes on for longer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).with_name("chaos.py")


def suffer(*words: str) -> dict[str, str]:
    """What the harness says of each fault that happened; it ends with an error when anything is not right."""
    command = [sys.executable, "-W", "ignore", str(HARNESS), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^\| (.+?) \| ([1-9]\d*) \| [^|]* \| ([^|]*?) \| \d+ \|$", done.stdout, re.M)
    return {name: after for name, _, after in rows}


@pytest.mark.skipif(not hasattr(sys, "addaudithook") or sys.platform != "linux", reason="the harness forks and mounts")
def test_nothing_finished_is_lost_and_nothing_counts_twice():
    found = suffer("--faults", "40", "--seconds", "25", "--without", "ray|worker", "--seed", "3")
    assert len(found) >= 3
    assert set(found.values()) == {"units intact, rerun equal"}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["worker killed", "ray node killed"])
def test_a_run_survives_those_who_compute_for_it(fault):
    if "ray" in fault:
        pytest.importorskip("ray", reason="ray is not installed: it is in the extra cluster")
    assert suffer("--faults", "1", "--only", fault) == {fault: "units intact, rerun equal"}
