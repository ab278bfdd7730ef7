"""Every route: what it answers, and what it refuses."""

from __future__ import annotations

import json

import pytest

from assay.serve import reading

ASKED = {"study": "swarm", "preset": "smoke"}
TRAVERSALS = [
    "../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/app.py",
    "....//app.py",
    "/etc/passwd",
    "app.html",
]

QUESTION = {"text": "Some words. " * 20, "question": "Which?"}


class TestStudies:
    def test_all_studies_are_listed(self, client):
        found = {study["name"]: study for study in client.get("/api/studies").json()}
        assert found["swarm"]["question"] == "Do points that wander arrive?"
        assert "feature-emergence" in found

    def test_a_study_is_a_form(self, client):
        form = client.get("/api/studies/swarm").json()
        fields = {field["name"]: field for field in form["parameters"]}
        assert fields["level"] == {
            "name": "level",
            "part": "",
            "kind": "float",
            "description": "where the points settle",
            "optional": False,
            "above": 0.0,
            "below": 1.0,
        }
        assert (fields["points"]["minimum"], fields["points"]["maximum"]) == (2, 40)
        assert fields["pace"]["choices"] == ["calm", "quick"]
        assert (fields["widths"]["kind"], fields["widths"]["items"]["kind"], fields["widths"]["least"]) == (
            "list",
            "int",
            1,
        )
        assert fields["kinds"]["items"]["choices"] == ["a", "b"]
        assert (fields["limit"]["kind"], fields["limit"]["optional"], fields["limit"]["above"]) == ("float", True, 0.0)
        assert fields["loud"]["kind"] == "bool"
        assert form["presets"]["laptop"]["values"]["points"] == 12
        assert form["presets"]["smoke"]["arms"] == ["neurons", "walk"]
        assert {arm["name"]: arm["optional"] for arm in form["arms"]} == {
            "walk": False,
            "neurons": False,
            "extra": True,
        }

    @pytest.mark.parametrize("name", ["nothing", *TRAVERSALS])
    def test_an_unknown_study_is_not_found(self, client, name):
        assert client.get(f"/api/studies/{name}").status_code == 404

    def test_a_plan_tells_what_is_reused(self, client):
        new = client.post("/api/plan", json=ASKED).json()
        assert (new["compute"], new["reuse"], new["stated"]) == (3, 1, "1 s")
        known = client.post("/api/plan", json={**ASKED, "set": {"level": 0.6}}).json()
        assert (known["compute"], known["reuse"], known["seconds"]) == (0, 4, 0.0)
        assert {arm["arm"]: arm["compute"] for arm in new["arms"]} == {"walk": 3, "neurons": 0}
        assert (new["alike"], known["alike"]) == (False, True)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"set": {"level": 2}}, "level = 2 is not allowed"),
            ({"set": {"level": "NaN"}}, "level"),
            ({"set": {"lebel": 0.3}}, "did you mean 'level'"),
            ({"set": {"points": 2.5}}, "points"),
            ({"arms": ["none"]}, "unknown arm"),
            ({"arms": ["extra"], "set": {"level": 0.3}}, "changes nothing"),
            ({"seeds": 0}, "seeds"),
            ({"seeds": 10**9}, "seeds"),
            ({"preset": "huge"}, "preset"),
            ({"surprise": 1}, "surprise"),
            ({"set": {"level": {"deep": 1}}}, "set.level"),
        ],
    )
    def test_what_cannot_be_is_one_sentence(self, client, change, words):
        for path in ("/api/plan", "/api/jobs"):
            answer = client.post(path, json={**ASKED, **change})
            assert answer.status_code == 422
            assert words in answer.json()["detail"]
            assert "\n" not in answer.json()["detail"]
        assert client.get("/api/jobs").json() == []

    def test_an_unknown_study_has_no_plan(self, client):
        assert client.post("/api/plan", json={"study": "nothing"}).status_code == 404


