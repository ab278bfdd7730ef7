"""Budgets of labels beyond what there is are refused by name, before anything is planned, and never cut in silence."""

from __future__ import annotations

import polars as pl
import pytest
import torch
from torch import nn

from assay import lab
from assay.data.images import ImageSet, load_images
from assay.data.text import TextSet
from assay.lab import UserError, discovery
from assay.studies.universality_tradeoff.fine_tuning.learners import labelled
from assay.studies.universality_tradeoff.images.learners import accuracies
from assay.studies.universality_tradeoff.images.params import DIGITS, training_images
from assay.studies.universality_tradeoff.text.learners import labelled_texts
from assay.studies.universality_tradeoff.text.params import training_texts

STUDY = "universality-tradeoff"


def points(arm, preset="laptop", **overrides):
    study = discovery.studies()[STUDY]
    return study.arms[arm].points(study.resolve(preset, overrides))


def test_how_many_digits_there_are():
    assert len(load_images("digits", "train")) == DIGITS


@pytest.mark.parametrize(
    ("arm", "overrides", "words"),
    [
        (
            "images",
            {"image_labels": "20,1400", "image_limit": "2000"},
            "image_labels asks for 1,400 .* digits has 1,352",
        ),
        ("moco", {"image_labels": "20,1301"}, "digits has 1,300 to train on .* at most 1,300"),
        ("image-decay", {"image_labels": "20,1400"}, "digits has 1,300"),
        ("fine-tuning", {"tuned_labels": "20,1400", "image_limit": "2000"}, "tuned_labels asks for 1,400"),
        ("ft-tuning", {"tuned_labels": "20,700"}, "half of them, .* at most 650"),
        ("text", {"text_sets": "sentences", "text_labels": "41"}, "sentences has 40 to train on: ask for at most 40"),
        ("text-adapter", {"text_sets": "sentences", "text_labels": "16", "adapter_held": "9"}, "at most 15"),
    ],
)
def test_more_labels_than_there_are_get_one_sentence(arm, overrides, words):
    with pytest.raises(UserError, match=words) as refusal:
        points(arm, **overrides)
    assert "\n" not in str(refusal.value)
    with pytest.raises(UserError, match=words):
        lab.plan(STUDY, arms=arm, set=overrides)
    assert points(arm)  # as it is usually asked for


def test_sets_of_the_data_folder_are_counted(tmp_path, monkeypatch):
    folder = tmp_path / "ag_news"
    folder.mkdir()
    rows = {"text": [f"words {k}" for k in range(10)], "label": [k % 4 for k in range(10)]}
    for shard in range(2):
        pl.DataFrame(rows).write_parquet(folder / f"train-0000{shard}-of-00002.parquet")
    pl.DataFrame(rows).write_parquet(folder / "test-00000-of-00001.parquet")
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    assert training_texts("ag_news") == 20
    assert training_images("mnist") is None  # it is not here
    with pytest.raises(UserError, match="text_labels asks for 4,000 labelled texts, and ag_news has 20"):
        points("text", "paper", text_sets="ag_news")


def test_the_paper_preset_fits_the_part_of_ag_news_that_is_at_hand():
    params = discovery.studies()[STUDY].resolve("paper", {})
    assert 2 * max(params.text_labels) + params.adapter_held <= 10_001


def test_no_learner_cuts_a_budget():
    images = torch.rand(60, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    digits = ImageSet(images, torch.arange(60) % 3, "digits", 3)
    assert len(accuracies(nn.Flatten(), digits, digits, (20, 60), 0, 1)) == 2
    with pytest.raises(ValueError, match="each of budgets must lie in"):
        accuracies(nn.Flatten(), digits, digits, (20, 100), 0, 1)
    with pytest.raises(ValueError, match="digits has 60 images to train on, and 61 are asked for"):
        labelled(digits, 61, 0)
    with pytest.raises(ValueError, match="news has 2 texts, and 3 are asked for"):
        labelled_texts(TextSet(("a", "b"), torch.tensor([0, 1]), "news", 2), 3, 0)
