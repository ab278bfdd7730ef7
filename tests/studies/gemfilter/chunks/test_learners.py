"""The arms that read in chunks, on a small random model: what they measure is what the method itself selects."""

from dataclasses import replace

import pytest
import torch

pytest.importorskip("transformers", reason="the study's models need the extra llm")

from assay.studies.gemfilter.choice.learners import loaded_model
from assay.studies.gemfilter.chunks import learners
from assay.studies.gemfilter.chunks.learners import Reading

READING = Reading(1, "window", 128, (128, 4096), (0.25, 0.5), ("manual",), 2)


@pytest.fixture(scope="module")
def loaded():
    """In float64, so that a selection does not hang on rounding."""
    made = loaded_model("tiny", "cpu")
    made.model.double()
    yield made
    made.model.float()


def by_method(rows, metric):
    return {row.columns["method"]: row.metrics[metric] for row in rows if metric in row.metrics and row.columns}


def test_a_chunk_that_holds_the_prompt_keeps_what_the_whole_prompt_does(loaded):
    found = by_method(learners.recall_rows(loaded, 0, "ingredient", 768, READING, within=True), "recall")
    assert set(found) == {"whole", "chunks of 128", "chunks of 4096", "no overlap", "anchor"}
    assert found["whole"] == found["chunks of 4096"]


def test_a_whole_prompt_is_read_with_its_own_layer_and_rule(loaded):
    tuned = replace(READING, whole_layer=2, whole_rule="logits")
    prompt = tuned.prompt(loaded, 0, "ingredient", 768)
    assert (tuned.whole(768).layer, tuned.whole(768).rule) == (2, "logits")
    assert (tuned.cut(prompt).layer, tuned.cut(prompt).rule) == (1, "window")
    kept = learners.kept_by(loaded, prompt, {"whole": tuned.whole(768), "one chunk": tuned.cut(prompt, 4096)})
    ids = torch.tensor([prompt.ids])
    assert torch.equal(kept["whole"], tuned.whole(768).select(loaded.model, ids).indices)
    assert not torch.equal(kept["whole"], kept["one chunk"])


def test_chunks_and_whole_prompts_have_each_their_width_of_pooling(loaded):
    tuned = replace(READING, kernel=9, whole_kernel=17)
    prompt = tuned.prompt(loaded, 0, "ingredient", 768)
    assert (tuned.whole(768).kernel, tuned.cut(prompt).kernel) == (17, 9)
    assert replace(tuned, whole_kernel=None).whole(768).kernel == 9
    one = {name: replace(tuned.cut(prompt), kernel=kernel) for name, kernel in (("narrow", 1), ("wide", 17))}
    kept = learners.kept_by(loaded, prompt, one)
    assert not torch.equal(kept["narrow"], kept["wide"]), "filters that pool otherwise are no one filter"


def test_one_word_facts_are_read_in_chunks_of_the_chosen_size(loaded):
    rows = learners.word_rows(loaded, 2, 768, READING)
    assert set(by_method(rows, "accuracy")) == {"chunks of 128"}
    own = learners.FURTHER + 2
    same = by_method(learners.recall_rows(loaded, own, "ingredient", 768, READING, within=False), "recall")
    assert by_method(rows, "recall") == {"chunks of 128": same["chunks of 128"]}


def test_further_answers_are_those_of_the_same_prompts_among_fewer_ways(loaded):
    rows = learners.answer_rows(loaded, 1, "passcode", 768, READING)
    every = learners.recall_rows(loaded, learners.FURTHER + 1, "passcode", 768, READING, within=True)
    for metric, ways in {"recall": {"whole"}, "accuracy": {"whole", "full"}}.items():
        found, among = by_method(rows, metric), by_method(every, metric)
        assert set(found) == ways | {"chunks of 128"}
        assert found == {way: among[way] for way in found}


def test_a_layer_is_chosen_on_chunks_and_on_whole_prompts(loaded):
    for chunk in (128, None):
        rows = learners.choice_rows(loaded, 0, 512, 4, chunk)
        assert 0 <= rows[0].metrics["chosen_layer"] < 3


