"""The whole test on stub models whose behaviour is known, and what it refuses."""

import pytest
import torch

from assay.methods import FlippedLabels
from assay.methods.flipped_labels.prompts import Texts, draw
from assay.networks import toy_language_model

WORDS = ("negative", "positive")
SMALL = FlippedLabels(WORDS, demonstrations=8, queries=12, seeds=4)


def test_a_model_that_copies_is_mirrored_about_one_half(copying, films):
    report = SMALL.run(*copying, films, progress=False)
    raw, auc = report.values("raw"), report.values("auc")
    assert torch.equal(raw[:, 0], torch.ones(4, dtype=torch.double))
    assert torch.equal(raw, 1 - raw.flip(1))
    assert torch.equal(auc, 1 - auc.flip(1))
    assert report.change().estimate == -1
    assert report.override("raw").estimate == 1
    assert "override" in report.reading()


def test_a_model_that_knows_is_not_moved(knowing, films):
    report = SMALL.run(*knowing, films, progress=False)
    assert bool((report.values("balanced") == 1).all())
    assert report.change("raw").estimate == 0
    assert report.override().estimate == 0
    assert "not overridden" in report.reading()


def test_the_two_are_compared_on_the_same_draws(copying, knowing, films):
    reports = [SMALL.run(*each, films, progress=False) for each in (copying, knowing)]
    assert reports[0].against(reports[1], "raw").compared() == "below"
    other = FlippedLabels(WORDS, demonstrations=8, queries=12, seeds=(7, 8, 9, 10)).run(*knowing, films, progress=False)
    with pytest.raises(ValueError, match="the same draws"):
        reports[0].against(other)
    renamed = ([text.replace("film", "book") for text in films[0]], films[1])
    with pytest.raises(ValueError, match="the same draws"):
        reports[1].against(SMALL.run(*knowing, renamed, progress=False))


def test_the_querys_own_label_is_never_flipped(knowing, films):
    report = SMALL.run(*knowing, films, progress=False)
    assert bool((report.truth.double().mean(1) == 0.5).all())
    expected = [[int("fine" in films[0][i]) for i in _draw(seed, films).queries] for seed in range(4)]
    assert report.truth.tolist() == expected


def _draw(seed, films):
    data = Texts(tuple(films[0]), tuple(films[1]))
    return draw(seed, data, data, demonstrations=8, queries=12, balanced=True, shared=True)


def test_at_the_two_ends_prompts_differ_in_every_label(films):
    none, every = (SMALL.prompts(films, fraction=fraction) for fraction in (0.0, 1.0))
    swapped = [p.replace("positive", "?").replace("negative", "positive").replace("?", "negative") for p in none]
    assert swapped == every
    assert len(set(none)) == 12
    assert all(each.count("The answer is") == 9 and each.endswith("The answer is") for each in none)
    assert SMALL.prompts(films, seed=1) != none
    with pytest.raises(ValueError, match="a fraction must lie"):
        SMALL.prompts(films, fraction=2)


def test_each_query_may_have_demonstrations_of_its_own(knowing, films):
    model, tokenizer = knowing
    report = FlippedLabels(WORDS, demonstrations=4, queries=6, seeds=1, fractions=(0, 1), shared=False).run(
        model, tokenizer, films, progress=False
    )
    assert report.scores.shape == (1, 2, 6, 2)
    beginnings = {tuple(pieces[:12]) for pieces in model.seen}
    assert len(beginnings) > 1


def test_separate_queries_and_labels_of_any_integers(knowing, films):
    texts, labels = films
    pool = (texts[:40], [10 * label - 3 for label in labels[:40]])
    asked = {"sentence": texts[40:], "label": torch.tensor(labels[40:], dtype=torch.int16) * 10 - 3}
    report = SMALL.run(*knowing, pool, asked, name="m", data="films", progress=False)
    assert float(report.values("raw").mean()) == 1
    assert repr(report).startswith("m on films: 2 labels, 8 demonstrations, 12 queries, 4 seeds; ")


def test_seeds_do_not_depend_on_each_other(copying, films):
    three = FlippedLabels(WORDS, demonstrations=8, queries=12, seeds=3).run(*copying, films, progress=False)
    one = FlippedLabels(WORDS, demonstrations=8, queries=12, seeds=[2]).run(*copying, films, progress=False)
    assert torch.equal(three.scores[2], one.scores[0])


def test_a_language_model_of_a_moment(films):
    toy = toy_language_model([*films[0], "sentence: The answer is positive. negative.\n"])
    report = SMALL.run(toy.model, toy.tokenizer, films, progress=False)
    assert report.scores.shape == (4, 5, 12, 2)
    assert bool((report.scores < 0).all())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": "positive"}, "two words or more"),
        ({"labels": ("one",)}, "two words or more"),
        ({"fractions": (0, 1.5)}, r"a fraction must lie in \[0, 1\]"),
        ({"fractions": (float("nan"),)}, "a fraction must be a number"),
        ({"fractions": ()}, "at least one share"),
        ({"demonstrations": 0}, "demonstrations must be at least 1"),
        ({"queries": 1}, "queries must be at least 2"),
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"seeds": [1, 1]}, "different integers"),
        ({"words": (9, 3)}, "most words of a text must be at least 9"),
        ({"several_tokens": "max"}, "several_tokens must be one of refuse, sum, mean"),
        ({"template": "{text}"}, "template"),
    ],
)
def test_bad_settings(change, words):
    with pytest.raises(ValueError, match=words):
        FlippedLabels(**{"labels": WORDS, **change})


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (([], []), "the pool is empty"),
        ((["a b"] * 5, [0, 1, 2, 0, 1]), r"labels \[0, 1, 2\], and there are 2 words"),
        ((["a", "b"], [0, 1]), "there are only"),
    ],
)
def test_bad_pools(knowing, pool, words):
    with pytest.raises(ValueError, match=words):
        SMALL.run(*knowing, pool, progress=False)


def test_no_text_of_the_wanted_length(knowing, films):
    with pytest.raises(ValueError, match="no text of the pool has 50 to 60 words"):
        FlippedLabels(WORDS, words=(50, 60)).run(*knowing, films)


def test_well_known_sets():
    assert FlippedLabels.usual("sst2", seeds=3) == FlippedLabels(WORDS, seeds=3, words=(6, 20))
    assert len(FlippedLabels.usual("ag_news").labels) == 4
    with pytest.raises(ValueError, match="data must be one of sst2, ag_news"):
        FlippedLabels.usual("imdb")


def test_flips():
    assert FlippedLabels(WORDS, demonstrations=5, fractions=(1, 0, 0.5)).flips() == [0, 3, 5]
