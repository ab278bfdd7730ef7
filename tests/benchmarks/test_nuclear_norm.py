"""The benchmark's machinery at a small size. What it measures is reported, never asserted here."""

import pytest
import torch

from assay import benchmarks
from assay.benchmarks import nuclear_norm
from assay.methods import NuclearNorm

pytest.importorskip("transformers", reason="the benchmark needs the extra llm")
TINY = nuclear_norm.Plan(rows=8, dim=64, side=32, repeats=2)


def test_a_row_per_network_and_solver(monkeypatch):
    monkeypatch.setattr(nuclear_norm, "CPU", TINY)
    result = benchmarks.run("nuclear_norm", "cpu")
    assert [(row["network"], row["solver"]) for row in result["rows"]] == [
        (name, solver) for name in ("two layers", "ResNet-50") for solver in ("svd", "gram")
    ]
    assert all(row["penalty / step"] > 0 for row in result["rows"])


def test_the_penalised_step_penalises_and_leaves_no_hook():
    model, shape = nuclear_norm.resnet(TINY)
    inputs, labels = torch.randn(8, *shape), torch.arange(8)
    before = torch.nn.utils.parameters_to_vector(model.parameters()).clone()
    nuclear_norm.Step(model, inputs, labels, NuclearNorm(warmup=0))()
    assert not torch.equal(before, torch.nn.utils.parameters_to_vector(model.parameters()))
    assert not any(module._forward_hooks for module in model.modules())
