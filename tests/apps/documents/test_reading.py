"""Which files are meant, what their text is, and on which line or page it stands."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.apps.documents import Library, NoText, read, walk
from assay.apps.documents.passages import MOST, Passage, cited, passages, pieces
from assay.apps.documents.reading import Text


def written(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def names(folder, *paths):
    walked = walk([folder / path for path in paths] or [folder])
    return [str(path.relative_to(folder.resolve())) for path in walked.files]


def test_folders_are_walked_with_the_usual_ignores(tmp_path):
    text = "words\n"
    written(
        tmp_path,
        {
            "a.md": text,
            "b/c.py": text,
            ".git/config": text,
            ".hidden/x.md": text,
            "node_modules/x.js": text,
            "b/__pycache__/c.txt": text,
            "x.egg-info/PKG-INFO": text,
            "picture.svg": "<svg/>",
            ".gitignore": "# made\n*.log\n/out/\nb/*.tmp\n!b/kept.log\ndeep/**/gone.txt\n",
            "run.log": text,
            "b/run.log": text,
            "b/kept.log": text,
            "out/x.md": text,
            "b/out/x.md": text,
            "b/x.tmp": text,
            "c/x.tmp": text,
            "deep/one/two/gone.txt": text,
            "deep/here.txt": text,
        },
    )
    assert names(tmp_path) == ["a.md", "b/c.py", "b/kept.log", "b/out/x.md", "c/x.tmp", "deep/here.txt"]
    assert names(tmp_path, "b") == ["b/c.py", "b/kept.log", "b/out/x.md"], "the repository's rules hold further down"
    assert names(tmp_path, "b/run.log") == ["b/run.log"], "a file that is named is meant"
    with pytest.raises(ValueError, match=r"there is no file or folder .*missing"):
        walk([tmp_path / "missing"])


def test_large_and_binary_files_of_a_folder_are_passed_over_with_their_reason(tmp_path):
    written(tmp_path, {"a.md": "words", "b.bin": b"\0\1\2", "c.txt": b"x" * 3000, "empty.txt": " \n"})
    walked = walk([tmp_path], largest=2000)
    assert [path.name for path in walked.files] == ["a.md", "b.bin", "empty.txt"]
    assert list(walked.passed_over.values()) == ["it is larger than 0 MB"]
    library = Library.of([tmp_path])
    reasons = {path.rpartition("/")[2]: why for path, why in library.passed_over.items()}
    assert "is a binary file" in reasons["b.bin"]
    assert "is empty" in reasons["empty.txt"]
    with pytest.raises(NoText, match=r"b.bin is a binary file: there is no text to read"):
        Library.of([tmp_path / "b.bin"])
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match=r"there is no text to read in .*none"):
        Library.of([tmp_path / "none"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("café\n".encode(), "café\n"),
        (b"\xef\xbb\xbfword", "word"),
        ("wörd".encode("utf-16"), "wörd"),
        ("na\xefve text".encode("cp1252"), "naïve text"),
        (b"a\r\nb\rc", "a\nb\nc"),
    ],
)
def test_text_of_several_encodings(tmp_path, content, expected):
    (tmp_path / "x.txt").write_bytes(content)
    assert read(tmp_path / "x.txt").text == expected


def test_lines_are_counted_from_one(tmp_path):
    (tmp_path / "x.py").write_text("one\ntwo\n\nfour")
    text = read(tmp_path / "x.py")
    assert [text.place(text.text.index(word)) for word in ("one", "two", "four")] == [1, 2, 4]
    assert cited(Passage("x", 0, len(text.text)), text) == "lines 1–4"
    assert cited(Passage("x", 4, 7), text) == "line 2"


def test_html_loses_its_tags_and_keeps_its_lines(tmp_path):
    page = (
        "<html><head><title>no</title><style>p {}</style></head>\n<body><h1>Bees &amp; honey</h1>\n"
        "<p>They <b>dance</b>\n to tell.</p><script>var x = 'no';</script>\n<pre>a\n  b</pre><p>End</p></body></html>"
    )
    (tmp_path / "x.html").write_text(page)
    text = read(tmp_path / "x.html")
    assert "no" not in text.text.split()
    assert "Bees & honey" in text.text
    assert "They dance to tell." in text.text
    assert "a\n  b" in text.text
    for word, line in (("Bees", 2), ("dance", 3), ("to tell", 4), ("  b", 6), ("End", 6)):
        assert text.place(text.text.index(word)) == line, word


def made_pdf(path, pages, password=None):
    pypdf = pytest.importorskip("pypdf", reason="PDF needs the extra documents")
    writer = pypdf.PdfWriter()
    for words in pages:
        page = writer.add_blank_page(300, 300)
        stream = pypdf.generic.DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({words}) Tj ET".encode())
        font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
        name = pypdf.generic.NameObject
        made = pypdf.generic.DictionaryObject({name(key): name(value) for key, value in font.items()})
        fonts = pypdf.generic.DictionaryObject({name("/F1"): made})
        page[name("/Resources")] = pypdf.generic.DictionaryObject({name("/Font"): fonts})
        page[name("/Contents")] = writer._add_object(stream)
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    with path.open("wb") as file:
        writer.write(file)


def test_pdf_is_cited_by_page(tmp_path):
    made_pdf(tmp_path / "x.pdf", ["Bees dance.", "Wasps do not."])
    text = read(tmp_path / "x.pdf")
    assert text.unit == "page"
    assert text.place(text.text.index("Wasps")) == 2
    cache = tmp_path / "cache"
    first = Library.of([tmp_path / "x.pdf"], cache=cache)
    again = Library.of([tmp_path / "x.pdf"], cache=cache)
    assert [one.text for one in first.documents.values()] == [one.text for one in again.documents.values()] == [text]
    assert len(list(cache.iterdir())) == 1


def test_pdfs_that_cannot_be_read_say_why(tmp_path):
    made_pdf(tmp_path / "locked.pdf", ["Bees"], password="honey")
    with pytest.raises(NoText, match="is encrypted: remove its password first"):
        read(tmp_path / "locked.pdf")
    made_pdf(tmp_path / "scan.pdf", [""])
    with pytest.raises(NoText, match="has no text: a scan"):
        read(tmp_path / "scan.pdf")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    with pytest.raises(NoText, match="cannot be read as PDF"):
        read(tmp_path / "broken.pdf")


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="ab .\n#?é", max_size=600))
def test_pieces_cover_every_word_once_and_in_order(words):
    text = Text(words, "line", (0,), (1,))
    found = pieces(text)
    assert "".join(words[begin:end] for begin, end in found).split() == [] or found
    kept = "".join(re.sub(r"\s", "", words[begin:end]) for begin, end in found)
    assert kept == re.sub(r"\s", "", words)
    assert all(len(re.findall(r"\S{1,60}", words[begin:end])) <= MOST for begin, end in found)
    assert all(a[1] <= b[0] for a, b in pairwise(found))


def test_neighbours_are_merged_and_the_best_comes_first():
    text = Text("One. Two. Three. Four.", "line", (0,), (1,))
    chosen = [Passage("x", 0, 4, 1.0), Passage("x", 5, 9, 3.0), Passage("x", 17, 22, 2.0), Passage("y", 0, 4, 5.0)]
    made = passages(chosen, {"x": text, "y": text})
    assert [(one.document, one.begin, one.end, one.score) for one in made] == [
        ("y", 0, 4, 5.0),
        ("x", 0, 9, 3.0),
        ("x", 17, 22, 2.0),
    ]
