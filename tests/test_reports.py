"""Reports of methods: read, taken apart, kept in a file, drawn."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from assay._reports import NOT_SAVED, Report, chart, lines, plain


@dataclass(frozen=True, repr=False)
class Found(Report):
    name: str
    scores: Tensor
    large: Tensor = field(default_factory=lambda: torch.zeros(3), metadata=NOT_SAVED)

    def headline(self) -> str:
        return f"what {self.name} found"

    def table(self) -> list[dict[str, Any]]:
        return [{"place": place, "score": float(score)} for place, score in enumerate(self.scores)]

    def figure(self) -> Any:
        return chart(self.table()).mark_point().encode(x="place:Q", y="score:Q")


FOUND = Found("a probe", torch.tensor([0.25, math.nan]))


def test_a_report_reads_well():
    assert repr(FOUND) == "what a probe found\nplace  score\n    0   0.25\n    1      –"


def test_a_report_is_kept_as_json_without_what_is_large_or_not_finite(tmp_path):
    path = FOUND.save(tmp_path / "new" / "found.json")
    assert json.loads(path.read_text()) == {"report": "Found", "name": "a probe", "scores": [0.25, None]}


def test_a_report_is_drawn():
    pytest.importorskip("altair")
    drawn = FOUND.figure().to_dict()
    assert drawn["data"]["values"] == [{"place": 0, "score": 0.25}, {"place": 1, "score": None}]


def test_words_stand_left_and_numbers_right_and_long_tables_are_cut():
    rows = [{"who": "a", "n": 1}, {"who": "longer", "n": 100}]
    assert lines(rows) == "who       n\na         1\nlonger  100"
    assert lines([{"n": k} for k in range(40)]).endswith("... and 10 more rows")
    assert lines([]) == "(no rows)"


def test_anything_becomes_plain():
    assert plain({1: (torch.tensor(2.0), float("inf"), None, True)}) == {"1": [2.0, None, None, True]}
