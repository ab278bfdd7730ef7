import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.evaluation import Needle, needle_grid, needle_prompt, prose, rouge1
from assay.evaluation.needle_kinds import NEEDLES, SANDWICH
from assay.evaluation.needles import hide

TEXT = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(200))


@pytest.mark.parametrize("depth", [0.0, 0.3, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("chat", [False, True])
def test_a_prompt_has_its_length_and_its_needle_where_it_says(tokenizer, depth, chat):
    tokenizer.chat_template = "yes" if chat else None
    made = needle_prompt(tokenizer, 300, depth, seed=4, haystack=TEXT)
    assert len(made.input_ids) == 300
    assert made.chat is chat
    assert tokenizer.decode(made.input_ids[i] for i in made.needle_at).strip() == made.needle.sentence
    assert tokenizer.decode(made.input_ids[i] for i in made.answer_at).strip() == made.needle.answer
    whole = tokenizer.decode(made.input_ids)
    assert whole.count(made.needle.sentence) == 1
    assert made.needle.question in whole[-200:]
    assert ("<model>" in whole) is chat
    before = tokenizer.decode(made.input_ids[: made.needle_at[0]]).rstrip()
    assert depth == 1 or before.endswith(".")


def test_depth_moves_the_needle(tokenizer):
    places = [needle_prompt(tokenizer, 400, d, haystack=TEXT).needle_at[0] for d in (0, 0.25, 0.5, 0.75, 1)]
    assert places == sorted(set(places))


def test_seeds_draw_needles_and_haystacks_and_repeat(tokenizer):
    first, again, other = (needle_prompt(tokenizer, 300, 0.5, seed=s, haystack=TEXT) for s in (1, 1, 2))
    assert first == again
    assert first.input_ids != other.input_ids


def test_a_grid_covers_every_cell(tokenizer):
    grid = list(needle_grid(tokenizer, [200, 300], [0, 0.5, 1], 2, haystack=TEXT))
    assert len(grid) == 12
    assert len({tuple(p.input_ids) for p in grid}) == 12


def test_the_default_haystack_is_prose_that_every_python_has(tokenizer):
    made = needle_prompt(tokenizer, 500, 0.5)
    assert len(made.input_ids) == 500


def test_a_prompt_longer_than_the_haystack_goes_through_it_again(tokenizer):
    made = needle_prompt(tokenizer, 5000, 0.5, haystack=TEXT)
    assert len(made.input_ids) == 5000
    assert tokenizer.decode(made.input_ids).count(made.needle.sentence) == 1


def test_the_answers_tokens_are_found_where_single_tokens_decode_without_their_blank(tokenizer):
    class Stripping(type(tokenizer)):
        def decode(self, tokens, **_):
            return super().decode(tokens).removeprefix(" ")

    made = needle_prompt(Stripping(), 300, 0.5, haystack=TEXT)
    assert made.answer_at


def test_answers_are_marked(tokenizer):
    made = needle_prompt(tokenizer, 300, 0.5, needle=SANDWICH, haystack=TEXT)
    assert made.right("You should Eat a sandwich and sit in Dolores Park on a sunny day, clearly.")
    assert not made.right("You should visit a museum.")


def test_what_cannot_be_built_is_refused(tokenizer):
    with pytest.raises(ValueError, match="no room for a haystack"):
        needle_prompt(tokenizer, 40, 0.5, haystack=TEXT)
    with pytest.raises(ValueError, match="needles are ingredient"):
        needle_prompt(tokenizer, 300, 0.5, haystack=TEXT, needle="gold")
    with pytest.raises(ValueError, match="depth must lie between 0 and 1"):
        needle_prompt(tokenizer, 300, 50, haystack=TEXT)


@given(st.integers(0, 10_000))
def test_needles_hold_their_answer_once(seed):
    for kind in set(NEEDLES) - {"sandwich"}:
        needle = NEEDLES[kind](random.Random(seed))
        assert needle.sentence.count(needle.answer) == 1
        assert needle.answer not in needle.question


def test_a_needle_is_read_from_one_line():
    needle = Needle.of("The gate opens at nine. | When does the gate open? | nine")
    assert needle == Needle("The gate opens at nine.", "When does the gate open?", "nine")
    for text, sentence in (
        ("one|two", "is written 'sentence.question.answer'"),
        ("a|b|", "is written 'sentence.question.answer'"),
        ("The gate opens at nine.|When?|ten", "does not hold its answer 'ten'"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Needle.of(text)


def test_prose_of_several_kinds_is_what_the_machine_has(monkeypatch):
    found = prose.haystacks()
    assert "manual" in found
    assert all(len(text) >= 20_000 for text in found.values())
    monkeypatch.setattr(prose.metadata, "distributions", list)
    monkeypatch.setattr(prose, "KINDS", {**prose.KINDS, "licences": prose.licence_text.__wrapped__})
    assert "licences" not in prose.haystacks()


def test_halves_of_a_text_share_no_sentence():
    first, second = prose.halves(TEXT)
    assert f"{first} {second}" == TEXT
    assert first.endswith(".")
    assert prose.halves("no full stop here") == ("no full", "stop here")


def test_rouge_counts_words_with_multiplicity():
    assert rouge1("a b c d", "a b c d") == 1.0
    assert rouge1("a b c d", "A, b!") == pytest.approx(2 * 2 / 6)
    assert rouge1("a b", "a a a a") == pytest.approx(2 * 1 / 6)
    assert rouge1("a b", "") == 0.0


def test_a_haystack_without_full_stops_has_all_depths(tokenizer):
    text = " ".join(f"word{i}" for i in range(400))
    places = [needle_prompt(tokenizer, 200, depth, haystack=text).needle_at[0] for depth in (0.0, 0.25, 0.5, 0.75)]
    assert len(set(places)) == 4
    assert places == sorted(places)


def test_several_sentences_are_hidden_at_their_depths(tokenizer):
    sentences = ["The first fact is red.", "The second fact is blue."]
    made = hide(tokenizer, sentences, "Which facts?", 300, [0.8, 0.2], draw=random.Random(1), haystack=TEXT)
    assert len(made.input_ids) == 300
    assert made.at[1][-1] < made.at[0][0]
    for places, sentence in zip(made.at, sentences, strict=True):
        assert tokenizer.decode([made.input_ids[place] for place in places]).strip() == sentence
    assert "Which facts?" in tokenizer.decode(made.input_ids[-made.tail :])
    with pytest.raises(ValueError, match="depth must lie"):
        hide(tokenizer, sentences, "Which facts?", 300, [0.8, 2], draw=random.Random(1), haystack=TEXT)


def test_sentences_at_one_depth_keep_their_order(tokenizer):
    made = hide(
        tokenizer, ["One is here.", "Two is here."], "Which?", 300, [0.5, 0.5], draw=random.Random(1), haystack=TEXT
    )
    assert made.at[1][0] == made.at[0][-1] + 1


def test_the_standard_library_is_prose_too():
    text = prose.library_text()
    assert len(text) > 100_000
    assert "\n\n" not in text
