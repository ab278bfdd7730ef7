"""A server that stands for a language model, and a proxy in front of it, both on real sockets."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

fastapi = pytest.importorskip("fastapi", reason="the proxy needs the extra web")
uvicorn = pytest.importorskip("uvicorn", reason="the proxy needs the extra web")
pytest.importorskip("httpx", reason="the proxy needs the extra web")

from assay.apps.proxy.running import listening, shortener_for  # noqa: E402
from assay.apps.proxy.server import Proxy  # noqa: E402
from assay.apps.proxy.settings import Settings  # noqa: E402

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


class Upstream:
    """Answers as such servers do, and keeps what it was sent."""

    def __init__(self):
        self.bodies, self.headers, self.slow, self.left = [], [], 0.0, 0
        self.app = fastapi.FastAPI()
        self.app.add_api_route("/v1/{path:path}", self.answer, methods=["GET", "POST"])

    async def answer(self, path: str, request: fastapi.Request):
        body = await request.body()
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        if path == "models":
            return {"object": "list", "data": [{"id": "tiny", "object": "model"}]}
        given = json.loads(body)
        if given.get("model") == "missing":
            return fastapi.Response(b'{"error": {"message": "no such model"}}', 404, {"x-odd": "yes"})
        await asyncio.sleep(self.slow)
        if given.get("stream"):
            return fastapi.responses.StreamingResponse(self.pieces(given), media_type="text/event-stream")
        message = {"role": "assistant", "content": "So it is."}
        choice = {"index": 0, "message": message, "text": "So it is.", "finish_reason": "stop"}
        kind = "chat.completion" if "messages" in given else "text_completion"
        return {"id": "1", "object": kind, "created": 1, "model": "tiny", "choices": [choice], "usage": USAGE}

    async def pieces(self, given):
        made = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny"}
        try:
            for word in ("So ", "it ", "is."):
                choice = {"index": 0, "delta": {"content": word}, "finish_reason": None}
                yield f"data: {json.dumps({**made, 'choices': [choice]})}\n\n"
                await asyncio.sleep(self.slow or 0.01)
            if given.get("stream_options", {}).get("include_usage"):
                yield f"data: {json.dumps({**made, 'choices': [], 'usage': USAGE})}\n\n"
            yield "data: [DONE]\n\n"
        except asyncio.CancelledError:
            self.left += 1
            raise


@pytest.fixture
def in_a_loop():
    """Run a coroutine in a thread of its own: a browser of another test may have a loop running in this one."""
    with ThreadPoolExecutor(1) as worker:
        yield lambda coroutine: worker.submit(asyncio.run, coroutine).result()


@pytest.fixture
def running():
    """Serve an application in a thread; returns its address."""
    servers = []

    def serve(app):
        socket = listening("127.0.0.1", 0)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
        thread.start()
        servers.append((server, thread, socket))
        while not server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{socket.getsockname()[1]}"

    yield serve
    for server, thread, socket in servers:
        server.should_exit = True
        thread.join(10)
        socket.close()


@pytest.fixture
def upstream(running):
    made = Upstream()
    made.address = running(made.app) + "/v1"
    return made


@pytest.fixture
def shortener(folder):
    """Of a tiny random model, with a budget of 64 tokens."""
    settings = Settings("http://127.0.0.1:1/v1", keep=64, threshold=200, whole_turn=60, before=8, question=40)
    return shortener_for(settings, str(folder), layer="1", device="cpu", tell=lambda _: None)


@pytest.fixture
def proxy(upstream, shortener, running):
    """The proxy's address; called with settings that differ."""

    def start(**changes):
        options = {"keep": 64, "threshold": 200, "whole_turn": 60, "before": 8, "question": 40}
        settings = Settings(**{"upstream": upstream.address, **options, **changes})
        shortener.settings = settings
        return running(Proxy(settings, shortener).app())

    return start
