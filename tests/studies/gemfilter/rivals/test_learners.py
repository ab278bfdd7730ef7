"""Retrievers over windows: their ranking against a slow formula, and budgets that are equal to the filter's."""

import math

import pytest
import torch

pytest.importorskip("transformers", reason="the study's models need the extra llm")

from assay.studies.gemfilter.choice.learners import loaded_model
from assay.studies.gemfilter.chunks.learners import Reading
from assay.studies.gemfilter.rivals import learners

READING = Reading(1, "window", 256, (256,), (0.25, 0.5), ("manual",), 2)
WINDOWS = ["the cat sat on the mat", "a dog and a cat", "nothing of the kind here", "cat cat cat cat"]


@pytest.fixture(scope="module")
def loaded():
    return loaded_model("tiny", "cpu")


@pytest.fixture(scope="module")
def encoder():
    return learners.loaded_encoder("tiny", "cpu")


def test_bm25_is_its_formula():
    found = learners.bm25("the cat", WINDOWS)
    lengths = [len(window.split()) for window in WINDOWS]
    for place, window in enumerate(WINDOWS):
        expected = 0.0
        for word in ("the", "cat"):
            holding = sum(word in other.split() for other in WINDOWS)
            idf = math.log(1 + (4 - holding + 0.5) / (holding + 0.5))
            often = window.split().count(word)
            norm = 1.2 * (0.25 + 0.75 * lengths[place] / (sum(lengths) / 4))
            expected += idf * often * 2.2 / (often + norm)
        assert found[place].item() == pytest.approx(expected, rel=1e-5)


def test_bm25_ranks_as_the_package_does():
    package = pytest.importorskip("rank_bm25", reason="rank_bm25 is not installed")
    windows = [*WINDOWS, *(f"filler number {i} of many" for i in range(20))]
    theirs = package.BM25Okapi([window.split() for window in windows], k1=1.2)
    ours = learners.bm25("dog mat", windows).argsort(descending=True)[:2].tolist()
    assert ours == sorted(range(len(windows)), key=lambda i: -theirs.get_scores(["dog", "mat"])[i])[:2]


def test_an_encoder_finds_a_window_that_is_the_question(encoder):
    found = learners.dense(encoder, WINDOWS[2], WINDOWS, batch=2)
    assert found.argmax().item() == 2
    assert found[2].item() == pytest.approx(1, abs=1e-4)


def test_the_best_windows_fill_the_budget_beside_template_and_question(loaded):
    prompt, head = learners.rival_prompt(loaded, 0, "same words", 1536, READING)
    assert loaded.tokenizer.decode(prompt.ids[:head]).startswith("Read this long text")
    kept = learners.best_windows(prompt, head, loaded.tokenizer, learners.bm25, 64, 260)[0].tolist()
    assert len(kept) == len(set(kept)) == 260
    assert kept == sorted(kept)
    assert set(range(head)) | set(range(1536 - prompt.tail, 1536)) <= set(kept)


def test_bm25_keeps_a_fact_in_its_own_words(loaded):
    prompt, head = learners.rival_prompt(loaded, 0, "same words", 1536, READING)
    kept = learners.best_windows(prompt, head, loaded.tokenizer, learners.bm25, 64, 300)
    assert set(prompt.wanted) & set(kept[0].tolist())


def test_a_budget_without_room_for_a_window_is_refused(loaded):
    prompt, head = learners.rival_prompt(loaded, 0, "same words", 1536, READING)
    with pytest.raises(ValueError, match="leaves no room for windows"):
        learners.best_windows(prompt, head, loaded.tokenizer, learners.bm25, 64, 100)


def test_all_rivals_have_one_budget(loaded, encoder, monkeypatch):
    sizes = {}

    def runs(model, ids, kept, new):
        sizes.update({name: tuple(places.shape) for name, places in kept.items()})
        return {name: torch.zeros(1, new, dtype=torch.long) for name in kept}

    monkeypatch.setattr(learners, "second_runs", runs)
    windows = {"bm25": 64, "encoder": 32}
    rows = learners.rival_rows(loaded, encoder, 1, "other words", 2048, READING, windows)
    assert sizes == {"chunks": (1, 256), "bm25": (1, 256), "encoder": (1, 256)}
    assert [row.columns["method"] for row in rows[::2]] == ["chunks", "bm25", "encoder"]


def test_tuning_prompts_are_others(loaded, encoder):
    rows = learners.window_rows(loaded, encoder, 0, 2048, READING, (32, 64))
    assert [(row.columns["method"], row.columns["window"]) for row in rows] == [
        ("bm25", 32),
        ("bm25", 64),
        ("encoder", 32),
        ("encoder", 64),
    ]
    here, tuning = (learners.rival_prompt(loaded, seed, "same words", 2048, READING)[0] for seed in (0, 9000))
    assert here.ids != tuning.ids
