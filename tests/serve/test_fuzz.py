"""Whatever is sent, the server has an answer that is not an error of its own."""

from __future__ import annotations

import json
import re
import shutil
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.serve import queue as queues
from assay.serve.process import Ending

ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
WORDS = st.sampled_from(["swarm", "nothing", "", "..", "a/b", "walk", "smoke"]) | st.text(max_size=12)


class Nothing:
    """A worker that is done at once: what is sent here is not to be computed."""

    pid = 1

    def __init__(self, work):
        pass

    def follow(self, hear):
        return Ending({"status": "complete", "run": ""})

    def stop(self):
        pass


@pytest.fixture(scope="module")
def served(stored, open_client, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz") / "runs"
    shutil.copytree(stored, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queues, "Process", Nothing)
        with open_client(folder) as client:
            yield client


@pytest.fixture(scope="module")
def operations(served):
    """Every path and method of the schema with the names of its body, but for those that start a process at once."""
    document = served.get("/openapi.json").json()
    found = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody")
            name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2] if body else None
            names = list(document["components"]["schemas"][name]["properties"]) if name else []
            if not path.endswith("/report"):
                found.append((path, method, names))
    return found


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_request_is_an_error_of_the_server(served, operations, data):
    path, method, names = data.draw(st.sampled_from(operations))
    address = re.sub(r"\{\w+\}", lambda _: quote(data.draw(WORDS), safe=""), path)
    body = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(names, WORDS | ODD)) | ODD) if names else None
    query = data.draw(st.dictionaries(st.sampled_from(["a", "b", "seed", "neurons", "x"]), WORDS, max_size=2))
    content = json.dumps(body).encode() if names else b""
    headers = {"content-type": "application/json"} if names else {}
    answer = served.request(method.upper(), address, params=query, content=content, headers=headers)
    assert answer.status_code < 500, (method, address, body, answer.text)
    if answer.status_code >= 400:
        assert "detail" in answer.json()


def test_requests_made_from_the_schema_are_answered(served):
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    schema = schemathesis.openapi.from_dict(served.get("/openapi.json").json())
    from schemathesis import GenerationMode

    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/report"):
            continue

        @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
        def answered(case):
            request = case.as_transport_kwargs(base_url="http://127.0.0.1")
            kept = {
                name: request[name]
                for name in ("method", "url", "params", "json", "content", "headers")
                if name in request
            }
            kept["headers"] = {**(kept.get("headers") or {}), "host": "127.0.0.1"}
            assert served.request(**kept).status_code < 500

        answered()
