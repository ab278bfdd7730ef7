from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import torch

from assay._reports import NOT_SAVED, Report, lines_of, plain


@dataclass(frozen=True)
class Part:
    value: float


@dataclass(frozen=True, repr=False)
class Example(Report):
    name: str
    values: torch.Tensor
    parts: tuple[Part, ...]
    large: torch.Tensor = field(metadata=NOT_SAVED)

    def headline(self) -> str:
        return f"{self.name} was found"

    def table(self):
        return [{"part": i, "value": part.value, "note": None} for i, part in enumerate(self.parts)]


def example() -> Example:
    return Example("it", torch.tensor([1.0, float("nan")]), (Part(0.25), Part(float("inf"))), torch.zeros(3))


def test_a_report_is_saved_as_plain_json(tmp_path):
    example().save(tmp_path / "report.json")
    found = json.loads((tmp_path / "report.json").read_text())
    assert found == {"name": "it", "values": [1.0, None], "parts": [{"value": 0.25}, {"value": None}]}
    assert plain({1: np.float32(0.5), "tensor": torch.tensor(2)}) == {"1": 0.5, "tensor": 2}


def test_a_report_reads_as_lines():
    assert repr(example()).splitlines() == [
        "it was found",
        "part  value  note",
        "   0   0.25     -",
        "   1    inf     -",
    ]
    assert lines_of([]) == []
    assert lines_of([{"a": float("nan"), "b": "word"}]) == ["a     b", "-  word"]
