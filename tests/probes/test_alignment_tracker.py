from __future__ import annotations

import json
import math
import sys
import types

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from assay.probes.alignment_tracker import AlignmentTracker

DIM, UNITS = 6, 10


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network() -> nn.Sequential:
    model = nn.Sequential(nn.Linear(DIM, UNITS), nn.ReLU(), nn.Dropout(0.5), nn.Linear(UNITS, 1))
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=generator(number)))
    return model


def probe_inputs() -> Tensor:
    return torch.randn(40, DIM, generator=generator(9))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, each=lambda: None) -> list[Tensor]:
    kept = [model[0].weight.detach().clone()]
    for step in range(steps):
        inputs = torch.randn(32, DIM, generator=generator(100 + step))
        optimizer.zero_grad()
        (model(inputs).squeeze(1) - inputs[:, 0]).square().mean().backward()
        optimizer.step()
        each()
        kept.append(model[0].weight.detach().clone())
    return kept


def test_numbers_are_those_of_the_definition():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    directions = torch.eye(DIM)[:3]
    with AlignmentTracker("0", directions, probe_inputs(), every=2).attach(model, optimizer) as record:
        torch.manual_seed(0)
        weights = train(model, optimizer, 6)
    found = record.report()
    assert found.steps == (0, 1, 2, 4, 6)
    assert found.own.tolist() == nn.functional.normalize(weights[1])[:, :3].abs().argmax(1).tolist()
    for place, step in enumerate(found.steps):
        unit = nn.functional.normalize(weights[step])
        torch.testing.assert_close(found.cosines[place], unit[torch.arange(UNITS), found.own].abs())
        if step >= 1:
            expected = (weights[step] - weights[1]).norm(dim=1) / weights[1].norm(dim=1)
            torch.testing.assert_close(found.drift[place], expected)
    assert bool(found.drift[0].isnan().all())
    assert found.flips is not None
    assert bool(found.flips[0].isnan().all())
    assert float(found.flips[1].max()) == 0
    now = model[0](probe_inputs()) > 0
    model[0].weight.data.copy_(weights[-1])
    torch.testing.assert_close(found.flips[-1] >= 0, torch.ones(UNITS, dtype=torch.bool))
    assert now.shape == (40, UNITS)


def test_flips_count_sides_that_changed():
    model = network()
    tracker = AlignmentTracker("0", torch.eye(DIM)[:1], probe_inputs(), reference=0)
    record = tracker.begin(model)
    before = (model[0](probe_inputs()) > 0).float()
    with torch.no_grad():
        model[0].weight.neg_()
        model[0].bias.neg_()
    record.step()
    found = record.report()
    assert found.flips is not None
    torch.testing.assert_close(found.flips[-1], torch.ones(UNITS))
    torch.testing.assert_close(found.drift[-1], torch.full((UNITS,), 2.0))
    torch.testing.assert_close(found.cosines[0], found.cosines[1])
    assert before.shape == (40, UNITS)


def test_watching_changes_nothing_and_leaves_no_hook():
    watched, twin = network(), network()
    optimizers = [torch.optim.Adam(model.parameters(), lr=0.05) for model in (watched, twin)]
    torch.manual_seed(3)
    plain = train(twin, optimizers[1], 4)
    torch.manual_seed(3)
    with AlignmentTracker("0", torch.eye(DIM)[:2], probe_inputs()).attach(watched, optimizers[0]):
        seen = train(watched, optimizers[0], 4)
    assert all(torch.equal(a, b) for a, b in zip(plain, seen, strict=True))
    assert watched.training
    with (
        pytest.raises(ZeroDivisionError),
        AlignmentTracker("0", torch.eye(DIM)[:2], probe_inputs()).attach(watched, optimizers[0]),
    ):
        raise ZeroDivisionError
    assert not optimizers[0]._optimizer_step_post_hooks
    assert not any(module._forward_hooks for module in watched.modules())


def test_under_autocast_the_gates_are_those_of_the_present_weights():
    model = network()
    with torch.autocast("cpu", torch.bfloat16):
        model.train()
        model(probe_inputs()).sum()  # fills the cache of casts
        record = AlignmentTracker("0", torch.eye(DIM)[:1], probe_inputs(), reference=0).begin(model)
        with torch.no_grad():
            model[0].weight.neg_()
            model[0].bias.neg_()
        record.step()
    flips = record.report().flips
    assert flips is not None
    assert float(flips[-1].mean()) > 0.95


