"""The example that fits a text encoder to a user's labelled CSV: what it reads, and what it says of other files."""

import csv
import runpy
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]


def test_the_example_reads_a_file_and_does_without_the_wheel(tmp_path, monkeypatch, capsys):
    rows = [f"{word} number {k},{word}" for word in ("apples", "pears", "plums") for k in range(12)]
    (tmp_path / "fruit.csv").write_text("\n".join(["what,kind", *rows]) + "\n")
    monkeypatch.setattr("assay.networks.why_absent", lambda name: "it is not installed")
    words = [str(tmp_path / "fruit.csv"), "--text", "what", "--label", "kind", "--labels", "9", "--steps", "2"]
    monkeypatch.setattr("sys.argv", ["text_classifier_from_csv.py", *words, "--seeds", "2"])
    threads = torch.get_num_threads()
    with torch.random.fork_rng():
        runpy.run_path(str(ROOT / "examples/text_classifier_from_csv.py"), run_name="__main__")
    torch.set_num_threads(threads)
    said = capsys.readouterr().out
    assert "A tiny stand-in" in said
    assert "36 texts of the classes apples, pears, plums; 9 labelled, 2 seeds" in said
    assert "regularised minus plain" in said
    assert "(no interval below 3 seeds)" in said


@pytest.fixture
def example():
    threads = torch.get_num_threads()
    yield runpy.run_path(str(ROOT / "examples/text_classifier_from_csv.py"))
    torch.set_num_threads(threads)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_example_reads_what_spreadsheets_write(tmp_path, example, delimiter, encoding, end):
    rows = [
        [f"sep={delimiter}"] if delimiter == ";" else [],
        ["text", "number", " label "],
        ['"Naïve, ""bold""; and' + "\n" + 'long"', "1", "good"],
        [],
        ["", "", ""],
        ["no label", "2"],
        ["Dull", "3", "bad "],
        ['"' + "x" * 200_000 + '"', "4", "good"],
    ]
    path = tmp_path / "rows.csv"
    path.write_bytes((end.join(delimiter.join(row) for row in rows) + end).encode(encoding))
    limit = csv.field_size_limit()
    texts, labels, names = example["rows_of"](path, "text", "label")
    assert csv.field_size_limit() >= limit  # the interpreter's
    csv.field_size_limit(limit)
    assert texts == ['Naïve, "bold"; and\nlong', "Dull", "x" * 200_000]
    assert [names[k] for k in labels] == ["good", "bad", "good"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,label\nna\u00efve,good\ndull,bad\n".encode("cp1252"), "rows.csv is not in UTF-8"),
        ("text\tlabel\nfine\tgood\ndull\tbad\n".encode("utf-16"), "rows.csv is not in UTF-8"),
        (b"review|stars\nfine|5\n", r"no columns 'text' and 'label'.*begins 'review\|stars'"),
        (b"", "no columns 'text' and 'label'"),
        (None, "rows.csv cannot be read: No such file"),
        (b"text,label\nfine,good\nfair,good\n", "no texts of two classes or more"),
    ],
)
def test_the_example_says_what_is_wrong_with_a_file(tmp_path, example, content, message):
    if content is not None:
        (tmp_path / "rows.csv").write_bytes(content)
    limit = csv.field_size_limit()
    with pytest.raises(SystemExit, match=message):
        example["rows_of"](tmp_path / "rows.csv", "text", "label")
    assert csv.field_size_limit() == limit


def test_the_example_refuses_to_run_without_a_seed(monkeypatch, example):
    monkeypatch.setattr("sys.argv", ["text_classifier_from_csv.py", "--seeds", "0"])
    with pytest.raises(SystemExit, match="--seeds must be at least 1"):
        example["main"]()


@pytest.mark.parametrize("labels", ["1", "64"])
def test_the_example_refuses_numbers_of_labels_that_leave_nothing_to_learn_or_to_test(labels, monkeypatch, example):
    monkeypatch.setattr("sys.argv", ["text_classifier_from_csv.py", "--labels", labels])
    with pytest.raises(SystemExit, match="at least the number of classes, 2, and below that of texts, 64"):
        example["main"]()
