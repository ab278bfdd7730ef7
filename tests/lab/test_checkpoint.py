"""Checkpoints inside a unit: what was kept comes back as it was, and a unit that was killed goes on from there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from assay import lab
from assay.lab import checkpoint
from assay.lab.recorder import Recorder

STUDY = '''"""A long unit that keeps its state."""

import os
import time

import torch
from pydantic import Field

from assay import lab


class Params(lab.Params):
    steps: int = Field(60, ge=1, description="steps of Adam")
    delay: float = Field(0.0, ge=0, description="seconds per step")
    log: str = Field("", description="a file that gets a line per step")


study = lab.Study(
    "long",
    title="A long unit",
    question="Does a unit that was killed go on?",
    source="the recorder",
    params=Params,
    presets={name: lab.Preset(seeds=2, cost="1 s") for name in ("smoke", "laptop", "paper")},
)


@study.arm("train", uses=("steps",))
def train(params, seeds, record):
    """Adam on a quadratic, with noise from a generator that travels with the state."""
    delay, log = float(os.environ.get("LONG_DELAY", 0)), os.environ.get("LONG_LOG")
    weights = seeds.normal("start", 5).requires_grad_()
    optimiser = torch.optim.Adam([weights], lr=0.1)
    noise = torch.Generator().manual_seed(7)
    begin = 0
    record(step=0, loss=weights.detach().square().sum(1))
    record.note(rate=0.1)
    if state := record.resume():
        begin, noise = state["step"], state["noise"]
        weights.data.copy_(state["weights"])
        optimiser.load_state_dict(state["optimiser"])
    for step in range(begin, params.steps):
        optimiser.zero_grad()
        shift = torch.rand(5, generator=noise)
        (weights - shift).square().sum().backward()
        optimiser.step()
        record(step=step + 1, loss=weights.detach().square().sum(1))
        record.progress(step + 1, params.steps)
        kept = {"step": step + 1, "weights": weights, "optimiser": optimiser.state_dict(), "noise": noise}
        record.checkpoint(lambda kept=kept: kept, seconds=0)
        if log:
            with open(log, "a") as file:
                file.write(f"{step}\\n")
        time.sleep(delay)
    record.array("weights", weights)
'''


@pytest.fixture
def studies(tmp_path):
    (tmp_path / "studies" / "long").mkdir(parents=True)
    (tmp_path / "studies" / "long" / "study.py").write_text(STUDY)
    return tmp_path / "studies"


def test_a_state_comes_back_as_it_was(tmp_path):
    generator = torch.Generator().manual_seed(3)
    torch.rand(5, generator=generator)
    state = {
        "tensor": torch.randn(3, 4, dtype=torch.float64),
        "half": torch.randn(3).bfloat16(),
        "shared": (twice := torch.arange(3)),
        "again": [twice, (1, 2.5, None, True, "é", float("inf"))],
        "array": np.arange(6).reshape(2, 3),
        "number": np.float64(0.1),
        "empty": {},
        7: "a whole number as a key",
        "generator": generator,
    }
    checkpoint.save(tmp_path, state, {"rows": "[]", "arrays": {}, "notes": {"a": 1}})
    loaded, recorded = checkpoint.load(tmp_path)
    assert list(loaded) == list(state)
    for name in ("tensor", "half", "shared"):
        assert torch.equal(loaded[name], state[name])
        assert loaded[name].dtype == state[name].dtype
    assert loaded["again"][1] == state["again"][1]
    assert isinstance(loaded["again"][1], tuple)
    assert np.array_equal(loaded["array"], state["array"])
    assert (loaded["number"], loaded["empty"], loaded[7]) == (0.1, {}, state[7])
    assert torch.equal(torch.rand(9, generator=loaded["generator"]), torch.rand(9, generator=generator))
    assert recorded["notes"] == {"a": 1}


def test_an_optimisers_state_comes_back(tmp_path):
    weights = torch.nn.Parameter(torch.ones(3))
    optimiser = torch.optim.Adam([weights], lr=0.1)
    weights.square().sum().backward()
    optimiser.step()
    checkpoint.save(tmp_path, optimiser.state_dict(), {})
    other = torch.optim.Adam([torch.nn.Parameter(torch.ones(3))], lr=0.5)
    other.load_state_dict(checkpoint.load(tmp_path)[0])
    assert other.param_groups[0]["lr"] == 0.1
    ours, theirs = optimiser.state_dict()["state"][0], other.state_dict()["state"][0]
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_what_cannot_be_kept_is_refused_by_name(tmp_path):
    with pytest.raises(TypeError, match=r"state\.model is a Linear"):
        checkpoint.save(tmp_path, {"model": torch.nn.Linear(2, 2)}, {})
    with pytest.raises(TypeError, match="keys"):
        checkpoint.save(tmp_path, {(1, 2): 3}, {})
    assert checkpoint.load(tmp_path) is None


def test_a_damaged_checkpoint_does_not_count_and_the_newest_is_the_only_one(tmp_path):
    checkpoint.save(tmp_path, {"step": 1}, {})
    checkpoint.save(tmp_path, {"step": 2}, {})
    (path,) = tmp_path.glob("*.safetensors")
    assert checkpoint.load(tmp_path)[0] == {"step": 2}
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert checkpoint.load(tmp_path) is None


def test_a_recorder_goes_on_where_it_was(tmp_path):
    def recorder():
        return Recorder([0, 1], columns={"k": 3}, room=tmp_path / "unit")

    first = recorder()
    first(step=1, loss=[0.1, float("nan")])
    first(step=1, at={"layer": "last"}, rank=[1, 2])
    first.array("weights", np.eye(2))
    first.note(rate=0.1)
    first.checkpoint({"step": 1}, seconds=0)
    first(step=2, loss=[9, 9])  # lost with the process
    second = recorder()
    second(step=1, loss=[5, 5])  # recorded again before it asks
    assert second.resume() == {"step": 1}
    second(step=2, loss=[0.3, 0.4])
    whole = recorder()
    whole(step=1, loss=[0.1, float("nan")])
    whole(step=1, at={"layer": "last"}, rank=[1, 2])
    whole(step=2, loss=[0.3, 0.4])
    assert second.frame().equals(whole.frame(), null_equal=True)
    assert second.notes == {"rate": 0.1}
    assert np.array_equal(second.arrays["weights"], np.eye(2))


def test_without_a_room_nothing_is_kept():
    record = Recorder([0])
    record.checkpoint(lambda: pytest.fail("called"), seconds=0)
    assert record.resume() is None
    record.progress(1, 2)
    with pytest.raises(ValueError, match="3 of 2"):
        record.progress(3, 2)


def test_checkpoints_are_not_written_more_often_than_asked(tmp_path):
    record = Recorder([0], room=tmp_path)
    record(loss=1.0)
    record.checkpoint(lambda: pytest.fail("called"), seconds=60)
    record.checkpoint({"step": 1}, seconds=0)
    record.checkpoint(lambda: pytest.fail("called"), seconds=60)
    assert record.resume() == {"step": 1}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_unit_goes_on_and_its_result_is_the_same_bit_for_bit(studies, tmp_path, jobs):
    whole = lab.run("long", preset="smoke", runs=tmp_path / "whole", studies=studies)
    log, runs = tmp_path / "log", tmp_path / "runs"
    command = [sys.executable, "-m", "assay.cli", "run", "long", "--preset", "smoke", "--runs", str(runs)]
    command += ["--studies", str(studies), "--jobs", str(jobs), "--backend", "loky"]
    slow = {**os.environ, "LONG_DELAY": "0.05", "LONG_LOG": str(log)}
    process = subprocess.Popen(command, env=slow, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 90
        while not log.exists() or len(log.read_text().split()) < 10:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before = len(log.read_text().split())
    (room,) = (runs / "long" / "checkpoints").iterdir()
    assert list(room.glob("*.safetensors"))
    heard: list[lab.Event] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONG_LOG", str(log))
        resumed = lab.run("long", preset="smoke", runs=runs, studies=studies, on_event=heard.append)
    steps = [int(line) for line in log.read_text().split()]
    assert steps[before:][0] >= before - 1  # it did not start again
    assert steps[-1] == 59
    assert resumed.measurements.equals(whole.measurements, null_equal=True)
    ours, theirs = (run.results.array("weights") for run in (resumed, whole))
    assert ours.tobytes() == theirs.tobytes()
    assert not room.exists()
    shares = [event.done / event.total for event in heard if isinstance(event, lab.Advanced)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
