"""Facts in several places: where they stand, what a right answer is, and prompts with pieces exchanged."""

import itertools
import random

import pytest

pytest.importorskip("transformers", reason="the study's models need the extra llm")

from assay.studies.gemfilter.choice.learners import loaded_model
from assay.studies.gemfilter.chunks.problem import (
    FAR,
    LISTED,
    Task,
    asked,
    haystack_of,
    listed,
    moved_to,
    one_fact,
    permuted,
)


@pytest.fixture(scope="module")
def tokenizer():
    return loaded_model("tiny", "cpu").tokenizer


def made(tokenizer, task, depth=0.25, **options):
    task = FAR[task](random.Random(3)) if isinstance(task, str) else task
    return asked(tokenizer, task, 1200, depth, seed=1, haystack="manual", **options)


@pytest.mark.parametrize("task", FAR)
def test_every_fact_stands_where_it_is_said_to(tokenizer, task):
    prompt = made(tokenizer, task)
    assert len(prompt.ids) == 1200
    assert len(prompt.at) == len(prompt.task.sentences)
    for places, sentence in zip(prompt.at, prompt.task.sentences, strict=True):
        assert tokenizer.decode([prompt.ids[place] for place in places]) == f"\n{sentence}\n"
    assert len(set(prompt.wanted)) == sum(map(len, prompt.at))
    assert prompt.task.question in tokenizer.decode(prompt.ids[-prompt.tail :])


@pytest.mark.parametrize("task", FAR)
def test_the_facts_themselves_hold_the_answer(task):
    found = FAR[task](random.Random(3))
    if task != "number":
        assert found.right(" ".join(found.sentences))
    assert not found.right("I do not know.")


def test_a_list_is_spread_over_the_whole_text_and_counted_by_its_things(tokenizer):
    task = listed(random.Random(3))
    prompt = made(tokenizer, task, depth=0.0)
    starts = sorted(places[0] for places in prompt.at)
    gaps = [after - before for before, after in itertools.pairwise([0, *starts, 1200])]
    assert len(starts) == LISTED
    assert max(gaps) < 2 * 1200 / LISTED, "an eighth of the text apart, but for what sentences are long"
    things = [forms[0] for forms in task.answers]
    assert task.named(" and ".join(things).upper()) == 1
    assert task.named(f"They sold {things[3]}, {things[0]} and {things[3]}.") == 2 / LISTED
    assert task.named("I do not know.") == 0
    assert not any(thing in task.question for thing in things)


def test_the_facts_of_a_hop_stand_side_by_side_or_half_the_text_apart(tokenizer):
    near, away = (made(tokenizer, f"two hops, {where}") for where in ("side by side", "far apart"))
    assert near.at[1][0] == near.at[0][-1] + 1
    assert away.at[1][0] - away.at[0][-1] > 300


def test_the_second_fact_of_a_hop_is_not_named():
    found = FAR["two hops, far apart"](random.Random(3))
    name = found.sentences[1].split()[0]
    assert name in found.sentences[0]
    assert name not in found.question


def test_an_order_is_the_texts(tokenizer):
    prompt = made(tokenizer, "order", depth=0.75)
    assert prompt.at[0][0] < prompt.at[1][0]


def test_a_right_answer_has_one_form_of_each_and_nothing_wrong_before():
    several = Task(("a",), (0.0,), "?", (("two", "2"), ("Riga",)))
    assert several.right("There are 2 in RIGA.")
    assert not several.right("two")
    first = Task(("a",), (0.0,), "?", (("Clara",),), wrong="Hugo")
    assert first.right("Clara, then Hugo")
    assert not first.right("Hugo, then Clara")


def test_another_question_leaves_the_text_alone(tokenizer):
    task = one_fact(random.Random(3), "passcode")
    asked_for, silent = made(tokenizer, task), made(tokenizer, task, question="")
    assert silent.tail < asked_for.tail
    assert task.question not in tokenizer.decode(silent.ids)
    assert task.sentences[0] in tokenizer.decode(silent.ids)


def test_a_fact_is_moved_with_all_its_tokens(tokenizer):
    prompt = made(tokenizer, one_fact(random.Random(3), "activity"))
    moved = moved_to(prompt, 700)
    assert moved.at == [list(range(700, 700 + len(prompt.at[0])))]
    assert sorted(moved.ids) == sorted(prompt.ids)
    assert [moved.ids[i] for i in moved.at[0]] == [prompt.ids[i] for i in prompt.at[0]]


def test_pieces_in_another_order_know_where_they_were():
    mixed, origin = permuted(list("abcdefgh"), [0, 2, 4], 2, [2, 0, 1])
    assert mixed == list("efabcdgh")
    assert [list("abcdefgh")[place] for place in origin] == mixed


def test_a_folder_is_a_haystack(tmp_path):
    (tmp_path / "notes.md").write_text("A quiet line.\n" * 2000)
    assert haystack_of(str(tmp_path)).startswith("A quiet line. A quiet line.")
    (tmp_path / "notes.md").write_text("Short.")
    with pytest.raises(ValueError, match="a haystack has at least"):
        haystack_of(str(tmp_path))
