"""Jobs: one at a time in a process of its own, cancelled, killed, interrupted and taken up again."""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from pathlib import Path
from typing import ClassVar

import pytest

from assay.serve import queue as queues
from assay.serve.jobs import Job
from assay.serve.journal import Journal
from assay.serve.process import Ending, Process
from assay.serve.queue import Full, Queue

OUTSIDE = str(Path(__file__).parent / "outside")
ASKED = {"study": "swarm", "preset": "smoke"}


def start(client, **change):
    answer = client.post("/api/jobs", json={**ASKED, **change})
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def until(client, id, what, seconds=60.0):
    end = time.monotonic() + seconds
    while not what(job := client.get(f"/api/jobs/{id}").json()):
        assert time.monotonic() < end, job
        time.sleep(0.03)
    return job


class TestWorkers:
    """With real processes: what they cost is a few seconds each, so each test does several things."""

    def test_runs_one_after_another_cancel_and_verdicts(self, client, finished):
        first = start(client, set={"level": 0.45, "loud": True}, name="mine")
        second = start(client, set={"delay": 8})
        third = start(client)
        assert client.get(f"/api/jobs/{second}").json()["state"] == "waiting"
        assert client.delete(f"/api/jobs/{third}").status_code == 409
        assert client.post(f"/api/jobs/{third}/resume").status_code == 409
        assert client.post(f"/api/jobs/{third}/cancel").json()["state"] == "cancelled"

        done = finished(client, first)
        assert (done["state"], done["verdicts"], done["done"], done["share"]) == ("complete", {"holds": 3}, 4, 1.0)
        assert client.get(f"/api/runs/{done['run']}").json()["name"] == "mine"

        at_work = until(client, second, lambda job: job["metrics"])
        assert at_work["metrics"][0]["metric"] == "height"
        assert client.get("/api/studies").status_code == 200, "the server answers meanwhile"
        client.post(f"/api/jobs/{second}/cancel")
        ended = finished(client, second)
        assert ended["state"] == "cancelled"
        assert client.get(f"/api/runs/{ended['run']}").json()["status"] == "interrupted"
        assert client.delete(f"/api/jobs/{second}").json() == {"forgotten": second}
        assert client.get(f"/api/jobs/{second}").status_code == 404

    def test_a_killed_worker_is_told_and_can_be_taken_up_again(self, client, finished):
        id = start(client, set={"delay": 1.0})
        job = until(client, id, lambda job: job["done"] >= 1)
        os.kill(job["pid"], signal.SIGKILL)
        ended = finished(client, id)
        assert ended["state"] == "failed"
        assert "was killed (SIGKILL)" in ended["message"]
        assert client.get(f"/api/runs/{ended['run']}").json()["status"] == "interrupted"
        again = client.post(f"/api/jobs/{id}/resume").json()
        done = finished(client, again["id"])
        assert done["state"] == "complete"
        assert done["reused"] >= 1

    def test_an_error_in_a_study_is_shown_with_its_place(self, client, finished):
        done = finished(client, start(client, set={"ends": "raises"}))
        assert done["state"] == "failed"
        assert "the points lost their way" in done["message"]
        assert "study.py" in done["message"]
        assert done["failures"] == 3

    def test_a_server_that_stops_interrupts_and_the_next_one_resumes(self, runs, open_client, finished):
        with open_client(runs) as client:
            id = start(client, set={"delay": 1.0})
            waiting = start(client, set={"delay": 2.0})
            until(client, id, lambda job: job["run"])
        with open_client(runs) as client:
            job = client.get(f"/api/jobs/{id}").json()
            assert job["state"] == "interrupted"
            assert client.get(f"/api/jobs/{waiting}").json()["state"] == "interrupted"
            assert client.get(f"/api/runs/{job['run']}").json()["status"] == "interrupted"
            again = client.post(f"/api/jobs/{id}/resume").json()
            assert finished(client, again["id"])["state"] == "complete"


def test_a_worker_ends_with_the_server_that_started_it(tmp_path):
    heard = []
    asked = {"preset": "smoke", "set": {"delay": 20}, "jobs": 1}
    work = {"kind": "run", "study": "swarm", "request": asked, "runs": str(tmp_path / "runs"), "studies": OUTSIDE}
    worker = Process(work)

    def hear(told):
        heard.append(told)
        if told["event"] == "started":
            worker._popen.stdin.close()  # which is what it sees when the server is killed

    assert worker.follow(hear).answer == {"event": "answer", "status": "interrupted"}
    assert not [told for told in heard if told["event"] == "unit"]


def test_a_server_that_was_killed_left_runs_that_the_next_one_marks(runs, open_client):
    from assay import lab

    run = lab.runs(runs=runs)[-1]
    run.manifest.status = "running"
    run.store.write_manifest(run.manifest)
    job = Job.asked("run", "A swarm", {"kind": "run", "study": "swarm", "request": {"preset": "smoke"}})
    job.begin(1)
    job.run = run.id
    Journal(runs / ".serve").write([job])
    with open_client(runs) as client:
        assert client.get(f"/api/jobs/{job.id}").json()["state"] == "interrupted"
        assert client.get("/api/runs").json()[0]["status"] == "interrupted"


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1}', '[{"id": "x"}]'])
def test_a_damaged_journal_is_an_empty_one(tmp_path, text):
    (tmp_path / "jobs.json").write_text(text)
    assert Journal(tmp_path).read() == []


