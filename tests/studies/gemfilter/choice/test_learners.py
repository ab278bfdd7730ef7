"""The share of held-out needles that a choice keeps is a share of tokens, with their number."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

from assay.studies.gemfilter.choice.learners import TINY, choice_rows, loaded_model


def test_what_held_out_needles_keep_is_a_share_of_their_tokens():
    rows = choice_rows(loaded_model(TINY, "cpu"), seed=0, length=512, prompts=4)
    held = [row for row in rows if "held_out_recall" in row.metrics]
    assert len(held) == 1
    trials, share = held[0].trials, held[0].metrics["held_out_recall"]
    assert trials > 2 * 20  # two prompts judge, and a needle is a sentence in bytes
    assert share * trials == pytest.approx(round(share * trials))
    assert 0 <= share <= 1