class TestRuns:
    def test_all_runs_newest_first(self, client):
        runs = client.get("/api/runs").json()
        assert [run["name"] for run in runs] == ["high", "low"]
        assert runs[0]["set"] == {"level": 0.6}
        assert runs[0]["verdicts"] == {"holds": 3}
        assert runs[1]["verdicts"] == {"holds": 2, "fails": 1}
        assert len(client.get("/api/runs?neurons=true").json()) == 2

    def test_a_run_has_its_verdicts(self, client, ids):
        run = client.get(f"/api/runs/{ids['low']}").json()
        claims = {claim["id"]: claim for claim in run["claims"]}
        assert claims["C1"]["verdict"] == "fails"
        assert "&lt;or&gt;" in claims["C1"]["statement_html"]
        assert claims["C1"]["drawing_html"].startswith("<svg")
        assert run["snapshots"] is True
        assert "--set level=0.3" in run["facts"]["command"]
        assert [each["origin"] for each in run["parameters"] if each["name"] == "level"] == ["override"]

    @pytest.mark.parametrize("id", ["nothing", "2026", *TRAVERSALS])
    def test_a_run_is_named_in_full(self, client, id):
        for path in (f"/api/runs/{id}", f"/api/runs/{id}/neurons"):
            assert client.get(path).status_code == 404

    def test_two_runs_side_by_side(self, client, ids):
        found = client.get("/api/compare", params={"a": ids["low"], "b": ids["high"]}).json()
        differing = [each for each in found["parameters"] if each["differs"]]
        assert [(each["name"], each["a"], each["b"]) for each in differing] == [("level", "0.3", "0.6")]
        assert len(found["parameters"]) == 10
        assert [each["id"] for each in found["claims"] if each["turned"]] == ["C1"]
        assert client.get("/api/compare", params={"a": ids["low"], "b": "nothing"}).status_code == 404
        assert client.get("/api/compare", params={"a": ids["low"]}).status_code == 422

    def test_a_run_gets_a_name(self, client, ids):
        named = client.post(f"/api/runs/{ids['low']}/name", json={"name": "deep"})
        assert named.json()["name"] == "deep"
        assert client.post(f"/api/runs/{ids['low']}/name", json={"name": "high"}).status_code == 422
        assert client.post(f"/api/runs/{ids['low']}/name", json={"name": "../up"}).status_code == 422

    def test_neurons_over_training(self, client, ids):
        (outline,) = client.get(f"/api/runs/{ids['low']}/neurons").json()
        assert (outline["arm"], outline["neurons"], outline["looks"], outline["seeds"]) == ("neurons", 6, 5, [0, 1, 2])
        found = client.get(f"/api/runs/{ids['low']}/neurons/0?seed=1").json()
        assert (found["seed"], found["steps"], len(found["x"]), len(found["x"][0])) == (1, [0, 1, 2, 3, 4], 5, 6)
        assert found["landmarks"] == [{"name": "goal", "at": [1.0, 0.0]}]
        assert found["x"][4] == found["probes"]["cosine"][4] == [1.0] * 6
        for wrong in ("1", "-1", "0?seed=99"):
            assert client.get(f"/api/runs/{ids['low']}/neurons/{wrong}").status_code == 404

    def test_maps_and_their_cells(self, client):
        (found,) = client.get("/api/maps").json()
        assert (found["claim"], found["counts"]) == ("C1", {"fails": 2, "holds": 2})
        cell = client.get(f"/api/runs/{found['cells'][0]['run']}").json()
        assert cell["kind"] == "sweep"
        assert cell["set"] == {"level": 0.2, "points": 4}

    def test_a_report_and_its_files(self, client, ids):
        assert client.get(f"/reports/{ids['low']}/swarm.html").status_code == 404, "nobody asked for it yet"
        address = client.post(f"/api/runs/{ids['low']}/report").json()["address"]
        page = client.get(address)
        assert page.headers["content-type"].startswith("text/html")
        assert "script-src 'self';" in page.headers["content-security-policy"]
        assert "A swarm that finds its goal" in page.text
        folder = address.rpartition("/")[0]
        assert client.get(f"{folder}/assets/charts.js").headers["content-type"].startswith("text/javascript")
        assert client.get(f"{folder}/index.html", follow_redirects=False).headers["location"] == f"/#/run/{ids['low']}"
        for name in TRAVERSALS:
            assert client.get(f"{folder}/{name}").status_code == 404
        assert client.post("/api/runs/nothing/report").status_code == 404


class TestPages:
    def test_the_page_and_its_files(self, client):
        page = client.get("/")
        assert "<main" in page.text
        assert "style=" not in page.text
        for name in ("app.js", "app.css", "base.css", "theme.js", "disk.js", "icon.svg"):
            answer = client.get(f"/assets/{name}")
            assert answer.status_code == 200
            again = client.get(f"/assets/{name}", headers={"if-none-match": answer.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")

    @pytest.mark.parametrize("name", TRAVERSALS)
    def test_no_other_file_is_served(self, client, name):
        assert client.get(f"/assets/{name}").status_code == 404
        assert client.get(f"/reports/x/{name}").status_code == 404

    def test_every_file_that_the_page_imports_is_there(self, client):
        import re

        waiting, seen = ["app.js"], set()
        while waiting:
            name = waiting.pop()
            seen.add(name)
            text = client.get(f"/assets/{name}").text
            assert "http:" not in text.replace("http://www.w3.org", "")
            waiting += [each for each in re.findall(r"[\"']\./([\w-]+\.js)[\"']", text) if each not in seen]
        assert {"study.js", "explore.js", "gemfilter.js", "maps.js", "compare.js"} <= seen


class TestGemFilter:
    def test_without_a_model_it_says_why(self, client, monkeypatch):
        monkeypatch.setattr(reading, "missing", lambda model: f"it needs {model}")
        assert client.get("/api/gemfilter").json() == {"model": "smollm2", "missing": "it needs smollm2", "indexes": []}
        answer = client.post("/api/gemfilter", json=QUESTION)
        assert (answer.status_code, answer.json()["detail"]) == (422, "the page cannot be used: it needs smollm2")

    def test_a_question_is_checked(self, client):
        for change in (
            {"text": ""},
            {"text": "x" * 500_001},
            {"keep": 0},
            {"layer": -1},
            {"rule": "best"},
            {"more": 1},
        ):
            assert client.post("/api/gemfilter", json={**QUESTION, **change}).status_code == 422

    def test_a_long_text_fits_into_a_request(self, client):
        answer = client.post("/api/gemfilter", json={"text": "x" * 400_000, "keep": 0})
        assert "keep" in answer.json()["detail"]


def test_the_schema_is_json_and_has_every_route(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/api/studies", "/api/plan", "/api/jobs", "/api/runs/{id}", "/api/compare", "/api/maps"} <= set(paths)
    json.dumps(paths, allow_nan=False)
