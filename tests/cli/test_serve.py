"""`assay serve` from the shell: what it refuses, and a server that starts, answers and stops."""

from __future__ import annotations

import builtins
import signal
import subprocess
import sys
import urllib.request

import pytest


def test_without_the_extra_one_sentence_names_it(assay, monkeypatch):
    known = builtins.__import__

    def without(name, *arguments, **options):
        if name.partition(".")[0] in ("uvicorn", "fastapi"):
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
        return known(name, *arguments, **options)

    for module in [name for name in sys.modules if name.startswith("assay.serve")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without)
    status, _, told = assay("serve")
    assert status == 2
    assert told == "assay: the live lab needs the extra 'web' (pip install 'assay-lab[web]')\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--host", "0.0.0.0"), "a token is needed"),
        (("--port", "99999"), "no port"),
        (("--token", "short"), "too short"),
        (("--studies", "nowhere"), "does not exist"),
        (("--host", "no.such.host.example", "--token", "new"), "cannot listen"),
    ],
)
def test_bad_input_is_one_sentence(assay, tmp_path, words, sentence):
    pytest.importorskip("fastapi", reason="the live lab needs the extra web")
    status, _, told = assay("serve", "--runs", str(tmp_path), *words)
    assert status == 2
    assert sentence in told
    assert told.count("\n") == 1


def test_a_server_starts_answers_and_stops(tmp_path):
    pytest.importorskip("fastapi", reason="the live lab needs the extra web")
    words = [sys.executable, "-m", "assay.cli", "serve", "--port", "0", "--runs", str(tmp_path / "runs")]
    server = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        address = server.stderr.readline().partition(" at ")[2].split()[0]
        with urllib.request.urlopen(address, timeout=60) as page:
            assert b"the live lab" in page.read()
        second = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert second.returncode == 2
        assert "another server is at work" in second.stderr
        server.send_signal(signal.SIGINT)
        assert server.wait(60) in (0, 130, -signal.SIGINT)
    finally:
        server.kill()
        server.communicate()
