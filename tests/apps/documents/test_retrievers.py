"""Rankings of passages: counted words against the known package, a filter against its index, budgets."""

import json
import runpy
from pathlib import Path

import pytest

from assay.apps.documents import BM25, RETRIEVERS, Filter, Library, chosen_passages
from assay.apps.documents.answering import prompt_text
from assay.apps.documents.retrievers import framed
from assay.evaluation.retrieval import words_of
from assay.methods.gemfilter import FilterIndex, FolderStore, GemFilter
from assay.methods.gemfilter.models import load_filter

TEXTS = {
    "bees.md": "# Bees\n\nBees dance to tell where the flowers are. The dance is a figure of eight.\n",
    "rust.md": "# Rust\n\nIron rusts where water and air meet it. Paint keeps them apart, and so does zinc.\n",
    "story.md": " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(60)),
}


@pytest.fixture
def library(tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    return Library.of([tmp_path])


@pytest.fixture
def used(folder, tmp_path):
    loaded = load_filter(str(folder), layer=1)
    chosen = GemFilter(1, rule="window", pooling=None, chunk=100)
    return Filter(FilterIndex(loaded.model, chosen, FolderStore(tmp_path / "index")), loaded.tokenizer)


def test_counted_words_are_those_of_the_known_package(library):
    known = pytest.importorskip("rank_bm25", reason="rank_bm25 is not installed")
    question = "the flowers and a figure"
    texts = [text for one in library.documents.values() for text in one.words]
    ours = [score for scores in BM25().scores(question, library).values() for score in scores]
    theirs = known.BM25Okapi([words_of(text) for text in texts], k1=1.5, b=0.75).get_scores(words_of(question))
    best = max(range(len(texts)), key=lambda place: ours[place])
    assert best == theirs.argmax()
    assert "flowers" in texts[best]


def test_a_budget_holds_whole_passages_and_one_at_least(library):
    scores = BM25().scores("what keeps water and air from iron", library)
    count = lambda text: len(text.split())  # noqa: E731
    (best,) = chosen_passages(library, scores, 1, count)
    assert best.document.endswith("rust.md")
    chosen = chosen_passages(library, scores, 120, count)
    total = sum(count(library.documents[one.document].text.text[one.begin : one.end]) for one in chosen)
    assert 60 < total <= 120
    prompt = prompt_text("Why?", chosen, library)
    assert prompt.index("story.md:") < prompt.index("rust.md:") < prompt.index("Iron rusts") < prompt.rindex("Why?")


def test_a_filter_scores_passages_by_their_tokens_and_reads_what_changed(library, used, tmp_path):
    took = used.prepare(library)
    assert took.read > 5
    scores = used.scores("What is the secret of the story?", library)
    assert {name: len(values) for name, values in scores.items()} == {
        name: len(one.pieces) for name, one in library.documents.items()
    }
    found = used.index.select(framed(used.tokenizer, "What is the secret of the story?")[1])
    best = max(scores, key=lambda name: max(scores[name]))
    assert max(scores[best]) <= max(float(tokens.max()) for tokens in found.scores.values())
    assert used.prepare(library).read == 0
    (tmp_path / "bees.md").write_text("Bees sleep.")
    (tmp_path / "rust.md").unlink()
    took = used.prepare(Library.of([tmp_path / name for name in ("bees.md", "story.md")]))
    assert (took.read, took.removed) == (1, 0), "what was not asked about stays"
    took = used.prepare(Library.of([tmp_path]))
    assert (took.read, took.removed) == (0, 1)


def test_a_damaged_chunk_is_read_again(library, used, tmp_path):
    used.prepare(library)
    expected = used.scores("What is it?", library)
    for path in list((tmp_path / "index").glob("chunks/*/*.safetensors"))[:2]:
        path.write_bytes(b"broken")
    made = used.scores("What is it?", library)
    assert all(made[name] == pytest.approx(expected[name]) for name in expected)


def test_the_questions_name_pages_that_exist_in_other_words():
    rows = json.loads((Path(__file__).parent / "questions.json").read_text())
    root = Path(__file__).parents[3]
    judged = [row for row in rows if row["use"] == "judged"]
    assert len(judged) >= 40
    assert len({row["question"] for row in rows}) == len(rows)
    assert all((root / name).exists() for row in rows for name in row["files"])


def test_the_guide_shows_what_was_measured_and_the_default_is_not_worse():
    here = Path(__file__).parent
    root = here.parents[2]
    script = runpy.run_path(str(here / "compare_retrievers.py"))
    made = json.loads((root / "results/retrievers.json").read_text())
    assert script["table"](made) in (root / "docs/ask.md").read_text()
    judged = {row["question"] for row in script["questions"]("judged")}
    assert tuple(made["retrievers"]) == RETRIEVERS
    for one in made["retrievers"].values():
        assert set(one["ranks"]) == judged
        summary = script["summary"](list(one["ranks"].values()))
        assert summary == {name: one[name] for name in summary}
    default, *others = made["retrievers"].values()
    assert all(script["differences"](default, other)["rank"][2] > 0 for other in others), "another is better for sure"
