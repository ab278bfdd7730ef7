"""The page of an answer, seen in a browser without a network: every passage is marked, and everything is escaped."""

from pathlib import Path

from assay.apps.documents import Answered, Document, Library, Passage, page
from assay.apps.documents.passages import pieces
from assay.apps.documents.reading import Text

WORDS = "<script>alert('no')</script> Bees dance. " + "Nothing happens here. " * 60 + "Wasps do not & never will."


def answered():
    text = Text(WORDS, "line", (0, 400), (1, 9))
    library = Library({"a/b.md": Document("a/b.md", Path("b.md"), text, pieces(text))}, {}, ())
    first, last = WORDS.index("Bees"), WORDS.index("Wasps")
    chosen = [Passage("a/b.md", last, len(WORDS), 0.5), Passage("a/b.md", first, first + 11, 0.25)]
    return Answered("Who <dances>?", "Bees.", chosen, library, {"model": "tiny", "keep": 64})


def test_the_page_marks_its_passages_and_runs_nobodys_script(tmp_path, open_page):
    (tmp_path / "x.html").write_text(page(answered()))
    for theme in ("light", "dark"):
        shown = open_page(f"file://{tmp_path}/x.html", theme=theme, width=420 if theme == "dark" else 1300)
        assert shown.locator("h1").inner_text() == "Who <dances>?"
        assert shown.locator("mark").all_inner_texts() == ["Bees dance.", "Wasps do not & never will."]
        assert shown.locator("ol.cited a").all_inner_texts() == ["a/b.md, line 9", "a/b.md, line 1"]
        assert shown.locator(".gap").count() == 1
        assert shown.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        shown.locator("ol.cited a").first.click()
        assert shown.url.endswith("#p1")


def test_rows_have_places_and_texts():
    rows = answered().rows()
    assert [(row["first"], row["last"], row["unit"]) for row in rows] == [(9, 9, "line"), (1, 1, "line")]
    assert answered().to_dict()["passages"][1]["text"] == "Bees dance."
