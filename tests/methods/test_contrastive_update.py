"""Contrastive update, then probe."""

import json
import math

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay.methods import ContrastiveUpdate


def draw(count, seed):
    """Two features that views keep tell the class; eight large ones are redrawn in every view."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 2
    kept = 0.8 * torch.randn(count, 2, generator=generator) + (2.0 * labels - 1)[:, None]
    return torch.cat([kept, 3 * torch.randn(count, 8, generator=generator)], 1), labels


def redrawn(inputs):
    return torch.cat([inputs[:, :2], 3 * torch.randn_like(inputs[:, 2:])], 1)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 4))


UPDATE = ContrastiveUpdate(steps=40, learning_rate=0.02)


def test_the_update_brings_forward_what_views_share():
    model = net()
    report = UPDATE.probe(
        model, draw(400, 0)[0], draw(200, 1), draw(400, 2), augment=redrawn, budgets=(8, 32), seeds=4, show=False
    )
    assert all(gain.low > 0 for gain in report.gains())
    assert all(last < first for first, last in report.losses)
    assert "helps" in repr(report)


def test_the_model_and_the_generators_are_as_they_were():
    model, inputs = net().eval(), draw(100, 0)[0]
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    one, again, other = (UPDATE.apply(model, inputs, augment=redrawn, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not one.model.training
    assert torch.equal(one.model[0].weight, again.model[0].weight)
    assert not torch.equal(one.model[0].weight, other.model[0].weight)
    with pytest.raises(ZeroDivisionError):
        UPDATE.apply(model, inputs, augment=lambda _: 1 / 0, seed=0)
    assert torch.equal(torch.get_rng_state(), state)


def test_inside_autocast_the_conclusion_is_the_same():
    inputs = draw(200, 0)[0]
    plain = UPDATE.apply(net(), inputs, augment=redrawn, seed=0).losses
    with torch.autocast("cpu", torch.bfloat16):
        half = UPDATE.apply(net(), inputs, augment=redrawn, seed=0).losses
    fall = plain[0] - plain[-1]
    assert half[0] - half[-1] == pytest.approx(fall, rel=0.1)


def test_loaders_dropout_and_embeddings():
    inputs, labels = draw(96, 0)
    loader = DataLoader(TensorDataset(inputs, labels), batch_size=32)
    assert len(UPDATE.apply(net(), loader, augment=redrawn, seed=0).losses) == 40
    dropped = nn.Sequential(net(), nn.Dropout(0.3))
    assert all(map(math.isfinite, UPDATE.apply(dropped, inputs, augment="dropout", seed=0).losses))
    views = torch.stack([redrawn(inputs) for _ in range(3)], 1)
    losses = UPDATE.apply(net(), views, augment="embeddings", seed=0).losses
    assert losses[-1] < losses[0]


def test_the_report_is_read_saved_and_drawn(tmp_path):
    report = ContrastiveUpdate(steps=2).probe(
        net(), draw(64, 0)[0], draw(60, 1), draw(60, 2), augment=redrawn, budgets=(8,), seeds=3
    )
    assert list(report.table()[0]) == ["labels", "before", "after", "gain", "low", "high"]
    assert json.loads(report.save(tmp_path / "update.json").read_text())["curve"]["names"] == ["before", "after"]
    pytest.importorskip("altair")
    assert report.figure().to_dict()["hconcat"]


def test_refusals():
    inputs = draw(64, 0)[0]
    for wrong, message in (
        (lambda: ContrastiveUpdate(steps=0), "steps must be at least 1"),
        (lambda: ContrastiveUpdate(loss="byol"), "loss must be one of"),
        (lambda: UPDATE.apply(net(), inputs, augment="dropout", seed=0), "no dropout"),
        (lambda: UPDATE.apply(net().requires_grad_(False), inputs, augment=redrawn, seed=0), "no trainable"),
        (lambda: UPDATE.apply(net(), inputs / 0, augment=redrawn, seed=0), "not finite"),
        (lambda: UPDATE.apply(net(), inputs, augment="crop", seed=0), "augment must be one of"),
        (lambda: UPDATE.apply(net(), inputs[:, None], augment="embeddings", seed=0), "at least two views"),
        (lambda: UPDATE.apply(net(), inputs, augment="embeddings", seed=0), r"\(n, views, dim\)"),
        (lambda: UPDATE.apply(net(), inputs, augment=redrawn, seed="a"), "seed must be an integer"),
        (lambda: UPDATE.apply(net(), inputs, augment=redrawn, seed=-1), "seed must be at least 0"),
        (lambda: UPDATE.apply(net(), inputs[:0], augment=redrawn, seed=0), "unlabelled holds no sample"),
        (lambda: UPDATE.apply(net(), DataLoader(inputs[:0]), augment=redrawn, seed=0), "unlabelled holds no sample"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
