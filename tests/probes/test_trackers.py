"""Probes that watch a training, driven by hand, by Hugging Face's Trainer and by Lightning's calls."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from assay.methods import ForwardMagnitudePruner
from assay.probes import DirectionTracker, GradientConsistency, LinearProbe, RepresentationTracker

INPUTS = torch.randn(64, 6, generator=torch.Generator().manual_seed(0))
LABELS = (INPUTS[:, 0] > 0).long()


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))


WATCHERS = {
    "consistency": GradientConsistency(["0"], chunks=2, steps_per_chunk=2),
    "directions": DirectionTracker("0", every=2),
    "representation": RepresentationTracker("1", steps=(0, 2, 4)),
}


def seen(name, record):
    """What a record of four steps holds."""
    if name == "representation":
        report = record.report((INPUTS, LABELS), (INPUTS, LABELS), scalings=["rescaled"])
        return [row.snapshot for row in report]
    return list(record.report()) if name == "consistency" else list(record.report().steps)


@pytest.mark.parametrize("name", WATCHERS)
def test_lightnings_calls_drive_it_and_hooks_come_off(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    monkeypatch.setitem(sys.modules, "pytorch_lightning", types.SimpleNamespace(Callback=object))
    callback, model, trainer = WATCHERS[name].lightning_callback(), network(), types.SimpleNamespace(global_step=0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    callback.on_train_start(trainer, model)
    for step in range(8):  # two batches to a step
        cross_entropy(model(INPUTS), LABELS).backward()
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()
            trainer.global_step += 1
        callback.on_train_batch_end(trainer, model, None, None, step)
    callback.on_train_epoch_end(trainer, model)
    callback.on_exception(trainer, model, RuntimeError("stopped"))
    assert seen(name, callback.record) == {"consistency": ["0.weight"]}.get(name, [0, 2, 4])
    assert not any(parameter._post_accumulate_grad_hooks for parameter in model.parameters())


@pytest.mark.parametrize("name", WATCHERS)
def test_hugging_faces_trainer_drives_it(name, tmp_path, capsys):
    transformers = pytest.importorskip("transformers", reason="needs the extra llm")
    pytest.importorskip("accelerate")

    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x, labels):
            logits = self.inner(x)
            return {"loss": cross_entropy(logits, labels), "logits": logits}

    settings = {
        "consistency": GradientConsistency(["inner.0"], chunks=2, steps_per_chunk=2),
        "directions": DirectionTracker("inner.0", every=2),
        "representation": RepresentationTracker("inner.1", steps=(0, 2, 4)),
    }[name]
    arguments = transformers.TrainingArguments(
        str(tmp_path),
        max_steps=4,
        per_device_train_batch_size=16,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        save_strategy="no",
    )
    data = [{"x": x, "labels": y} for x, y in zip(INPUTS, LABELS, strict=True)]
    callback, model = settings.trainer_callback(), Wrapped()
    transformers.Trainer(model, arguments, train_dataset=data, callbacks=[callback]).train()
    if name != "representation":
        assert seen(name, callback.record) == {"consistency": ["inner.0.weight"]}.get(name, [0, 2, 4])
    else:
        assert list(callback.record.snapshots) == [0, 2, 4]
    assert not any(parameter._post_accumulate_grad_hooks for parameter in model.parameters())


def test_a_trainer_ends_the_pruners_epochs(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    monkeypatch.setitem(sys.modules, "pytorch_lightning", types.SimpleNamespace(Callback=object))
    model = network()
    pruner = ForwardMagnitudePruner(model, alpha=0.5)
    callback, trainer = pruner.lightning_callback(), types.SimpleNamespace(global_step=0)
    callback.on_train_start(trainer, model)
    before = pruner.masks["0"].clone()
    with torch.no_grad():
        model[0].weight.copy_(model[0].weight.flip(0))
    callback.on_train_epoch_end(trainer, model)
    assert torch.equal(pruner.masks["0"], before.flip(0))


def test_directions_turn_and_a_dead_layer_is_refused():
    model = network()
    record = DirectionTracker("0", torch.eye(6)[:1], every=1).begin(model)
    with torch.no_grad():
        model[0].weight.copy_(-model[0].weight)
    record.step()
    found = record.report()
    torch.testing.assert_close(found.turned[1], -torch.ones(8))
    assert found.maps[0].references.shape == (1, 2)
    with torch.no_grad():
        model[0].weight.zero_()
    record.step()
    with pytest.raises(ValueError, match="no row of '0'"):
        record.report()
    with torch.no_grad():
        model[0].weight.fill_(torch.nan)
    with pytest.raises(ValueError, match="must be finite"):
        record.step()


def test_the_probe_is_an_estimator():
    sklearn = pytest.importorskip("sklearn.model_selection")
    words = np.array(["no", "yes"])[LABELS.numpy()]
    probe = LinearProbe(penalty=1e-3).fit(INPUTS.numpy(), words)
    assert probe.score(INPUTS.numpy(), words) > 0.95
    assert probe.predict_proba(INPUTS.numpy()).sum(1) == pytest.approx(1)
    assert probe.decision_function(INPUTS.numpy()).shape == (64,)
    assert sklearn.cross_val_score(LinearProbe(), INPUTS.numpy(), words, cv=3).mean() > 0.8
    with pytest.raises(ValueError, match="two classes"):
        LinearProbe().fit(INPUTS.numpy(), np.zeros(64, dtype=int))
