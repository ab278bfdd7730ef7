"""Who is let in: names, origins, tokens, sizes, kinds of content; and the headers of every answer."""

from __future__ import annotations

import pytest

from assay.lab import UserError
from assay.serve.guard import COOKIE, LIMIT
from assay.serve.settings import Settings

TOKEN = "a-token-of-some-length"
ASKED = {"study": "swarm"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8765", "localhost:1", "[::1]:8765", "LOCALHOST"])
def test_the_loopback_has_several_names(client, host):
    assert client.get("/api/studies", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "[::1", "0.0.0.0"])
def test_a_foreign_host_is_refused(client, host):
    # A page whose own name was made to point at this machine (DNS rebinding) sends that name.
    answer = client.get("/api/runs", headers={"host": host})
    assert answer.status_code == 421
    assert "another name" in answer.json()["detail"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "file://", "http://[oops"])
@pytest.mark.parametrize("path", ["/api/plan", "/api/jobs", "/api/gemfilter"])
def test_what_another_site_sends_is_refused(client, origin, path):
    assert client.post(path, json=ASKED, headers={"origin": origin}).status_code == 403
    assert client.get("/api/jobs").json() == []


def test_ones_own_origin_is_welcome(client):
    answer = client.post(
        "/api/plan", json=ASKED, headers={"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
    )
    assert answer.status_code == 200


def test_another_site_can_link_here_and_do_nothing_else(client):
    across = {"sec-fetch-site": "cross-site"}
    assert client.get("/", headers={**across, "sec-fetch-mode": "navigate"}).status_code == 200
    assert client.get("/api/runs", headers={**across, "sec-fetch-mode": "no-cors"}).status_code == 403
    assert client.post("/api/plan", json=ASKED, headers={**across, "sec-fetch-mode": "navigate"}).status_code == 403


def test_only_json_is_read(client):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = client.post("/api/jobs", content=b'{"study": "swarm"}', headers={"content-type": kind})
        assert answer.status_code == 415
    assert client.get("/api/jobs").json() == []


def test_large_requests_are_refused_whether_or_not_they_say_so(client):
    text = b'{"study": "' + b"x" * LIMIT + b'"}'
    headers = {"content-type": "application/json"}
    assert client.post("/api/plan", content=text, headers=headers).status_code == 413
    assert client.post("/api/plan", content=iter([text[:100], text[100:]]), headers=headers).status_code == 413
    assert client.post("/api/plan", content=b"{}", headers={**headers, "content-length": "-5"}).status_code == 413


def test_deep_nesting_is_no_error_of_the_server(client):
    for body in (b"[" * 20_000, b'{"a":' * 9_000, b"\xff\xfe", b"NaN", b'{"study": "swarm", "first_seed": 1e999}'):
        answer = client.post("/api/plan", content=body, headers={"content-type": "application/json"})
        assert 400 <= answer.status_code < 500


def test_headers_of_every_answer(client):
    for path in ("/", "/assets/app.js", "/api/runs", "/api/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe-eval" not in policy
        assert "unsafe-inline" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_no_page_of_the_schema_comes_from_elsewhere(client):
    assert client.get("/docs").status_code == 404
    assert client.get("/redoc").status_code == 404
    assert client.get("/openapi.json").status_code == 200


def test_a_websocket_is_closed(client):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/events"):
        pass


class TestToken:
    @pytest.fixture
    def locked(self, runs, open_client):
        with open_client(runs, token=TOKEN) as client:
            yield client

    def test_nothing_is_told_without_it(self, locked):
        for path in ("/", "/assets/app.js", "/api/runs", "/api/events", "/openapi.json", "/?token=wrong", "/?token="):
            assert locked.get(path).status_code == 401
        assert locked.post("/api/jobs", json=ASKED).status_code == 401
        assert locked.get("/api/runs?token=" + TOKEN).status_code == 401, "an address is passed on too easily"

    def test_a_script_sends_it_as_a_header(self, locked):
        assert locked.get("/api/runs", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert locked.get("/api/runs", headers={"authorization": f"Bearer {TOKEN}x"}).status_code == 401

    def test_a_browser_trades_it_for_a_cookie(self, locked):
        entered = locked.get(f"/?token={TOKEN}", follow_redirects=False)
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert locked.get("/api/runs").status_code == 200

    def test_a_broken_cookie_is_none(self, locked):
        for cookie in (f"{COOKIE}=wrong", f"{COOKIE}=\x01;;;=", f"{COOKIE}={'ä' * 20}"):
            assert locked.get("/api/runs", headers={"cookie": cookie.encode("latin-1")}).status_code == 401

    def test_a_foreign_host_is_refused_even_with_it(self, locked):
        headers = {"authorization": f"Bearer {TOKEN}", "host": "evil.example"}
        assert locked.get("/api/runs", headers=headers).status_code == 421


class TestSettings:
    def test_other_machines_need_a_token(self, tmp_path):
        for host in ("0.0.0.0", "192.168.1.5", "::", "lab.example"):
            with pytest.raises(UserError, match="a token is needed"):
                Settings(tmp_path, host=host)

    def test_a_token_is_no_word(self, tmp_path):
        for token in ("short", "with a blank in it", "ünïcödé-token", "line\nbreak-token"):
            with pytest.raises(UserError, match="token"):
                Settings(tmp_path, token=token)

    def test_a_port_is_a_port(self, tmp_path):
        with pytest.raises(UserError, match="no port"):
            Settings(tmp_path, port=70_000)

    def test_an_open_server_answers_to_addresses_and_its_own_name(self, tmp_path):
        import socket

        made = Settings(tmp_path, host="0.0.0.0", token=TOKEN)
        assert made.answers_to("192.168.1.5:8765")
        assert made.answers_to("[fe80::1]:8765")
        assert made.answers_to(f"{socket.gethostname()}:8765")
        assert not made.answers_to("evil.example:8765")
        assert TOKEN not in repr(made)
        assert TOKEN in made.address
