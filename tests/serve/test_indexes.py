"""Indexes of documents on the GemFilter page: listed by name, and nothing else is ever opened."""

from __future__ import annotations

import json
import shutil

import pytest

from assay.serve import indexes, reading

pytest.importorskip("transformers", reason="language models need the extra llm")

ASKED = {"question": "What is served?", "keep": 40, "new": 2}


@pytest.fixture
def library(folder, tmp_path):
    """A folder with one index of two files, made by the tiny model."""
    from assay.apps.documents.setup import filter_for, library_of

    texts = tmp_path / "texts"
    texts.mkdir()
    text = (folder / "text.txt").read_text()
    (texts / "one.txt").write_text(text[: len(text) // 2])
    (texts / "two.txt").write_text(text[len(text) // 2 :])
    place = tmp_path / "indexes" / "soups"
    used = filter_for(str(folder), layer="1", folder=place, tell=lambda sentence: None)
    used.prepare(library_of([str(texts)]))
    return place.parent


@pytest.fixture
def asking(runs, open_client, monkeypatch, folder, library):
    monkeypatch.setattr(reading, "missing", lambda model: None)
    with open_client(runs, model=str(folder), indexes=library) as client:
        yield client


def test_indexes_are_listed_without_their_paths(asking, library):
    (listed,) = asking.get("/api/gemfilter").json()["indexes"]
    assert (listed["name"], listed["documents"], listed["layer"]) == ("soups", 2, 1)
    assert listed["tokens"] > 100
    assert str(library) not in json.dumps(listed)
    assert list(indexes.listed(library / "soups")) == ["soups"], "the folder may be an index itself"


def test_a_question_is_answered_from_an_index(asking, finished):
    answer = asking.post("/api/gemfilter", json={**ASKED, "index": "soups"})
    assert answer.status_code == 202
    job = finished(asking, answer.json()["id"])
    assert job["state"] == "complete", job
    found = asking.get(f"/api/jobs/{job['id']}/result").json()
    assert "2 documents, layer 1" in found["facts"]
    assert found["found"][0]["where"].partition(",")[0] in ("one.txt", "two.txt")
    assert found["found"][0]["text"]


@pytest.mark.parametrize(
    "name", ["..", "../soups", "soups/", "/etc", "./soups", "soup", "elsewhere", "broken", "%2e%2e"]
)
def test_nothing_but_a_listed_index_is_opened(asking, library, tmp_path, monkeypatch, name):
    shutil.copytree(library / "soups", tmp_path / "other")
    (library / "elsewhere").symlink_to(tmp_path / "other")
    (library / "broken").mkdir()
    (library / "broken" / "manifest.json").write_text("{")
    answer = asking.post("/api/gemfilter", json={**ASKED, "index": name})
    assert answer.status_code == 404
    assert answer.json()["detail"] == f"there is no index '{name}'"


def test_what_is_asked_of_an_index_is_checked(asking):
    for change, words in (({"text": "x"}, "not both"), ({"question": " "}, "the question is empty")):
        answer = asking.post("/api/gemfilter", json={**ASKED, "index": "soups", **change})
        assert answer.status_code == 422
        assert words in answer.json()["detail"]


def test_a_server_without_a_folder_lists_none(client, monkeypatch):
    monkeypatch.setattr(reading, "missing", lambda model: None)
    assert client.get("/api/gemfilter").json()["indexes"] == []
    assert client.post("/api/gemfilter", json={**ASKED, "index": "soups"}).status_code == 404


def test_files_that_are_gone_are_told(folder, library):
    found = indexes.listed(library)["soups"]
    shutil.rmtree(library.parent / "texts")
    asked = {**ASKED, "folder": str(found.folder), "files": list(found.files), "layer": 1, "dtype": found.dtype}
    with pytest.raises(ValueError, match="none of the files"):
        indexes.read(str(folder), asked, lambda sentence: None)
