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


def routes(client):
    """Every path and method of the schema, but for those that start a process of their own."""
    paths = client.get("/openapi.json").json()["paths"]
    return [(path, method) for path, methods in paths.items() for method in methods if not path.endswith("/report")]


def fields(client, path, method):
    """The names that a request's body has by the schema."""
    document = client.get("/openapi.json").json()
    body = document["paths"][path][method].get("requestBody")
    if body is None:
        return []
    name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    return list(document["components"]["schemas"][name]["properties"])


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_request_is_an_error_of_the_server(served, data):
    path, method = data.draw(st.sampled_from(routes(served)))
    address = re.sub(r"\{\w+\}", lambda _: quote(data.draw(WORDS), safe=""), path)
    names = fields(served, path, method)
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

        @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), database=None)
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
