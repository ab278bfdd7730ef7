"""The benchmarks' machinery. What they measure is reported, never asserted here."""

import json

import pytest
import torch

from assay import benchmarks
from assay.benchmarks import ensembles
from assay.lab.errors import UserError
from assay.training.seeds import Seeds


def test_both_sides_train_the_same_networks():
    size = ensembles.Size("tiny", 5, 8, 16, 10)
    together = Seeds((0, 1, 2), dtype=torch.float64)
    joint = ensembles.train(size, together, ensembles._data(size, together))
    for seed in together:
        alone = Seeds((seed,), dtype=torch.float64)
        single = ensembles.train(size, alone, ensembles._data(size, alone))
        assert torch.allclose(joint[seed], single[0])
    start = together.normal("weights", 8, 5) * 5**-0.5
    assert not torch.allclose(joint, start)


def test_ensembles_reports_every_size(monkeypatch, tmp_path):
    sizes = (ensembles.Size("tiny", 5, 8, 16, 2), ensembles.Size("other", 6, 8, 16, 2))
    monkeypatch.setattr(ensembles, "SIZES", sizes)
    result = benchmarks.run("ensembles", "cpu")
    assert [row["size"] for row in result["rows"]] == ["tiny", "other"]
    assert all(row["ratio"] > 0 for row in result["rows"])
    path = benchmarks.save(result, tmp_path)
    assert json.loads(path.read_text())["benchmark"] == "ensembles"


def test_unknown_benchmarks_are_refused():
    with pytest.raises(UserError, match="unknown benchmark 'speed'"):
        benchmarks.chosen(["speed"])
