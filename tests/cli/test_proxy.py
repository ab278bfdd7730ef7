"""What `assay proxy` refuses before it listens, in one sentence each; the server itself is tested with its app."""

import ipaddress
import re
import socket

import pytest

pytest.importorskip("transformers", reason="the proxy's filter needs the extra llm")
pytest.importorskip("fastapi", reason="the proxy needs the extra web")


def test_a_port_that_is_taken_is_told_before_a_model_is_loaded(assay):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, _, err = assay("proxy", "--upstream", "http://127.0.0.1:9/v1", "--port", str(taken.getsockname()[1]))
    assert status == 2
    assert "cannot listen on 127.0.0.1" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--upstream", "localhost:8000"], "--upstream takes an address such as"),
        (["--upstream", "http://x/v1", "--keep", "3"], "keep must be at least 64"),
        (["--upstream", "http://x/v1", "--whole-turn", "100"], "whole_turn must be at least 320, not 100"),
        (["--upstream", "http://x/v1", "--layer", "low", "--filter-model", "FOLDER"], "--layer takes a number"),
        (["--upstream", "http://x/v1", "--layer", "9", "--filter-model", "FOLDER"], "layer must lie between 0 and 2"),
        (["--upstream", "http://x/v1", "--filter-model", "./none"], "the model './none' is not here"),
        (["--upstream", "http://x/v1", "--port", "99999"], "Invalid value for '--port'"),
    ],
)
def test_bad_words_get_one_sentence(assay, words, sentence, folder):
    status, _, err = assay("proxy", "--port", "0", *(str(folder) if word == "FOLDER" else word for word in words))
    assert status == 2, err
    assert sentence in err.strip().splitlines()[-1]
    assert "Traceback" not in err


def test_it_listens_on_this_machine_alone_with_the_first_layers_of_its_filter(assay, folder, monkeypatch):
    from assay.apps.proxy import running

    found = {}

    def serve(settings, shortener, taken):
        found.update(host=taken.getsockname()[0], model=shortener.index.model, settings=settings)

    monkeypatch.setattr(running, "serve", serve)
    words = ["--upstream", "http://127.0.0.1:9/v1", "--port", "0", "--filter-model", str(folder), "--layer", "1"]
    status, _, err = assay("proxy", *words)
    assert status == 0, err
    assert ipaddress.ip_address(found["host"]).is_loopback
    names = " ".join(name for name, _ in found["model"].named_parameters())
    assert set(re.findall(r"layers\.(\d+)\.", names)) == {"0", "1"}, "the folder's model has three"
    assert "lm_head" not in names
