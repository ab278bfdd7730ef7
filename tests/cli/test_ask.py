"""`assay index` and `assay ask` from the shell, on a small random model; what they refuse, in one sentence each."""

import errno
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

AutoModelForCausalLM = pytest.importorskip(
    "transformers", reason="documents are read by language models, of the extra llm"
).AutoModelForCausalLM

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


def test_an_answer_comes_in_pieces_before_its_end(call, folder, monkeypatch):
    """The first words are out, and flushed, while the model is still asked for the next token."""
    from transformers import LlamaForCausalLM

    passes, usual, pieces = [], LlamaForCausalLM.forward, []

    def counted(self, *given, **options):
        passes.append(1)
        return usual(self, *given, **options)

    class Out(io.StringIO):
        waiting = ""

        def write(self, text):
            self.waiting += text
            return super().write(text)

        def flush(self):
            if self.waiting.strip():
                pieces.append((len(passes), self.waiting))
            self.waiting = ""

    monkeypatch.setattr(LlamaForCausalLM, "forward", counted)
    monkeypatch.setattr(sys, "stdout", Out())
    status, _, err = call("ask", "docs", "soup in Lisbon", "--model", folder, "--new", 8, "--keep", 64)
    assert status == 0, err
    spoken = [after for after, _ in pieces if after < len(passes)]
    assert len(passes) > 2
    assert len(spoken) > 1, "pieces of the answer were out before the model was asked for the last token"


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
    refused(status, err, sentence)


def refused(status, err, sentence):
    """Bad input: the last line is the one sentence, and there is no traceback."""
    assert status == 2, err
    last = err.strip().splitlines()[-1]
    assert last.startswith("assay: ")
    assert sentence in last
    assert "Traceback" not in err
    assert all(line.startswith("assay: ") for line in err.strip().splitlines()), err


def test_an_index_of_another_layer_and_a_damaged_one_are_refused(call, place, folder):
    usual = ["index", "small.txt", "--model", folder, "--index", "own"]
    assert call(*usual, "--layer", 1)[0] == 0
    refused(*call(*usual, "--layer", 2)[::2], "the index was made with another")
    own = place / "another model"
    shutil.copytree(folder, own)
    weights = AutoModelForCausalLM.from_pretrained(own)
    with torch.no_grad():
        weights.get_input_embeddings().weight.add_(1.0)
    weights.save_pretrained(own)
    for words in (["index", "small.txt"], ["ask", "small.txt", "Why?", "--new", 0]):
        status, _, err = call(*words, "--model", own, "--index", "own", "--layer", 1)
        refused(status, err, "the index was made with another model: index the texts again, in another place")
    manifest = place / "own" / "manifest.json"
    manifest.write_text(manifest.read_text()[:-30])
    refused(*call(*usual, "--layer", 1)[::2], "manifest.json is damaged: remove own")


@pytest.fixture
def locked(place):
    """A PDF that nobody can read without its password, in a folder of its own."""
    pypdf = pytest.importorskip("pypdf", reason="PDF needs the extra documents")
    writer = pypdf.PdfWriter()
    writer.add_blank_page(300, 300)
    writer.encrypt("honey", algorithm="RC4-128")
    (place / "locked").mkdir(exist_ok=True)
    writer.write(place / "locked" / "locked.pdf")
    return "locked/locked.pdf"


@pytest.mark.parametrize("words", [["index", "PATH"], ["ask", "PATH", "Why?"]], ids=["index", "ask"])
def test_an_encrypted_pdf_is_refused_by_name_and_passed_over_in_a_folder(call, folder, locked, words):
    def asked(*paths):
        given = [part for word in words for part in (paths if word == "PATH" else [word])]
        status, _, err = call(*given, "--model", folder, "--layer", 1, *(["--new", 0] if "ask" in words else []))
        return status, err

    refused(*asked(locked), "locked.pdf is encrypted: remove its password first")
    refused(*asked("locked"), "there is no text to read in locked: 1 files were passed over")
    status, err = asked("locked", "small.txt")
    assert status == 0, err
    assert f"assay: passed over {locked}: it is encrypted: remove its password first" in err


@pytest.mark.parametrize("before", [0, 2], ids=["at once", "in the middle"])
@pytest.mark.parametrize("words", [["index", "docs/story.txt"], ["ask", "docs/story.txt", "Why?", "--new", 0]])
def test_a_full_disk_is_told_and_what_was_written_is_used_later(call, folder, monkeypatch, tmp_path, words, before):
    usual, written = os.fsync, []

    def full(handle):
        if len(written) == before:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(handle)
        usual(handle)

    own = ["--model", folder, "--layer", 1, "--index", tmp_path / "own"]
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        status, out, err = call(*words, *own)
    refused(status, err, f"cannot write the index in {tmp_path / 'own'}: No space left on device")
    assert out == ""
    status, out, err = call("index", "docs/story.txt", *own, "--json")
    assert status == 0, err
    assert json.loads(out)["chunks_reused"] == max(0, before - 1), "the manifest was the first to be written"


def test_a_full_disk_under_the_page_is_told(call, folder, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    words = ["docs", "soup in Lisbon", "--model", folder, "--new", 0, "--show", "y.html"]
    refused(*call("ask", *words)[::2], "cannot write y.html: No space left on device")


#: The command, killed with its third chunk in hand.
KILLED = """
import os
from assay import cli
from assay.methods.gemfilter import FolderStore

usual, left = FolderStore.put, [2]

def put(self, key, state):
    if not left[0]:
        os.kill(os.getpid(), 9)
    left[0] -= 1
    usual(self, key, state)

FolderStore.put = put
cli.main()
"""


def test_a_killed_index_goes_on_where_it_stopped(call, folder, tmp_path):
    words = ["index", "docs/story.txt", "--model", folder, "--layer", 1, "--index", tmp_path / "own", "--json"]
    done = subprocess.run([sys.executable, "-c", KILLED, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    assert done.stdout == ""
    status, out, err = call(*words)
    assert status == 0, err
    made = json.loads(out)
    assert made["chunks_reused"] == 2
    assert made["chunks_read"] > 0
    status, out, _ = call(*words)
    assert json.loads(out)["chunks_read"] == 0
