from __future__ import annotations

from assay.studies.universality_tradeoff.text.problem import MADE, load_texts


def test_made_up_sentences_have_two_classes_and_share_none_between_splits():
    train, test = (load_texts(MADE, split) for split in ("train", "test"))
    assert set(train.labels.tolist()) == set(test.labels.tolist()) == {0, 1}
    assert not set(train.texts) & set(test.texts)
