import pytest
import torch

pytest.importorskip("transformers", reason="the random models are of a class of transformers")

from assay.methods.gemfilter import FullAttention, SnapKV, share_prefill
from assay.studies.gemfilter.exact.learners import _cached_sets, exact_rows, random_model


def test_exact_statements_hold():
    rows = exact_rows(0, 3, 96, 40, 4, "cpu")
    apart = [(name, value) for row in rows for name, value in row.metrics.items() if "apart" in name]
    assert len(apart) >= 15
    assert all(abs(value) < 1e-3 for _, value in apart)
    run = next(row.metrics for row in rows if "layers_run" in row.metrics)
    assert run == {"layers_run": 3, "layers_wrong": 0}
    sets = {row.columns["method"]: row.metrics["index_sets"] for row in rows if "index_sets" in row.metrics}
    assert sets["gemfilter"] == 1 < sets["snapkv"]


def test_different_index_sets_of_a_cache_are_counted():
    model, ids = random_model(0), torch.randint(3, 97, (1, 64), generator=torch.Generator().manual_seed(0))
    full, snapkv = share_prefill(model, ids, [FullAttention(), SnapKV(20, 8)])
    assert _cached_sets(full, full) == {tuple(range(64))}
    assert len(_cached_sets(full, snapkv)) > 1
