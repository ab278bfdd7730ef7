"""The proxy on real sockets, before a server that only says what it was sent."""

import asyncio
import contextlib
import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from assay.apps.proxy.shortening import Cancelled, Shortener
from assay.apps.proxy.turns import Turns

LONG = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(60))
QUESTION = "What is the secret of the story?"
CHAT = {"model": "tiny", "messages": [{"role": "user", "content": LONG}, {"role": "user", "content": QUESTION}]}
KEY = {"authorization": "Bearer sk-very-secret"}


def in_a_loop_of_its_own(coroutine):
    """A browser of another test may have a loop running in this thread."""
    with ThreadPoolExecutor(1) as worker:
        return worker.submit(asyncio.run, coroutine).result()


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
    for name, value in (("x-assay-keep", "many"), ("x-assay-keep", "3"), ("x-assay-filter", "perhaps")):
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


def test_the_real_client_reads_plain_and_streamed_answers(proxy, upstream):
    openai = pytest.importorskip("openai", reason="the openai client is not installed")
    client = openai.OpenAI(base_url=f"{proxy()}/v1", api_key="sk-very-secret", max_retries=0)
    plain = client.chat.completions.create(model="tiny", messages=CHAT["messages"])
    assert plain.choices[0].message.content == "So it is."
    assert plain.usage.assay["tokens_before"] > plain.usage.assay["tokens_after"]
    pieces = client.chat.completions.create(model="tiny", messages=CHAT["messages"], stream=True)
    assert "".join(piece.choices[0].delta.content for piece in pieces) == "So it is."
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


def test_large_bodies_are_refused_before_they_are_read(proxy, upstream):
    address = proxy(largest=2**20)
    made = post(address, b"x" * (2**20 + 1))
    assert made.status_code == 413
    assert "larger than the 1 MB" in made.json()["error"]["message"]

    def piecewise():
        yield from [b"x" * 2**16] * 32

    # The connection may be closed while the client still writes.
    with contextlib.suppress(httpx.WriteError, httpx.RemoteProtocolError, httpx.ReadError):
        assert httpx.post(f"{address}/v1/completions", content=piecewise(), timeout=60).status_code == 413
    assert upstream.bodies == []


class Slow:
    """A pass that takes its time and looks whether it should go on."""

    def __init__(self, seconds):
        self.seconds, self.running, self.most, self.ended = seconds, 0, 0, []

    def __call__(self, shortener, request, keep, go_on=lambda: True):
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            end = time.monotonic() + self.seconds
            while time.monotonic() < end:
                if not go_on():
                    self.ended.append("early")
                    raise Cancelled
                time.sleep(0.02)
            return self.usual(shortener, request, keep, go_on)
        finally:
            self.running -= 1


@pytest.fixture
def slow(monkeypatch):
    def make(seconds):
        made = Slow(seconds)
        made.usual = Shortener.shorten
        monkeypatch.setattr(Shortener, "shorten", lambda *given: made(*given))
        return made

    return make


def test_twenty_at_once_pass_one_at_a_time_and_the_server_answers_meanwhile(proxy, upstream, monkeypatch):
    gate, inside, usual, most = threading.Event(), [], Shortener.shorten, []

    def watched(*given):
        inside.append(1)
        most.append(len(inside))
        assert gate.wait(120)
        try:
            return usual(*given)
        finally:
            inside.pop()

    monkeypatch.setattr(Shortener, "shorten", watched)
    address = proxy()

    async def storm():
        async with httpx.AsyncClient(timeout=120) as client:
            tasks = [asyncio.create_task(client.post(f"{address}/v1/chat/completions", json=CHAT)) for _ in range(20)]
            while (await client.get(f"{address}/assay/health")).json()["waiting"] < 19:
                await asyncio.sleep(0.05)
            short = {**CHAT, "messages": CHAT["messages"][1:]}
            quick = await client.post(f"{address}/v1/chat/completions", json=short)
            gate.set()
            return await asyncio.gather(*tasks), quick

    made, quick = in_a_loop_of_its_own(storm())
    assert {one.status_code for one in made} == {200}
    assert max(most) == 1
    assert quick.status_code == 200
    assert len(upstream.bodies) == 21
    assert upstream.bodies[0] == quick.request.content, "it did not wait for the others"


def test_clients_take_turns():
    """A greedy client asks three times before a modest one asks once."""
    turns, order = Turns(8), []

    async def ask(name, client):
        async with turns.turn(client):
            order.append(name)
            await asyncio.sleep(0)

    async def all_of_them():
        async with turns.turn("another"):
            names = [("greedy 1", "a"), ("greedy 2", "a"), ("gone", "a"), ("greedy 3", "a"), ("modest", "b")]
            tasks = {name: asyncio.create_task(ask(name, client)) for name, client in names}
            await asyncio.sleep(0)
            assert turns.waiting == 5
            tasks.pop("gone").cancel()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks.values())

    in_a_loop_of_its_own(all_of_them())
    assert order == ["greedy 1", "modest", "greedy 2", "greedy 3"]
    assert turns.waiting == 0


def test_a_full_queue_and_a_slow_filter_are_told(proxy, slow, upstream):
    slow(1.0)
    address = proxy(queue=1, filter_seconds=0.5)
    made = []
    threads = [threading.Thread(target=lambda: made.append(post(address, CHAT))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {one.status_code for one in made} == {503}
    assert {one.json()["error"]["type"] for one in made} == {"filter_busy", "filter_timeout"}
    assert upstream.bodies == []


def test_a_client_that_leaves_ends_its_pass_and_its_stream(proxy, slow, upstream):
    watched, address = slow(5.0), proxy()
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{address}/v1/chat/completions", json=CHAT, timeout=0.5)
    waited = time.monotonic()
    while not watched.ended and time.monotonic() < waited + 5:
        time.sleep(0.05)
    assert watched.ended == ["early"]
    upstream.slow = 0.5
    short = {**CHAT, "messages": CHAT["messages"][1:], "stream": True}
    with httpx.stream("POST", f"{address}/v1/chat/completions", json=short, timeout=60) as made:
        next(made.iter_raw())
    waited = time.monotonic()
    while not upstream.left and time.monotonic() < waited + 5:
        time.sleep(0.05)
    assert upstream.left == 1
    assert upstream.bodies[-1] == json.dumps(short, separators=(",", ":")).encode()


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
