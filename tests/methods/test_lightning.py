"""Callbacks under Lightning's own trainer: the stand-ins of other tests call what we believe it calls."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from assay.methods import ForwardMagnitudePruner, NuclearNorm, lightning_callback, nuclear_norm
from assay.probes import AlignmentTracker, DirectionTracker, GradientConsistency, RepresentationTracker

lightning = pytest.importorskip("pytorch_lightning")

INPUTS = torch.randn(64, 6, generator=torch.Generator().manual_seed(0))
LABELS = (INPUTS[:, 0] > 0).long()
WATCHERS = {
    "consistency": GradientConsistency(["model.0"], chunks=2, steps_per_chunk=2),
    "directions": DirectionTracker("model.0", every=2),
    "representation": RepresentationTracker("model.1", steps=(0, 2, 4)),
    "alignment": AlignmentTracker("model.0", torch.eye(6), every=2, reference=2),
}


class Module(lightning.LightningModule):
    """Two layers, trained by gradient descent."""

    def __init__(self, penalty=None):
        super().__init__()
        torch.manual_seed(0)
        self.model, self.penalty = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)), penalty

    def forward(self, inputs):
        return self.model(inputs)

    def training_step(self, batch, number):
        inputs, labels = batch
        loss = cross_entropy(self.model(inputs), labels)
        return loss if self.penalty is None else loss + self.penalty(self.model[:2](inputs))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class Failing(Module):
    def training_step(self, batch, number):
        if number == 2:
            raise RuntimeError("a batch that fails")
        return super().training_step(batch, number)


def fit(module, callback, tmp_path, **more):
    settings = {"accelerator": "cpu", "max_epochs": 1, "default_root_dir": tmp_path, "logger": False}
    settings |= dict.fromkeys(("enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    trainer = lightning.Trainer(callbacks=[callback], **settings, **more)
    trainer.fit(module, DataLoader(TensorDataset(INPUTS, LABELS), batch_size=8))
    return module


def hooks(module):
    layers = [each._forward_hooks or each._forward_pre_hooks for each in module.modules()]
    return any(layers) or any(parameter._post_accumulate_grad_hooks for parameter in module.parameters())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_penalty_trains_as_one_written_into_the_step(tmp_path, accumulate):
    callback, none = lightning_callback(NuclearNorm(lam=0.1, warmup=0), "model.2"), lightning.Callback()
    written = Module(lambda features: 0.1 * nuclear_norm(features))
    ours, theirs, plain = (
        fit(module, called, tmp_path, accumulate_grad_batches=accumulate)
        for module, called in ((Module(), callback), (written, none), (Module(), none))
    )
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())
    assert not torch.allclose(ours.model[0].weight, plain.model[0].weight)
    assert len(callback.report().table()) == 8
    assert not hooks(ours)
    assert "training_step" not in vars(ours)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WATCHERS)
def test_a_watcher_sees_the_optimisers_steps(name, tmp_path):
    callback = WATCHERS[name].lightning_callback()
    module = fit(Module(), callback, tmp_path, accumulate_grad_batches=2)  # eight batches: four steps
    if name == "representation":
        assert list(callback.record.snapshots) == [0, 2, 4]
    elif name == "consistency":
        assert list(callback.record.report()) == ["model.0.weight"]
    else:
        assert list(callback.record.report().steps) == [0, 2, 4]
    assert not hooks(module)


@pytest.mark.filterwarnings("ignore")
def test_a_training_that_fails_leaves_nothing_behind(tmp_path):
    for callback in (lightning_callback(NuclearNorm(), "model.2"), WATCHERS["consistency"].lightning_callback()):
        module = Failing()
        with pytest.raises(RuntimeError, match="a batch that fails"):
            fit(module, callback, tmp_path)
        assert not hooks(module)
        assert "training_step" not in vars(module)


@pytest.mark.filterwarnings("ignore")
def test_the_pruner_is_told_of_the_end_of_an_epoch(tmp_path):
    module = Module()
    pruner = ForwardMagnitudePruner(module, alpha=0.5)
    before = {name: mask.clone() for name, mask in pruner.masks.items()}
    with torch.no_grad():
        module.model[0].weight.copy_(module.model[0].weight.flip(0))
    fit(module, pruner.lightning_callback(), tmp_path)
    assert not torch.equal(pruner.masks["model.0"], before["model.0"])
