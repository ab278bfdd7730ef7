"""What a seed draws, and what a prompt says."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.data.text import TextSet
from assay.methods.flipped_labels.prompts import (
    Texts,
    draw,
    labelled_texts,
    prompt,
    shown_labels,
    template_parts,
)

POOL = Texts(tuple(f"text {i}" for i in range(60)), tuple(i % 3 for i in range(60)))


def test_the_prompt_is_the_template_of_the_source():
    shown = [("show us a good time", "positive"), ("as dumb and cheesy", "negative")]
    made = prompt("sentence: {text}\nThe answer is {label}.", "\n\n", shown, "a charming journey")
    assert made == (
        "sentence: show us a good time\nThe answer is positive.\n\n"
        "sentence: as dumb and cheesy\nThe answer is negative.\n\n"
        "sentence: a charming journey\nThe answer is"
    )


def test_texts_with_braces_are_left_alone():
    made = prompt("{text} ->{label}", "\n", [("{label} {text} {", "yes")], "{0}")
    assert made == "{label} {text} { ->yes\n{0} ->"


@pytest.mark.parametrize("template", ["{text}", "{label} {text}", "{text} {text} {label}", "nothing"])
def test_a_template_that_cannot_be_filled_is_refused(template):
    with pytest.raises(ValueError, match="template"):
        template_parts(template)


@given(seed=st.integers(0, 50), count=st.integers(1, 30), balanced=st.booleans(), fraction=st.floats(0, 1))
def test_flips_are_nested_counted_and_balanced(seed, count, balanced, fraction):
    drawn = draw(seed, POOL, POOL, demonstrations=count, queries=6, balanced=balanced, shared=True)
    (shown,), (order,) = drawn.demonstrations, drawn.order
    labels = [POOL.labels[i] for i in shown]
    assert sorted(order) == list(range(count))
    assert len(set(shown)) == count
    some, more = (shown_labels(labels, order, each, 3) for each in (fraction / 2, fraction))
    changed = [{i for i in range(count) if made[i] != labels[i]} for made in (some, more)]
    assert changed[0] <= changed[1]
    assert len(changed[1]) == int(fraction * count + 0.5)
    assert all(more[i] == (labels[i] + 1) % 3 for i in changed[1])
    if balanced:
        counts = [sum(labels[i] == label for i in changed[1]) for label in set(labels)]
        least = min(labels.count(label) for label in set(labels))
        assert max(counts) - min(counts) <= 1 or min(counts) == least


def test_at_both_ends_the_labels_are_complements():
    labels, order = [0, 1, 1, 0], (2, 0, 1, 3)
    assert shown_labels(labels, order, 0.0, 2) == labels
    assert shown_labels(labels, order, 1.0, 2) == [1 - label for label in labels]
    assert shown_labels(labels, order, 0.5, 2) == [1, 1, 0, 0]


@given(seed=st.integers(0, 20), shared=st.booleans())
def test_a_query_is_never_its_own_demonstration(seed, shared):
    drawn = draw(seed, POOL, POOL, demonstrations=12, queries=9, balanced=True, shared=shared)
    for number, query in enumerate(drawn.queries):
        assert query not in drawn.demonstrations[0 if shared else number]
    assert len(drawn.demonstrations) == (1 if shared else 9)
    assert sorted(POOL.labels[i] for i in drawn.queries) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_draws_come_from_the_seed_alone():
    options = dict(demonstrations=6, queries=6, balanced=True, shared=True)
    before = torch.get_rng_state()
    assert draw(3, POOL, POOL, **options) == draw(3, POOL, POOL, **options) != draw(4, POOL, POOL, **options)
    assert torch.equal(torch.get_rng_state(), before)


def test_too_few_texts_are_counted():
    few = Texts(("a", "b", "c"), (0, 0, 1))
    with pytest.raises(ValueError, match="2 queries of label 1 are to be drawn, and there are only 1"):
        draw(0, few, few, demonstrations=1, queries=4, balanced=True, shared=True)
    with pytest.raises(ValueError, match="demonstrations are to be drawn, and there are only 1 texts"):
        draw(0, few, few, demonstrations=2, queries=2, balanced=False, shared=True)


@pytest.mark.parametrize(
    "data",
    [
        (["a", "b"], [0, 1]),
        (("a", "b"), np.array([0, 1], dtype=np.int32)),
        (["a", "b"], torch.tensor([0, 1])),
        {"text": ["a", "b"], "label": [0, 1]},
        {"sentence": ["a", "b"], "label": [False, True]},
        TextSet(("a", "b"), torch.tensor([0, 1]), "two", 2),
    ],
)
def test_data_of_every_form_are_the_same(data):
    assert labelled_texts(data, "pool") == (["a", "b"], [0, 1])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (7, "pair of texts and labels"),
        ({"words": ["a"], "label": [0]}, "columns text"),
        (([1, 2], [0, 1]), "must be strings"),
        ((["a", "b"], [0]), "one integer label for each of 2"),
        ((["a", "b"], [0.5, 1.0]), "integer label"),
    ],
)
def test_other_data_are_refused(data, words):
    with pytest.raises(ValueError, match=words):
        labelled_texts(data, "pool")
