"""The proxy on real sockets, before a server that only says what it was sent."""

import json
import logging
import socket
import time
from unittest.mock import ANY

import httpx
import pytest

from assay.apps.proxy.messages import request_of
from assay.apps.proxy.settings import Settings
from assay.apps.proxy.shortening import Shortener
from assay.apps.proxy.usage import in_stream

LONG = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(60))
QUESTION = "What is the secret of the story?"
CHAT = {"model": "tiny", "messages": [{"role": "user", "content": LONG}, {"role": "user", "content": QUESTION}]}
KEY = {"authorization": "Bearer sk-very-secret"}


def post(address, body, path="/v1/chat/completions", **options):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{address}{path}", content=content, timeout=60, **options)


def test_short_requests_go_through_byte_for_byte(proxy, upstream):
    address = proxy()
    odd = b'{"model":"tiny",  "messages" : [{"role":"user","content":"Caf\\u00e9?"}], "odd": [1e3, null]}'
    made = post(address, odd, headers={**KEY, "x-own": "1", "content-type": "application/json"})
    assert made.status_code == 200
    assert upstream.bodies == [odd]
    sent = upstream.headers[0]
    assert (sent["authorization"], sent["x-own"]) == ("Bearer sk-very-secret", "1")
    assert "x-assay-tokens-before" not in made.headers
    assert made.json()["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert httpx.get(f"{address}/v1/models").json()["data"][0]["id"] == "tiny"


@pytest.mark.parametrize("body", [b"not json" * 100, b"[1]" + b" " * 300, json.dumps({"x": LONG}).encode()])
def test_what_is_no_request_is_the_upstreams_to_refuse(proxy, upstream, body):
    post(proxy(), body)
    assert upstream.bodies == [body]


def test_long_requests_are_shortened_and_told_of(proxy, upstream):
    system = {"role": "system", "content": f"Be brief. {LONG}"}
    tool = {"role": "tool", "tool_call_id": "7", "content": LONG}
    body = {**CHAT, "messages": [system, *CHAT["messages"][:1], tool, CHAT["messages"][1]], "temperature": 0}
    made = post(proxy(), body)
    sent = json.loads(upstream.bodies[0])
    assert sent["messages"][0] == system
    assert sent["messages"][-1]["content"] == QUESTION
    assert {**sent, "messages": 0} == {**body, "messages": 0}
    assert {key: sent["messages"][2][key] for key in ("role", "tool_call_id")} == {"role": "tool", "tool_call_id": "7"}
    short = [sent["messages"][place]["content"] for place in (1, 2)]
    kept = [part for text in short for part in text.split("\n…\n")]
    assert all(part.strip("…\n ") in LONG for part in kept)
    before, after = (int(made.headers[f"x-assay-tokens-{when}"]) for when in ("before", "after"))
    assert before > 3 * 700
    assert after < before - 2 * 700 + 64 + 20
    assert float(made.headers["x-assay-filter-seconds"]) > 0
    assert made.json()["usage"]["assay"]["tokens_after"] == after
    assert made.json()["usage"]["prompt_tokens"] == 7


def test_a_long_last_turn_keeps_its_beginning_and_its_question(proxy, upstream):
    post(proxy(), {"model": "tiny", "messages": [{"role": "user", "content": f"Read on. {LONG}\n\n{QUESTION}"}]})
    sent = json.loads(upstream.bodies[0])["messages"][0]["content"]
    assert sent.startswith("Read on. This is")
    assert sent.endswith(f"quiet story.\n\n{QUESTION}")
    assert "…" in sent
    assert len(sent) < len(LONG) / 2


def test_a_long_last_turn_stays_whole_where_that_is_wished(proxy, upstream):
    turn = {"role": "user", "content": f"Read on. {LONG}\n\n{QUESTION}"}
    alone, behind = ({**CHAT, "messages": messages} for messages in ([turn], [CHAT["messages"][0], turn]))
    wish = {"x-assay-whole-turn": "5000"}
    post(proxy(), alone, headers=wish)
    post(proxy(whole_turn=5000), alone)
    assert upstream.bodies == [json.dumps(alone).encode()] * 2, "nothing else may be shortened"
    made = post(proxy(), behind, headers=wish)
    post(proxy(), behind)
    asked, usual = (json.loads(body)["messages"] for body in upstream.bodies[2:])
    assert asked[1] == turn
    assert len(asked[0]["content"]) < len(LONG) / 2, "the filter is asked by the end of the turn"
    assert int(made.headers["x-assay-tokens-after"]) < int(made.headers["x-assay-tokens-before"])
    assert len(usual[1]["content"]) < len(LONG) / 2
    assert not any(name.startswith("x-assay") for sent in upstream.headers for name in sent)


@pytest.mark.parametrize("whole", [48, 1000])
@pytest.mark.parametrize("size", [10, 49, 60, 90, 300])
def test_nothing_of_a_last_turn_is_said_twice(size, whole):
    """Tokens of one character, and a line's end far before the question: beginning and end of a turn never overlap."""
    text = "ab\n" + "".join(chr(ord("a") + i % 26) for i in range(size - 3))
    settings = Settings("http://x/v1", whole_turn=48, before=8, question=40)
    body = {"messages": [{"role": "user", "content": text}]}
    made = request_of(body, True, settings, lambda given: list(range(len(given))), whole)
    assert text.endswith(made.question)
    assert size > 80 or made.question == text or size > whole
    for slot in made.long:
        assert size > whole
        assert 8 <= slot.begin < slot.end <= size - 40
        assert made.question == text[slot.end :]


def test_completions_and_parts_are_shortened_too(proxy, upstream):
    address = proxy()
    post(address, {"model": "tiny", "prompt": f"{LONG}\n{QUESTION}"}, "/v1/completions")
    post(address, {"model": "tiny", "prompt": [f"{LONG}\n{QUESTION}"]}, "/v1/completions")
    first, second = (json.loads(body)["prompt"] for body in upstream.bodies)
    assert first == second[0]
    assert len(first) < len(LONG) / 2
    assert first.endswith(QUESTION)
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    parts = [{"type": "text", "text": LONG}, picture, {"type": "text", "text": QUESTION}]
    post(address, {"model": "tiny", "messages": [{"role": "user", "content": parts}]})
    sent = json.loads(upstream.bodies[2])["messages"][0]["content"]
    assert sent[1:] == parts[1:]
    assert len(sent[0]["text"]) < len(LONG) / 2


def test_headers_switch_it_off_or_set_the_budget(proxy, upstream):
    address, body = proxy(), json.dumps(CHAT).encode()
    post(address, body, headers={"x-assay-filter": "off"})
    assert upstream.bodies[0] == body
    made = [post(address, body, headers={"x-assay-keep": str(keep)}) for keep in (64, 300)]
    assert int(made[0].headers["x-assay-tokens-after"]) + 100 < int(made[1].headers["x-assay-tokens-after"])
    assert not any(name.startswith("x-assay") for sent in upstream.headers for name in sent)
    wrong = {"x-assay-keep": ("many", "3"), "x-assay-filter": ("perhaps",), "x-assay-whole-turn": ("47", "-1")}
    for name, value in ((name, value) for name, values in wrong.items() for value in values):
        made = post(address, body, headers={name: value})
        assert made.status_code == 400
        assert value in made.json()["error"]["message"]


def test_streams_come_as_they_are_made(proxy, upstream):
    upstream.slow = 0.3
    with httpx.stream("POST", f"{proxy()}/v1/chat/completions", json={**CHAT, "stream": True}, timeout=60) as made:
        times = [time.monotonic() for _ in made.iter_raw()]
        assert int(made.headers["x-assay-tokens-after"]) < 200
        assert made.headers["content-type"].startswith("text/event-stream")
    assert len(times) >= 3
    assert times[-1] - times[0] > 0.3


@pytest.mark.parametrize("cut", [1, 7, 10_000])
def test_events_with_a_usage_tell_tokens_and_others_pass_as_they_are(cut, in_a_loop):
    plain = [b": hello", b'data: {"usage":  null, "choices": []}', b"", b"data: [DONE]", b'data: "usage"', b"event: x"]
    counted = b'data: {"choices": [], "usage": {"total_tokens": 10}}\r'
    given = b"\n".join([*plain, counted, b"", b"the end without a line's end"])

    async def all_of_it():
        async def pieces():
            for begin in range(0, len(given), cut):
                yield given[begin : begin + cut]

        return b"".join([piece async for piece in in_stream(pieces(), {"tokens_after": 3})])

    made = in_a_loop(all_of_it())
    told = counted.replace(b"10}", b'10, "assay": {"tokens_after": 3}}')
    assert made == given.replace(counted, told)


def test_the_real_client_reads_plain_and_streamed_answers(proxy, upstream):
    openai = pytest.importorskip("openai", reason="the openai client is not installed")
    client = openai.OpenAI(base_url=f"{proxy()}/v1", api_key="sk-very-secret", max_retries=0)
    plain = client.chat.completions.create(model="tiny", messages=CHAT["messages"])
    assert plain.choices[0].message.content == "So it is."
    assert plain.usage.assay["tokens_before"] > plain.usage.assay["tokens_after"]
    pieces = client.chat.completions.create(model="tiny", messages=CHAT["messages"], stream=True)
    assert "".join(piece.choices[0].delta.content for piece in pieces) == "So it is."
    asked = {"stream": True, "stream_options": {"include_usage": True}}
    *_, last = client.chat.completions.create(model="tiny", messages=CHAT["messages"], **asked)
    assert (last.usage.total_tokens, last.usage.assay) == (10, {**plain.usage.assay, "filter_seconds": ANY})
    *_, last = client.chat.completions.create(model="tiny", messages=CHAT["messages"][1:], **asked)
    assert not hasattr(last.usage, "assay"), "nothing was shortened"
    assert [model.id for model in client.models.list()] == ["tiny"]
    with pytest.raises(openai.NotFoundError, match="no such model"):
        client.chat.completions.create(model="missing", messages=CHAT["messages"])


def test_upstream_failures_come_back_as_they_are(proxy, upstream):
    made = post(proxy(), {**CHAT, "model": "missing"})
    assert (made.status_code, made.content) == (404, b'{"error": {"message": "no such model"}}')
    assert made.headers["x-odd"] == "yes"
    made = post(proxy(upstream="http://127.0.0.1:9/v1"), CHAT)
    assert made.status_code == 502
    assert made.json()["error"]["message"] == "the upstream server at http://127.0.0.1:9 cannot be reached"
    upstream.slow = 3.0
    made = post(proxy(read_seconds=0.3), CHAT)
    assert made.status_code == 504
    assert made.json()["error"]["type"] == "upstream_timeout"


def in_pieces(size):
    """A body whose length no header tells."""
    for _ in range(0, size, 2**16):
        yield b"x" * 2**16


@pytest.mark.parametrize("body", [bytes, in_pieces], ids=["its length told", "in pieces"])
def test_a_body_of_fifty_megabytes_is_refused(proxy, upstream, body):
    made = httpx.post(f"{proxy()}/v1/completions", content=body(50 * 10**6), timeout=60)
    assert made.status_code == 413
    assert made.json()["error"]["message"] == "the request is larger than the 32 MB that this proxy takes"
    assert upstream.bodies == []


def test_a_body_is_refused_while_it_is_on_its_way_and_the_answer_is_not_lost(proxy):
    """The answer is there with most of the body unsent; a client who sends the rest before reading gets it as well."""
    address = httpx.URL(proxy(largest=2**20))
    size = 40 * 2**20
    head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n".encode()
    with socket.create_connection((address.host, address.port), timeout=120) as client:
        client.sendall(head + bytes(2**16))
        made = client.recv(12)
        client.sendall(bytes(size - 2**16))
        while piece := client.recv(2**16):
            made += piece
    assert made.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in made
    assert json.loads(made.partition(b"\r\n\r\n")[2])["error"]["type"] == "request_too_large"


def test_the_largest_body_can_be_set(proxy, upstream):
    address = proxy(largest=2**20)
    made = post(address, b"x" * (2**20 + 1))
    assert made.status_code == 413
    assert "larger than the 1 MB" in made.json()["error"]["message"]
    assert upstream.bodies == []
    assert post(address, b"x" * 2**20).status_code == 500, "the upstream cannot read it, and says so"


def test_neither_prompts_nor_keys_are_logged(proxy, upstream, caplog, capfd):
    caplog.set_level(logging.DEBUG, logger="assay")
    address = proxy()
    post(address, CHAT, headers=KEY, params={"api-key": "hidden"})
    post(proxy(upstream="http://127.0.0.1:9/v1"), CHAT, headers=KEY)
    assert upstream.headers[0]["authorization"] == "Bearer sk-very-secret"
    out, err = capfd.readouterr()
    said = caplog.text + out + err
    assert "POST /v1/chat/completions 200" in said
    for secret in ("sentence number", "secret", "hidden", "sk-very"):
        assert secret not in said.replace("What is the secret", ""), secret


def test_a_filter_that_breaks_is_told_without_its_text(proxy, monkeypatch, upstream):
    def broken(*_):
        raise RuntimeError(f"cannot read '{LONG}'")

    monkeypatch.setattr(Shortener, "shorten", broken)
    made = post(proxy(), CHAT)
    assert made.status_code == 500
    assert made.json()["error"]["message"] == "the filter failed (RuntimeError)"