def test_recall_is_that_of_the_methods_own_selection(loaded):
    prompt = READING.prompt(loaded, 3, "passcode", 768)
    ids = torch.tensor([prompt.ids])
    selection = READING.cut(prompt).select(loaded.model, ids)
    found = by_method(learners.recall_rows(loaded, 3, "passcode", 768, READING, within=False), "recall")
    assert found["chunks of 128"] == pytest.approx(selection.recall(prompt.wanted))
    assert "whole" not in found


def test_answers_are_those_of_generation_from_the_kept_tokens(loaded, monkeypatch):
    prompt = READING.prompt(loaded, 1, "ingredient", 768)
    ids, said = torch.tensor([prompt.ids]), []
    monkeypatch.setattr(type(prompt.task), "right", lambda _, text: bool(said.append(text)))
    rows = learners.recall_rows(loaded, 1, "ingredient", 768, READING, within=True)
    methods = ["whole", "chunks of 128", "chunks of 4096", "no overlap", "anchor", "full"]
    assert list(by_method(rows, "accuracy")) == methods
    options = {"max_new_tokens": 2, "do_sample": False}
    ours = READING.cut(prompt).generate(loaded.model, ids, **options)
    full = loaded.model.generate(ids, **options)
    expected = [loaded.tokenizer.decode(made[0, 768:]) for made in (ours, full)]
    assert [said[1], said[-1]] == expected


def test_evidence_in_several_places_is_counted_whole_and_by_its_last_fact(loaded):
    rows = learners.far_rows(loaded, 0, "four facts", 1024, READING)
    assert set(by_method(rows, "recall")) == {"whole", "chunks"}
    last = next(row for row in rows if "last_recall" in row.metrics)
    everything = next(row for row in rows if "recall" in row.metrics)
    assert last.trials < everything.trials


def test_a_list_counts_the_things_that_each_reading_names(loaded, monkeypatch):
    told = {"whole": 3, "chunks": 5, "full": 8}

    def said(model, prompt, kept, new, *, full):
        assert (set(kept), full, new) == ({"whole", "chunks"}, True, 8)
        things = [forms[0] for forms in prompt.task.answers]
        return {name: ", ".join(things[:count]) for name, count in told.items()}

    monkeypatch.setattr(learners, "_said", said)
    rows = learners.list_rows(loaded, 0, 1024, READING)
    assert by_method(rows, "named") == {name: count / 8 for name, count in told.items()}
    assert {row.trials for row in rows if "named" in row.metrics} == {8}
    assert set(by_method(rows, "recall")) == {"whole", "chunks"}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_order_of_chunks_changes_no_more_than_pooling_may(loaded, seed):
    rows = learners.control_rows(loaded, seed, 768, READING)
    (changed,) = [row.metrics["changed"] for row in rows if "changed" in row.metrics]
    assert 0 <= changed <= 1
    cases = ["asked", "no question", "another fact", "cut, no overlap", "cut, overlap"]
    assert list(by_method(rows, "recall")) == cases


def test_without_pooling_the_order_of_chunks_changes_nothing(loaded, monkeypatch):
    usual = Reading.cut
    monkeypatch.setattr(Reading, "cut", lambda *given, **options: usual(*given, **options, pooling=None))
    prompt = READING.prompt(loaded, 0, "activity", 768)
    assert learners._permuted_row(loaded, prompt, 0, READING).metrics == {"changed": 0.0}


def test_a_fact_that_is_moved_lies_across_a_boundary(loaded):
    prompt = READING.prompt(loaded, 0, "ingredient", 768)
    even = learners._even(prompt, 128)
    layout = READING.cut(prompt, even, overlap=0).layout(loaded.model, 768)
    start = layout.starts[layout.chunks // 2]
    assert layout.chunks > 2
    places = learners.moved_to(prompt, start - len(prompt.at[0]) // 2).at[0]
    assert places[0] < start < places[-1]


def test_seeds_take_depths_and_texts_in_turn():
    reading = replace(READING, depths=(0.0, 0.5, 1.0), haystacks=("manual", "library"))
    assert [reading.place(seed) for seed in (0, 1, 5)] == [(0.0, "manual"), (0.5, "library"), (1.0, "library")]


def test_a_budget_is_an_eighth_and_no_more_than_the_texts():
    assert [READING.whole(length).keep for length in (2048, 8192, 131_072)] == [256, 1024, 1024]
