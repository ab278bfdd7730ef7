"""A toy study, a folder with stored runs of it, and the application on them: in process, and as a real server."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.testclient import TestClient

from assay import lab
from assay.serve.app import create_app
from assay.serve.settings import Settings

OUTSIDE = Path(__file__).parent / "outside"


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    """A folder with two runs that differ in one parameter, and a map of four cells. Tests copy it."""
    folder = tmp_path_factory.mktemp("stored") / "runs"
    options = {"jobs": 1, "runs": folder, "studies": OUTSIDE}
    lab.run("swarm", "smoke", name="low", set={"level": 0.3}, **options).claims  # noqa: B018 (its verdicts are kept)
    lab.run("swarm", "smoke", name="high", set={"level": 0.6}, **options).claims  # noqa: B018
    vary = {"level": [0.2, 0.7], "points": [4, 8]}
    lab.sweep("swarm", vary, "C1", arms="walk,neurons", **options)
    return folder


@pytest.fixture
def runs(stored, tmp_path):
    shutil.copytree(stored, tmp_path / "runs")
    return tmp_path / "runs"


@contextmanager
def opened(runs, **options):
    """The application as a client sees it from the same machine."""
    settings = Settings(runs, str(OUTSIDE), port=80, **options)
    with TestClient(create_app(settings), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def client(runs):
    with opened(runs) as client:
        yield client


@pytest.fixture(scope="session")
def open_client():
    return opened


@pytest.fixture
def ids(client):
    """The two stored runs by their names."""
    return {run["name"]: run["id"] for run in client.get("/api/runs").json()}


@pytest.fixture
def finished():
    """Wait until a job is over; returns it."""

    def wait(client, id, seconds=60.0):
        end = time.monotonic() + seconds
        while (job := client.get(f"/api/jobs/{id}").json())["state"] in ("waiting", "running"):
            assert time.monotonic() < end, f"job {id} does not end: {job}"
            time.sleep(0.05)
        return job

    return wait


@pytest.fixture(scope="session")
def address(stored, tmp_path_factory):
    """A real server on a copy of the stored runs, for browsers and streams."""
    folder = tmp_path_factory.mktemp("served") / "runs"
    shutil.copytree(stored, folder)
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    app = create_app(Settings(folder, str(OUTSIDE), port=port))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}/"
    app.state.hub.close()
    server.should_exit = True
    thread.join(timeout=30)
    listening.close()