class Fake:
    """A worker that does nothing until it is told to end."""

    made: ClassVar[list[Fake]] = []

    def __init__(self, work):
        import threading

        self.work, self.pid, self.ends = work, 12345, threading.Event()
        self.answer, self.stopped = {"status": "complete", "run": "r"}, False
        Fake.made.append(self)

    def follow(self, hear):
        hear({"event": "started", "run": "r", "total": 2, "stored": 0})
        hear({"event": "nothing that is known"})
        self.ends.wait(20)
        return Ending(None, "it vanished") if self.answer is None else Ending(self.answer)

    def stop(self):
        self.stopped, self.answer = True, {"status": "interrupted"}
        self.ends.set()


@pytest.fixture
def line(tmp_path, monkeypatch):
    Fake.made = []
    monkeypatch.setattr(queues, "Process", Fake)
    told, orphans = [], []

    def orphaned(run):
        time.sleep(0.05)  # long enough for whoever looks meanwhile
        orphans.append(run)

    made = Queue(Journal(tmp_path), told.append, orphaned)
    made.told, made.orphans = told, orphans
    made.start()
    yield made
    made.stop()


def eventually(what, seconds=10.0):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.005)


def job(name="a"):
    return Job.asked("run", name, {"kind": "run", "study": name, "request": {}})


class TestQueue:
    def test_one_at_a_time_in_order(self, line):
        jobs = [job(name) for name in "abc"]
        for each in jobs:
            line.add(each)
        for number, each in enumerate(jobs):
            eventually(lambda n=number: len(Fake.made) == n + 1)
            eventually(lambda e=each: e.run == "r")
            assert [other.state for other in jobs].count("running") == 1
            Fake.made[number].ends.set()
            eventually(lambda e=each: e.state == "complete")
        assert [each["id"] for each in line.jobs()] == [each.id for each in reversed(jobs)]
        assert {document["id"] for document in line.told} == {each.id for each in jobs}

    def test_a_worker_that_vanishes_is_told(self, line):
        line.add(mine := job())
        eventually(lambda: mine.run == "r")
        Fake.made[0].answer = None
        Fake.made[0].ends.set()
        eventually(lambda: mine.state == "failed")
        assert line.orphans == ["r"], "the run is known to be interrupted before the job is over"
        assert mine.message == "it vanished"

    def test_what_waits_is_cancelled_without_a_process(self, line):
        line.add(first := job())
        line.add(second := job())
        line.cancel(second)
        assert second.state == "cancelled"
        eventually(lambda: first.run == "r")
        line.cancel(first)
        eventually(lambda: first.state == "cancelled")
        assert len(Fake.made) == 1
        assert Fake.made[0].stopped

    def test_a_line_has_an_end(self, line, monkeypatch):
        monkeypatch.setattr(queues, "MOST_WAITING", 2)
        for _ in range(3):
            line.add(job())
            eventually(lambda: Fake.made)
        with pytest.raises(Full, match="wait already"):
            line.add(job())


def test_a_worker_that_cannot_be_started_is_told(line, monkeypatch):
    def none(work):
        raise OSError(11, "no more processes")

    monkeypatch.setattr(queues, "Process", none)
    line.add(mine := job())
    eventually(lambda: mine.state == "failed")
    assert "no more processes" in mine.message


def test_old_jobs_are_forgotten(line, monkeypatch):
    monkeypatch.setattr(queues, "MOST_KEPT", {"run": 2})
    for _ in range(4):
        line.add(mine := job())
        line.cancel(mine)
        eventually(lambda each=mine: each.over)
    assert len(line.jobs()) == 3


def test_a_job_keeps_the_shape_of_a_long_curve():
    mine = job()
    for value in range(1000):
        mine.hear({"event": "measured", "unit": "u", "metric": "loss", "value": float(value)})
    (curve,) = mine.document()["metrics"]
    assert len(curve["series"]) <= 121
    assert (curve["series"][0], curve["series"][-1]) == (0.0, 999.0)
    assert curve["series"] == sorted(curve["series"])


def test_pages_are_told_of_every_change(address):
    with urllib.request.urlopen(f"{address}api/events", timeout=30) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.readline() == b"event: jobs\n"
        known = {each["id"] for each in json.loads(stream.readline().removeprefix(b"data: "))}
        body = json.dumps({**ASKED, "set": {"level": 0.3}}).encode()
        asked = urllib.request.Request(f"{address}api/jobs", body, {"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            id = json.load(answer)["id"]
        states = []
        while not states or states[-1] != "complete":
            line = stream.readline()
            if line.startswith(b"data: "):
                document = json.loads(line.removeprefix(b"data: "))
                assert document["id"] not in known
                states += [document["state"]] if document["id"] == id else []
        assert "running" in states
