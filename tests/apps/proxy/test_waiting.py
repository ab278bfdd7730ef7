"""Many requests, slow passes and clients that leave: who waits for the filter, and who does not."""

import asyncio
import json
import threading
import time

import httpx
import pytest

from assay.apps.proxy.shortening import Cancelled, Shortener
from assay.apps.proxy.turns import Turns

LONG = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(60))
QUESTION = "What is the secret of the story?"
CHAT = {"model": "tiny", "messages": [{"role": "user", "content": LONG}, {"role": "user", "content": QUESTION}]}


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


def test_twenty_at_once_pass_one_at_a_time_and_the_server_answers_meanwhile(proxy, upstream, monkeypatch, in_a_loop):
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

    made, quick = in_a_loop(storm())
    assert {one.status_code for one in made} == {200}
    assert max(most) == 1
    assert quick.status_code == 200
    assert len(upstream.bodies) == 21
    assert upstream.bodies[0] == quick.request.content, "it did not wait for the others"


def test_clients_take_turns(in_a_loop):
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

    in_a_loop(all_of_them())
    assert order == ["greedy 1", "modest", "greedy 2", "greedy 3"]
    assert turns.waiting == 0


def test_a_full_queue_and_a_slow_filter_are_told(proxy, slow, upstream):
    slow(1.0)
    address = proxy(queue=1, filter_seconds=0.5)
    made = []
    threads = [
        threading.Thread(
            target=lambda: made.append(httpx.post(f"{address}/v1/chat/completions", json=CHAT, timeout=60))
        )
        for _ in range(4)
    ]
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
