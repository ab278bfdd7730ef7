"""What is reported about a run is what happened in it; how long it took is never asserted."""

import subprocess
import sys

import pytest
import torch

from assay.evaluation import measure as measuring
from assay.evaluation import profile
from assay.evaluation.measure import peak_counts, timed
from assay.evaluation.profiling import run_profiled
from assay.methods.gemfilter import H2O, FullAttention, GemFilter, OneRun, SnapKV
from assay.methods.gemfilter.cost import Shape, cache_bytes

GEM = GemFilter(layer=2, keep=20)


@pytest.mark.parametrize(
    ("method", "name", "kept", "cached"),
    [
        (GEM, "gemfilter", 20, 20),
        (FullAttention(), "full", 60, 60),
        (SnapKV(20, 8), "snapkv", 20, 20),
        (H2O(20, 8), "h2o", 20, 20),
        (OneRun(GEM), "one-run", 20, 20),
        (SnapKV(200, 8), "snapkv", 60, 60),
        (SnapKV(20, 8, per_query_head=True), "snapkv", 20, 80),
    ],
)
def test_a_run_is_counted_and_its_tokens_are_the_methods_own(llama, ids, method, name, kept, cached):
    made = run_profiled(llama, ids, method, 6)
    assert torch.equal(made.sequences, method.generate(llama, ids, max_new_tokens=6, do_sample=False))
    took = made.profile
    assert (took.method, took.prompt_tokens, took.kept_tokens, took.new_tokens) == (name, 60, kept, 6)
    decoded = 5 * (4 if getattr(method, "per_query_head", False) else 1)
    assert took.cache_bytes == cache_bytes(Shape.of(llama.config), cached + decoded, item=4)
    assert took.first_pass > 0
    assert 0 < took.token < took.second_pass
    assert (took.second_prefill > 0) is (name == "gemfilter")
    assert took.second_prefill < took.second_pass
    assert (made.selection is not None) is (name == "gemfilter")


def test_a_profile_has_a_row_per_length_and_method(llama):
    rows = profile(llama, [40, 60], [FullAttention(), SnapKV(20, 8), GEM], new=3, repeats=2)
    assert [(row.prompt_tokens, row.method) for row in rows] == [
        (n, name) for n in (40, 60) for name in ("full", "snapkv", "gemfilter")
    ]
    assert {row.new_tokens for row in rows} == {3}
    assert all(row.peak_bytes == max(row.first_peak, row.second_peak) for row in rows)
    with pytest.raises(ValueError, match="resolve layer='auto' first"):
        profile(llama, [40], [GemFilter(layer="auto")])
    with pytest.raises(ValueError, match="at least one round"):
        profile(llama, [40], [GEM], repeats=0)
    with pytest.raises(ValueError, match="one prompt"):
        run_profiled(llama, torch.ones(2, 30, dtype=torch.long), GEM)


def test_a_profile_counts_the_chunks_of_a_first_pass(llama, ids):
    assert run_profiled(llama, ids, GemFilter(layer=2, keep=20, chunk=20, overlap=6, tail=10), 2).profile.chunks == 4
    assert run_profiled(llama, ids, GEM, 2).profile.chunks == 0
    assert run_profiled(llama, ids, SnapKV(20, 8), 2).profile.chunks == 0


def test_an_answer_of_one_token_has_no_time_per_token(llama, ids):
    took = run_profiled(llama, ids, SnapKV(20, 8), 1).profile
    assert took.new_tokens == 1
    assert took.token == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux lets a process forget its peak")
def test_the_peak_of_a_piece_of_work_is_its_own():
    if peak_counts("cpu") != "the whole process":
        pytest.skip("this system does not let a process forget its peak")
    # In a process of its own: one that has freed much before takes the memory from there.
    code = (
        "import torch; from assay.evaluation.measure import timed\n"
        "for size in (2**26, 4): print(timed(lambda: torch.ones(size).sum(), 'cpu').peak_bytes)"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    large, small = map(int, made.stdout.split())
    assert large - small > 0.8 * 4 * 2**26


def test_without_a_way_to_forget_the_peak_counts_from_the_start(monkeypatch, tmp_path):
    monkeypatch.setattr(measuring, "_PROCESS", tmp_path / "nothing")
    assert peak_counts("cpu") == "the whole process since it started"
    assert measuring.peak_bytes("cpu") > 2**20
    monkeypatch.setitem(sys.modules, "resource", None)
    assert measuring.peak_bytes("cpu") is None
    assert peak_counts("cpu") == "not measured here"
    assert timed(lambda: 3, "cpu").peak_bytes is None