def test_the_report():
    pytest.importorskip("altair")
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with AlignmentTracker("0", torch.eye(DIM)[:2]).attach(model, optimizer) as record:
        train(model, optimizer, 3)
    found = record.report()
    assert found.flips is None
    assert [row["step"] for row in found.table()] == [0, 1, 2, 3]
    assert math.isnan(found.table()[0]["median_drift"])
    saved = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert saved["table"][0]["median_drift"] is None
    assert "own feature" in repr(found)
    assert found.figure().to_dict()["mark"]


def test_refusals():
    with pytest.raises(ValueError, match="directions must be a tensor"):
        AlignmentTracker("0", torch.zeros(0, DIM))
    with pytest.raises(ValueError, match="directions must be finite"):
        AlignmentTracker("0", torch.full((1, DIM), torch.nan))
    with pytest.raises(ValueError, match="every must be at least 1"):
        AlignmentTracker("0", torch.eye(DIM), every=0)
    with pytest.raises(ValueError, match="rows of '0' have 6 entries"):
        AlignmentTracker("0", torch.eye(4)).begin(network())
    with pytest.raises(ValueError, match="no layer"):
        AlignmentTracker("first", torch.eye(DIM)).begin(network())
    with pytest.raises(RuntimeError, match="step 1 is the reference"):
        AlignmentTracker("0", torch.eye(DIM)).begin(network()).report()
    model = network()
    record = AlignmentTracker("0", torch.eye(DIM)).begin(model)
    with torch.no_grad():
        model[0].weight[0, 0] = torch.nan
    with pytest.raises(ValueError, match="weights of '0' at step 1 must be finite"):
        record.step()
    with pytest.raises(RuntimeError, match="step 1, the reference, could not be recorded"):
        record.report()
    inputs = torch.randn(8, DIM)
    for sentence, given in (
        ("at least one sample", inputs[:0]),
        ("at least one sample", {"input": inputs[:0]}),
        ("not DataLoader", DataLoader(TensorDataset(inputs))),
        ("not list", [(inputs[:5], torch.ones(5)), (inputs[5:], torch.ones(3))]),
    ):
        with pytest.raises(ValueError, match=sentence):
            AlignmentTracker("0", torch.eye(DIM), given).begin(network())


def test_hugging_faces_trainer_drives_it(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, x: Tensor, labels: Tensor):
            outputs = self.inner(x)
            return {"loss": (outputs.squeeze(1) - labels).square().mean(), "logits": outputs}

    rows = [{"x": row, "labels": row[0]} for row in probe_inputs()]
    callback = AlignmentTracker("inner.0", torch.eye(DIM)[:2]).trainer_callback()
    arguments = transformers.TrainingArguments(
        tmp_path, max_steps=3, per_device_train_batch_size=8, report_to=[], disable_tqdm=True, save_strategy="no",
        use_cpu=True,
    )  # fmt: skip
    transformers.Trainer(model=Wrapped(), args=arguments, train_dataset=rows, callbacks=[callback]).train()
    assert callback.record.report().steps == (0, 1, 2, 3)


def test_lightning_drives_it(monkeypatch):
    tracker = AlignmentTracker("0", torch.eye(DIM)[:2])
    monkeypatch.setitem(sys.modules, "lightning", None)
    monkeypatch.setitem(sys.modules, "lightning.pytorch", None)
    monkeypatch.setitem(sys.modules, "pytorch_lightning", None)
    with pytest.raises(ImportError, match="needs lightning"):
        tracker.lightning_callback()
    stand_in = types.SimpleNamespace(Callback=object)
    monkeypatch.setitem(sys.modules, "pytorch_lightning", stand_in)
    callback, model = tracker.lightning_callback(), network()
    trainer = types.SimpleNamespace(global_step=0)
    callback.on_train_start(trainer, model)
    for batch in range(4):  # two batches to a step
        trainer.global_step = (batch + 1) // 2
        callback.on_train_batch_end(trainer, model, None, None, batch)
    assert callback.record.report().steps == (0, 1, 2)
