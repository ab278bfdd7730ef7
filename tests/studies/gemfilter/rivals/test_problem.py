"""Questions in a fact's own words share some with it, and questions in other words none."""

import random

import pytest

from assay.studies.gemfilter.rivals.problem import WORDINGS, words_of

#: Words that say nothing about what is asked.
EMPTY = set(
    words_of("a an at by did does every for his in into its my of on our the their those to was what which with")
)


def shared(needle):
    return (set(words_of(needle.sentence)) & set(words_of(needle.question))) - EMPTY


@pytest.mark.parametrize("seed", range(40))
def test_words_in_common(seed):
    worded, paraphrased = (draw(random.Random(seed)) for draw in WORDINGS.values())
    assert len(shared(worded)) >= 3
    assert shared(paraphrased) == set()


@pytest.mark.parametrize("seed", range(40))
def test_the_fact_holds_the_answer_and_the_question_does_not(seed):
    for draw in WORDINGS.values():
        needle = draw(random.Random(seed))
        assert needle.answer in needle.sentence
        assert needle.answer not in needle.question
