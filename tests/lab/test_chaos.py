"""Faults at random moments, for less than a minute; `make chaos N=1000` goes on for longer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).with_name("chaos.py")
here = pytest.mark.skipif(
    not hasattr(sys, "addaudithook") or sys.platform != "linux", reason="the harness forks and mounts"
)

#: A lab that throws finished units away before it looks whether they are stored.
WASTEFUL = """
from assay.lab import runner

stored, rerun, now = runner._stored, chaos.Trial.rerun, []

def throw_away(store, unit, tell):
    if {when}:
        store.discard(unit.key)
    return stored(store, unit, tell)

def last_run(trial):
    now.append("last")
    try:
        return rerun(trial)
    finally:
        now.clear()

runner._stored, chaos.Trial.rerun = throw_away, last_run
"""
WHEN = {
    "always": "True",
    "in the last run": "now",
    "after a run that did not complete": "any(run.status != 'complete' for run in store.readable_manifests()[:-1])",
}


def suffer(*words: str, program: tuple[str, ...] = (str(HARNESS),), status: int = 0) -> dict[str, str]:
    """What the harness says of each fault that happened; it ends with an error when anything is not right."""
    command = [sys.executable, "-W", "ignore", *program, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == status, done.stdout + done.stderr
    rows = re.findall(r"^\| (.+?) \| ([1-9]\d*) \| [^|]* \| ([^|]*?) \| \d+ \|$", done.stdout, re.M)
    return {name: after for name, _, after in rows}


def in_the_harness(words: str) -> tuple[str, ...]:
    """A program that is the harness, with something in it or in the lab exchanged."""
    start = f"import sys; sys.path.insert(0, {str(HARNESS.parent)!r}); import chaos"
    return ("-c", f"{start}\n{words}\nsys.exit(chaos.main())")


@here
def test_nothing_finished_is_lost_and_nothing_counts_twice():
    found = suffer("--faults", "40", "--seconds", "25", "--without", "ray|worker", "--seed", "3")
    assert len(found) >= 3
    assert set(found.values()) == {"units intact, rerun equal"}


@here
@pytest.mark.parametrize("when", WHEN)
def test_a_lab_that_throws_finished_work_away_is_caught(when):
    mutant = in_the_harness(WASTEFUL.format(when=WHEN[when]))
    found = suffer("--faults", "16", "--without", "ray|worker", "--seed", "3", program=mutant, status=1)
    assert sum("NOT RIGHT" in after for after in found.values()) >= 3


@here
@pytest.mark.parametrize("fault", ["killed at a random time", pytest.param("worker killed", marks=pytest.mark.slow)])
def test_a_fault_that_met_nobody_is_not_counted(fault):
    harmless = in_the_harness("import os; os.kill = lambda process, number: None")
    assert suffer("--faults", "1", "--seconds", "3", "--only", fault, program=harmless) == {}


@here
def test_a_run_that_does_not_end_as_it_should_is_not_right():
    strict = in_the_harness("chaos.FAULTS['file removed'].ends = ('refused',)")
    found = suffer("--faults", "1", "--only", "file removed", program=strict, status=1)
    assert found == {"file removed": "1 NOT RIGHT"}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["worker killed", "ray node killed"])
def test_a_run_survives_those_who_compute_for_it(fault):
    if "ray" in fault:
        pytest.importorskip("ray", reason="ray is not installed: it is in the extra cluster")
    assert suffer("--faults", "1", "--only", fault) == {fault: "units intact, rerun equal"}
