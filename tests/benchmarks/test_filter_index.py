"""The benchmark's machinery on a tiny shape. What it measures is reported, never asserted here."""

import pytest

from assay import benchmarks
from assay.benchmarks import filter_index as bench

pytest.importorskip("transformers", reason="the benchmark needs the extra llm")
TINY = dict(
    vocab_size=97,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    max_position_embeddings=512,
)


def test_a_row_per_length_with_the_index_in_bytes(monkeypatch):
    monkeypatch.setattr(bench, "CPU", bench.Plan(TINY, 2, 128, (300, 600), 16, 2))
    result = benchmarks.run("filter_index", "cpu")
    assert [row["tokens"] for row in result["rows"]] == [300, 600]
    assert all(row["question to reading anew"] > 0 for row in result["rows"])
    small, large = (row["index MiB"] for row in result["rows"])
    assert large > small > 0
    assert "question s" not in result["rows"][0]
