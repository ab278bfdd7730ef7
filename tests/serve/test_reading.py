"""What the GemFilter page is told: passages, shares along the text, and a whole question."""

from __future__ import annotations

import pytest

from assay.serve import reading


class Words:
    def decode(self, ids):
        return " ".join(str(id) for id in ids)


def test_passages_are_the_prompt_cut_where_keeping_changes():
    found = reading.passages(Words(), [10, 11, 12, 13, 14], [0, 3, 4])
    assert [(part["kept"], part["text"], part["tokens"]) for part in found] == [
        (True, "10", 1),
        (False, "11 12", 2),
        (True, "13 14", 2),
    ]
    assert reading.passages(Words(), [1, 2], []) == [{"kept": False, "text": "1 2", "tokens": 2}]


def test_shares_sum_up_to_what_was_kept():
    assert reading.shares([0, 1, 5], 10, columns=5) == [1.0, 0.0, 0.5, 0.0, 0.0]
    assert reading.shares([2], 3, columns=120) == [0.0, 0.0, 1.0], "a short text has fewer places"
    long = reading.shares(range(0, 1000, 2), 1000)
    assert sum(long) / len(long) == pytest.approx(0.5, abs=0.05)


def test_a_question_is_answered_with_what_was_kept(folder):
    pytest.importorskip("transformers", reason="language models need the extra llm")
    said = []
    asked = {
        "text": (folder / "text.txt").read_text(),
        "question": "",
        "keep": 40,
        "layer": None,
        "rule": "logits",
        "new": 2,
    }
    found = reading.read(str(folder), asked, said.append)
    assert (found["layer"], len(found["scan"])) == (1, 3)
    assert sum(part["tokens"] for part in found["passages"] if part["kept"]) == 40
    assert sum(part["tokens"] for part in found["passages"]) == found["tokens"]
    assert all(0 <= share <= 1 for row in found["scan"] for share in row)
    assert "scanning every layer" in said
    with pytest.raises(ValueError, match="has 3 layers"):
        reading.read(str(folder), {**asked, "layer": 3}, said.append)
