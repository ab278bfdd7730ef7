from __future__ import annotations

import json
import math

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay.probes import rank_report, stable_rank


def matrix(rows, dim, seed=0):
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def by_svd(features):
    values = torch.linalg.svdvals(features)
    return float(values.square().sum() / values[0] ** 2)


def test_known_values():
    assert float(stable_rank(torch.outer(matrix(1, 7)[0], matrix(1, 4, 1)[0]))) == pytest.approx(1)
    orthonormal = torch.linalg.qr(matrix(9, 5))[0]
    assert float(stable_rank(orthonormal)) == pytest.approx(5)
    assert float(stable_rank(torch.diag(torch.tensor([2.0, 1.0, 1.0])))) == pytest.approx(1.5)
    assert float(stable_rank(torch.zeros(4, 3))) == 0


@pytest.mark.parametrize("shape", [(40, 6), (5, 12), (1, 3)])
@pytest.mark.parametrize("center", [False, True])
def test_against_the_singular_values(shape, center):
    features = matrix(*shape) + 1
    used = features - features.mean(0) if center else features
    expected = by_svd(used) if float(used.norm()) > 1e-9 else 0.0
    assert float(stable_rank(features, center)) == pytest.approx(expected)
    stack = torch.stack([features, 2 * features])
    assert stable_rank(stack, center, stacked=True).tolist() == pytest.approx([expected] * 2)


def test_chunks_are_one_set():
    features = matrix(100, 6)
    whole = stable_rank(features, center=True)
    chunks = (part.numpy() for part in features.split(17))
    torch.testing.assert_close(stable_rank(chunks, center=True), whole)


def test_the_report_has_all_three_and_only_one_moves_with_the_scale():
    features = matrix(60, 5) + 3
    small, large = rank_report(features), rank_report(10 * features)
    assert small.stable == pytest.approx(by_svd(features))
    assert small.centred == pytest.approx(by_svd(features - features.mean(0)))
    assert (large.stable, large.centred) == pytest.approx((small.stable, small.centred))
    assert large.scaled == pytest.approx(10 * small.scaled), "the printed formula is no rank"
    assert small.spectrum == pytest.approx(torch.linalg.svdvals(features).tolist())
    values = torch.linalg.svdvals(features)
    assert small.ratio == pytest.approx(float(values.sum() / features.norm()))


def test_a_constant_feature_has_no_centred_rank():
    report = rank_report(torch.full((50, 4), 1e4, dtype=torch.float64))
    assert (report.stable, report.centred) == (pytest.approx(1), 0)


def test_the_features_of_a_layer_over_a_loader():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 2)).train()
    inputs = torch.randn(30, 4)
    expected = rank_report(model[2](model[0](inputs)).detach())
    loader = DataLoader(TensorDataset(inputs, torch.zeros(30)), batch_size=7)
    for batches in (inputs, inputs.numpy(), {"input": inputs}, (inputs, torch.zeros(30)), loader):
        assert rank_report(batches, model=model).stable == pytest.approx(expected.stable, rel=1e-4)
    assert rank_report(inputs, model=model, layer="0", at="output").dim == 8
    assert model.training
    assert model[1].training
    assert not model[3]._forward_hooks


def test_the_report_is_kept_and_drawn(tmp_path):
    report = rank_report(matrix(20, 4))
    assert "stable rank" in repr(report)
    assert json.loads(report.save(tmp_path / "rank.json").read_text())["dim"] == 4
    assert len(report.table()) == 4
    assert len(report.figure().to_dict()["data"]["values"]) == 8


def test_refusals():
    with pytest.raises(ValueError, match="must be finite"):
        stable_rank(torch.tensor([[math.nan, 1.0]]))
    with pytest.raises(ValueError, match=r"\(rows, dim\)"):
        stable_rank(torch.ones(3))
    with pytest.raises(ValueError, match="no features were given"):
        stable_rank([])
    with pytest.raises(ValueError, match="all chunks must have 3 columns"):
        stable_rank([torch.ones(2, 3), torch.ones(2, 4)])
    with pytest.raises(ValueError, match="has no layer"):
        rank_report(torch.ones(2, 3), model=nn.Linear(3, 2), layer="x")
