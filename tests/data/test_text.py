import os
from pathlib import Path

import pytest

from assay.data.catalog import DataUnavailable, UnknownData, available
from assay.data.text import load_text

WORDS = ["good", "bad", "fine", "dull", "new", "old"]
LABELS = [1, 0, 1, 0, 2, 2]


@pytest.mark.parametrize("column", ["sentence", "text"])
def test_texts_are_read_in_order(shelf, column):
    shelf.table("mine", {"idx": range(6), column: WORDS, "label": LABELS})
    loaded = load_text("mine")
    assert loaded.texts == tuple(WORDS)
    assert loaded.labels.tolist() == LABELS
    assert (loaded.name, loaded.classes, len(loaded)) == ("mine", 3, 6)
    assert available("mine", "text") is None


def test_a_limit_keeps_the_first_texts_and_all_classes(shelf):
    shelf.table("mine", {"text": WORDS, "label": LABELS})
    loaded = load_text("mine", "test", limit=2)
    assert (loaded.texts, loaded.labels.tolist(), loaded.classes) == (("good", "bad"), [1, 0], 3)


def test_the_labelled_split_is_the_test_split(shelf):
    shelf.table("sst2", {"sentence": WORDS, "label": LABELS}, ("train", "validation"))
    shelf.table("sst2", {"sentence": WORDS, "label": [-1] * 6}, ("test",))  # as the hub has it
    assert load_text("sst2", "test").labels.tolist() == LABELS


def test_the_hub_is_read_when_a_known_set_is_named(hub):
    hub.serves["stanfordnlp/sst2", "validation"] = {"sentence": WORDS, "label": LABELS}
    loaded = load_text("sst2", "test", limit=5)
    assert (loaded.texts, loaded.classes) == (tuple(WORDS[:5]), 3)
    with pytest.raises(
        DataUnavailable, match=r"text set 'ag_news' is not on this machine.*did not give fancyzhx/ag_news"
    ):
        load_text("ag_news")
    assert hub.asked == [("stanfordnlp/sst2", None, "validation"), ("fancyzhx/ag_news", None, "train")]


def test_unknown_names_and_other_kinds_are_refused(shelf):
    with pytest.raises(UnknownData, match=r"unknown text set 'sst' \(allowed: sst2, ag_news, or.*did you mean 'sst2'"):
        load_text("sst")
    with pytest.raises(UnknownData, match="'mnist' is no text set but an image set"):
        load_text("mnist")


@pytest.mark.parametrize("arguments", [{"split": "validation"}, {"limit": 0}])
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ValueError, match=r"split|limit"):
        load_text("sst2", **arguments)


@pytest.mark.parametrize("texts", [["a", None], [1, 2]])
def test_what_is_no_text_is_refused(shelf, texts):
    shelf.table("mine", {"text": texts, "label": [0, 1]})
    with pytest.raises(DataUnavailable, match="the texts of 'mine' must be strings in every row"):
        load_text("mine")


@pytest.mark.data
@pytest.mark.skipif(not Path(os.environ.get("ASSAY_DATA", ""), "sst2").is_dir(), reason="no sst2 in $ASSAY_DATA")
def test_the_real_sst2_is_read():
    held_out = load_text("sst2", "test")
    assert (len(held_out), held_out.classes) == (872, 2)
