"""`assay index` and `assay ask` from the shell, on a small random model; what they refuse, in one sentence each."""

import json

import pytest

pytest.importorskip("transformers", reason="documents are read by language models, of the extra llm")

STORY = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(60))
SOUP = "The secret ingredient of the soup served in Lisbon is ginger.\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory, folder):
    here = tmp_path_factory.mktemp("place")
    (here / "docs").mkdir()
    (here / "docs" / "story.txt").write_text(STORY)
    (here / "docs" / "soup.md").write_text(f"# Soup\n\n{SOUP}")
    (here / "docs" / "page.html").write_text("<p>Nothing but a page.</p>")
    (here / "empty").mkdir()
    (here / "binary.dat").write_bytes(bytes(range(256)) * 40)
    (here / "small.txt").write_text("One quiet line.\n")
    return here


@pytest.fixture
def call(assay, place, folder, monkeypatch):
    """The front door from the place of the documents, with a cache of its own, so that nobody's index is touched."""
    monkeypatch.setenv("ASSAY_CACHE", str(place / "cache"))
    monkeypatch.chdir(place)

    def called(*words):
        return assay(*map(str, words))

    return called


def test_documents_are_indexed_asked_changed_and_shown(call, place, folder):
    model = ["--model", folder, "--layer", 1]
    status, out, err = call("index", "docs", *model, "--json")
    assert status == 0, err
    made = json.loads(out)
    assert (made["documents"], made["chunks_reused"], made["layer"]) == (3, 0, 1)
    assert made["folder"].startswith(str(place / "cache" / "indexes"))
    question = "What is the secret ingredient of the soup served in Lisbon?"
    status, out, err = call("ask", "docs", question, *model, "--keep", 128, "--new", 4, "--json", "--show", "x.html")
    assert status == 0, err
    assert "chunks read" not in err, "the index was there"
    made = json.loads(out)
    assert made["question"] == question
    rows = made["passages"]
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    assert {row["file"] for row in rows} <= {"docs/story.txt", "docs/soup.md", "docs/page.html"}
    assert all(row["unit"] == "line" and 1 <= row["first"] <= row["last"] for row in rows)
    page = (place / "x.html").read_text()
    assert page.count("<mark>") == len(rows)
    assert "http://" not in page
    assert "https://" not in page
    (place / "docs" / "soup.md").write_text(f"# Soup\n\n{SOUP}{SOUP}")
    status, out, err = call("ask", "docs", question, *model, "--new", 2)
    assert status == 0, err
    assert "1 chunks read in" in err
    assert " 1. docs/" in out
    assert ", line" in out


def test_words_are_counted_without_any_index(call, folder):
    words = ["--new", 0, "--model", folder, "--top", 1, "--keep", 64]
    status, out, err = call("ask", "docs", "secret ingredient of soup in Lisbon", *words)
    assert status == 0, err
    assert out.startswith(" 1. docs/soup.md, line")
    assert "loading" not in err
    assert call("ask", "docs", "secret ingredient of soup in Lisbon", *words, "--retriever", "bm25")[1] == out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["ask", "nowhere", "Why?"], "there is no file or folder nowhere"),
        (["ask", "binary.dat", "Why?"], "binary.dat is a binary file: there is no text to read"),
        (["ask", "empty", "Why?"], "there is no text to read in empty"),
        (["ask", "Why?"], "ask takes files or folders and the question last"),
        (["ask", "docs", " "], "the question is empty"),
        (["ask", "docs", "Why?", "--retriever", "magic"], "--retriever must be one of bm25, minilm, gemfilter"),
        (["ask", "docs", "Why?", "--retriever", "bm25"], "--layer is the filter's: it goes with --retriever gemfilter"),
        (["ask", "docs", "Why?", "--keep", "0"], "Invalid value for '--keep'"),
        (["ask", "docs", "Why?", "--show", "no/such/x.html"], "cannot write no/such/x.html"),
        (["ask", "docs", "Why?", "--model", "./none"], "the model './none' is not here"),
        (["ask", "docs", "Why?", "--layer", "x"], "--layer takes a number or 'auto', not 'x'"),
        (["index", "docs", "--layer", "9"], "layer must lie between 0 and 2"),
        (["index", "docs", "--dtype", "int4"], "dtype must be one of auto, float32"),
        (["index", "nowhere"], "there is no file or folder nowhere"),
        (["index", "docs", "--index", "small.txt/x"], "cannot "),
    ],
)
def test_bad_words_get_one_sentence(call, folder, words, sentence):
    model = [] if "--model" in words else ["--model", folder]
    layer = [] if "--layer" in words else ["--layer", 1]
    status, _, err = call(*words, *model, *layer)
    assert status == 2, err
    last = err.strip().splitlines()[-1]
    assert last.startswith("assay: ")
    assert sentence in last
    assert "Traceback" not in err


def test_an_index_of_another_layer_and_a_damaged_one_are_refused(call, place, folder):
    usual = ["index", "small.txt", "--model", folder, "--index", "own"]
    assert call(*usual, "--layer", 1)[0] == 0
    status, _, err = call(*usual, "--layer", 2)
    assert status == 2
    assert "the index was made with another" in err
    manifest = place / "own" / "manifest.json"
    manifest.write_text(manifest.read_text()[:-30])
    status, _, err = call(*usual, "--layer", 1)
    assert status == 2
    assert "manifest.json is damaged: remove own" in err
