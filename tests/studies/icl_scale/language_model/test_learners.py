from __future__ import annotations

import pytest
from pydantic import ValidationError

from assay.networks.pretrained import why_absent
from assay.studies.icl_scale.language_model.arms import Params
from assay.studies.icl_scale.language_model.learners import (
    TEXTS,
    attention_ratios,
    flipped_labels,
    loaded_model,
    texts,
)


def test_texts_without_label_words_are_refused():
    with pytest.raises(ValidationError, match="no label words for 'reviews'"):
        Params(text_sets=("reviews",))
    assert Params(text_sets=("sst2", "ag_news")).text_requirements()[2:] == ("data:sst2", "data:ag_news")


def test_templates_have_room_for_a_text_and_a_label():
    for each in TEXTS.values():
        assert each.template.format(text="a", label=each.labels[0]).endswith(f"{each.labels[0]}.")


def test_made_up_sentences_are_balanced_and_not_shared_by_the_splits():
    shown, labels = texts("sentences", "train")
    asked, _ = texts("sentences", "test")
    assert 2 * sum(labels) == len(labels) == len(shown)
    assert not set(shown) & set(asked)
    assert Params(text_sets=("sentences",)).text_requirements() == ("extra:llm", "model:smollm2")


@pytest.mark.llm
@pytest.mark.skipif(bool(why_absent("smollm2")), reason="needs smollm2")
def test_a_real_model_is_asked():
    loaded = loaded_model("smollm2", "cpu")
    report = flipped_labels(loaded, "sentences", [0, 1], demonstrations=2, queries=4)
    assert report.values("auc").shape == (2, 5)
    ratios = attention_ratios(loaded, "sentences", 0, count=2)
    assert set(ratios) == {"correct", "wrong"}
    assert min(ratios.values()) > 0
