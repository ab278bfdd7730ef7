"""What the commands do, from Python: one question to several methods, and a needle test."""

import re

import pytest

from assay.evaluation import Needle
from assay.methods.gemfilter.comparing import METHODS, Comparison, ask
from assay.methods.gemfilter.needle_test import NeedleTest
from assay.networks import load_model

TEXT = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(20))


@pytest.fixture(scope="module")
def loaded(folder):
    return load_model(str(folder))


def test_a_question_is_answered_by_every_method(loaded):
    said = []
    made = ask(loaded, Comparison(METHODS, keep=40, layer=1), TEXT, "What is sentence number?", new=3, tell=said.append)
    assert list(made.answers) == list(METHODS)
    assert [row["kept_tokens"] for row in made.rows()] == [len(made.ids), 40, 40, 40, 40]
    assert made.facts() == f"40 of {len(made.ids)} tokens, chosen by layer 1 with 'logits'"
    assert len(made.selection.kept()) == 40
    assert said == []


def test_a_prompt_that_fits_is_not_filtered(loaded):
    said = []
    made = ask(loaded, Comparison(("gemfilter",), keep=500), TEXT, new=1, tell=said.append)
    assert "all fit into a budget of 500: nothing is filtered" in said[0]
    assert made.facts().startswith(f"all {len(made.ids)} tokens")
    assert ask(loaded, Comparison(("full",), keep=9), TEXT, new=1).selection is None


def test_prompts_beyond_the_context_are_told_of_and_read_in_chunks(loaded):
    said = []
    long = " ".join([TEXT] * 4)
    ask(loaded, Comparison(("gemfilter",), keep=40, layer=1), long, new=1, tell=said.append)
    assert len(said) == 1
    assert "tokens at once exceed the 512 that the model was trained for: GemFilter's chunk='auto'" in said[0]
    said.clear()
    cut = Comparison(("gemfilter",), keep=40, layer=1, chunk="auto")
    made = ask(loaded, cut, long, "What is sentence number?", new=1, tell=said.append)
    assert said == []
    assert made.facts().endswith(f"chosen by layer 1 with 'logits', {made.selection.chunks} chunks")
    assert made.selection.chunks > 3
    with pytest.raises(ValueError, match="one-run reads the prompt whole"):
        Comparison(("one-run",), chunk=64)


def test_a_question_about_nothing_is_refused(loaded):
    for text in ("", " \n"):
        with pytest.raises(ValueError, match="the text is empty: there is nothing to read"):
            ask(loaded, Comparison(layer=1), text, "What is sentence number?")


def test_needles_beyond_the_context_are_told_of_once(loaded):
    for methods in (("full", "snapkv"), ("gemfilter",), ("full", "gemfilter")):
        said = []
        NeedleTest(Comparison(methods, layer=1), [600], depths=2, haystack=TEXT).run(loaded, said.append)
        told = [number for number, sentence in enumerate(said) if "600 tokens at once exceed the 512" in sentence]
        assert len(told) == 1
        assert (told == [0]) == ("full" in methods)  # before the work begins


def test_chunks_end_in_the_whole_question(loaded):
    said, long, question = [], " ".join([TEXT] * 3), "What is sentence number " * 40 + "served?"
    cut = {"methods": ("gemfilter",), "keep": 40, "layer": 1, "chunk": 60}

    def tail(question, **more):
        said.clear()
        return ask(loaded, Comparison(**{**cut, **more}), long, question, new=1, tell=said.append).chosen.tail

    assert tail("What is sentence number?") == 128
    assert said == []
    # 40 times 4 words, and what the command puts around them, up to the next multiple of 16.
    assert tail(question) == 176
    assert said == []
    assert tail(question, tail=200) == 200
    assert said == []
    assert tail(question, tail=64) == 64
    (cut_off,) = said
    assert re.match(
        r"the question has 1\d\d tokens .* every chunk ends in the last 64 of them only: a longer tail", cut_off
    )
    assert tail(question * 2, chunk="auto") == 336
    assert any("the last 128 of them only: a chunk of a stated size holds all" in sentence for sentence in said)
    assert tail("") == 128
    assert said == [
        "no question is known apart from the text: the prompt's last 128 tokens stand behind every chunk, and a longer "
        "question among them needs a longer tail"
    ]
    for options in ({"tail": 100}, {"keep": 2000}, {"chunk": 2000, "keep": 0.9}):
        tail("", **options)
        assert not any("no question" in sentence for sentence in said)


def test_a_needle_test_asks_whole_questions_too(loaded):
    words = "What is sentence number " * 40
    needle = Needle("This is sentence number 7.", f"{words}served?", "number")
    test = NeedleTest(Comparison(("gemfilter",), layer=1, chunk=60), [400], depths=1, haystack=TEXT, needle=needle)
    short = NeedleTest(
        Comparison(("gemfilter",), layer=1, chunk=60, tail=64), [400], depths=1, haystack=TEXT, needle=needle
    )
    for one, told in ((test, 0), (short, 1)):
        said = []
        one.run(loaded, said.append)
        assert sum("the question has" in sentence for sentence in said) == told


def test_a_needle_test_has_rows_shares_and_scans(loaded):
    said = []
    test = NeedleTest(Comparison(("full", "gemfilter"), layer=1), [150, 200], depths=2, haystack=TEXT, scan=True)
    made = test.run(loaded, said.append)
    assert made.budgets == {150: 18, 200: 25}
    assert [(row["length"], row["method"], row["depth"]) for row in made.rows[:3]] == [
        (150, "full", 0.0),
        (150, "gemfilter", 0.0),
        (150, "full", 1.0),
    ]
    assert made.share("full", 150)[1] == 2
    assert list(made.scans) == [150, 200]
    assert set(made.scans[150].summary()) == {"rule", "stages", "recall"}
    assert any("in layers 0 to" in sentence for sentence in said)
    assert made.templated is False
    assert [(row["method"], row["length"], row["prompts"]) for row in made.table()][:2] == [
        ("full", 150, 2),
        ("gemfilter", 150, 2),
    ]
    assert made.to_dict()["report"] == "NeedleReport"
    assert "8 answers" in repr(made)
    pytest.importorskip("altair")
    assert made.figure().to_dict()["$schema"]


def test_words_that_mean_nothing_are_refused_without_a_model():
    for words, sentence in (
        ({"methods": ("magic",)}, "a method must be one of full, snapkv, h2o, one-run, gemfilter, not 'magic'"),
        ({"keep": 0}, "keep must be at least 1, not 0"),
        ({"rule": "best"}, "rule must be one of"),
        ({"layer": -1}, "layer must be at least 0"),
        ({"chunk": 64, "tail": 0}, "tail must be at least 1"),
        ({"chunk": 64, "tail": 8}, "tail must hold the 16 rows of the window, not 8 tokens"),
        ({"tail": 64}, "a tail stands behind every chunk: it goes with chunk only"),
    ):
        with pytest.raises(ValueError, match=sentence):
            Comparison(**words)
    for name in ("depths", "prompts"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, not 0"):
            NeedleTest(Comparison(), [100], **{name: 0})
    with pytest.raises(ValueError, match="the haystack is empty: leave it out for Python's manual"):
        NeedleTest(Comparison(), [100], haystack=" \n")
    with pytest.raises(ValueError, match="at least one method, or a scan"):
        NeedleTest(Comparison(()), [100])
    with pytest.raises(ValueError, match=r"needle must be one of ingredient, .* or your own as .*, not 'gold'"):
        NeedleTest(Comparison(), [100], needle="gold")
