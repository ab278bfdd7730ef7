"""The benchmark's machinery on a tiny shape. What it measures is reported, never asserted here."""

import pytest
import torch

from assay import benchmarks
from assay.benchmarks import gemfilter_chunks as bench

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
PLAN = bench.Plan(TINY, 2, 40, 128, {600: (2, 2, 1), 1200: (2, 1, 0)})


def test_a_row_per_length_and_no_number_for_what_was_not_tried(monkeypatch, recwarn):
    monkeypatch.setattr(bench, "CPU", PLAN)
    result = benchmarks.run("gemfilter_chunks", "cpu")
    assert [row["tokens"] for row in result["rows"]] == [600, 1200]
    assert all(row["chunks to whole"] > 0 for row in result["rows"])
    assert [row["chunks to full"] is None for row in result["rows"]] == [False, True]
    assert result["chunk"] == 128
    assert not [one for one in recwarn if "at once exceed" in str(one.message)]
    assert benchmarks.table(result).row_count == 2


def test_memory_and_time_per_token_are_told_of_a_gpu():
    taken = bench.timed(lambda: None, "cpu")
    row = bench._row(1000, {"full": [], "whole": [taken], "chunks": [taken], "answer": [taken]}, "cuda")
    assert row["full s"] is None
    assert row["full GiB"] is None
    assert row["chunks µs per token"] >= 0
    assert row["whole GiB"] is not None


def test_the_filter_alone_reads_every_length():
    assert [len(found) for found in bench._filter_alone(PLAN, "cpu")] == [1, 1]


def test_what_does_not_fit_has_no_number():
    def too_large():
        raise torch.cuda.OutOfMemoryError

    assert bench._tried(too_large, "cpu") == []
