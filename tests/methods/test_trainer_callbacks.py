"""Trainers that own the loop. Lightning is stood in for by the few calls that its trainer makes."""

from __future__ import annotations

import sys
import types

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from assay.methods import NuclearNorm, huggingface_callback, huggingface_swad, lightning_callback

INPUTS = torch.randn(24, 6, generator=torch.Generator().manual_seed(1))
LABELS = (INPUTS[:, 0] > 0).long()


def classifier():
    transformers = pytest.importorskip("transformers", reason="needs the extra llm")
    torch.manual_seed(0)
    sizes = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=30)
    return transformers.BertForSequenceClassification(
        transformers.BertConfig(**sizes, num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    )


def sentences():
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1, 30, (32, 5), generator=generator)
    return [{"input_ids": row, "attention_mask": torch.ones(5).long(), "labels": row[0] % 2} for row in ids]


def fitted(folder, model, callbacks, **options):
    transformers = pytest.importorskip("transformers", reason="needs the extra llm")
    pytest.importorskip("accelerate")
    given = dict(per_device_train_batch_size=8, max_steps=6, logging_steps=2, report_to=[], use_cpu=True, seed=0)
    arguments = transformers.TrainingArguments(
        str(folder), **{**given, **options}, disable_tqdm=True, save_strategy="no"
    )
    data = sentences()
    trainer = transformers.Trainer(model, arguments, train_dataset=data, eval_dataset=data, callbacks=callbacks)
    trainer.train()
    return trainer


def weights(model):
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def test_a_trainer_adds_the_penalty_and_logs_it(tmp_path, capsys):
    plain, none, some = classifier(), classifier(), classifier()
    fitted(tmp_path, plain, [])
    fitted(tmp_path, none, [huggingface_callback(NuclearNorm(lam=0.0, warmup=0))])
    assert torch.equal(weights(plain), weights(none)), "no weight is the plain training bit for bit"
    callback = huggingface_callback(NuclearNorm(lam=0.5, warmup=3))
    trainer = fitted(tmp_path, some, [callback])
    assert not torch.equal(weights(plain), weights(some))
    report = callback.report()
    assert (report.steps, report.layer) == (6, "classifier")
    assert [row.penalty > 0 for row in report.rows] == [False] * 3 + [True] * 3
    logged = [row for row in trainer.state.log_history if "nuclear_penalty" in row]
    assert [row["step"] for row in logged] == [2, 4, 6]
    assert all(row["nuclear_stable_rank"] >= 1 for row in logged)
    assert not any(module._forward_hooks for module in some.modules())


def test_accumulated_batches_weigh_the_penalty_as_one(tmp_path, capsys):
    """The penalty's pull on a step is its mean over the accumulated batches, told or not told of their number."""
    seen = []
    for steps, batch in ((1, 8), (4, 8)):
        model = classifier()
        callback = huggingface_callback(NuclearNorm(lam=1e4, warmup=0))
        options = dict(max_grad_norm=0.0, optim="sgd", learning_rate=1e-6, max_steps=1, lr_scheduler_type="constant")
        before = weights(model).clone()
        fitted(
            tmp_path, model, [callback], gradient_accumulation_steps=steps, per_device_train_batch_size=batch, **options
        )
        seen.append(float((weights(model) - before).norm()))
    assert 0.3 < seen[1] / seen[0] < 1.7, "and not four times as much"


def test_a_trainer_without_the_models_loss_is_told(tmp_path, capsys):
    callback = huggingface_callback(NuclearNorm(warmup=0))
    model = classifier()
    with pytest.raises(RuntimeError, match="returned no loss to add the penalty to"):
        fitted(tmp_path, model, [callback], label_smoothing_factor=0.1)
    callback.remove()
    assert not any(module._forward_hooks for module in model.modules())


def test_a_trainer_averages_by_swad(tmp_path, capsys):
    callback = huggingface_swad(converge=2, tolerate=2, ratio=0.5)
    model = classifier()
    fitted(tmp_path, model, [callback], eval_strategy="steps", eval_steps=2)
    assert len(callback.swad.losses) == 3
    assert callback.swad.steps == 6
    assert callback.swad.averaged()(**{k: v[None] for k, v in sentences()[0].items()}).logits.shape == (1, 2)
    with pytest.raises(ValueError, match="gave no eval_loss"):
        callback.on_evaluate(None, None, None, metrics={})


def test_nothing_to_report_before_training():
    pytest.importorskip("transformers")
    with pytest.raises(RuntimeError, match="has not begun"):
        huggingface_callback(NuclearNorm()).report()


class Module(nn.Module):
    """A LightningModule, as far as the callback touches one."""

    def __init__(self, kind=torch.Tensor):
        super().__init__()
        torch.manual_seed(0)
        self.model, self.kind = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 3)), kind

    def training_step(self, batch, index):
        loss = cross_entropy(self.model(batch[0]), batch[1])
        return {"loss": loss, "more": 1} if self.kind is dict else None if self.kind is type(None) else loss


@pytest.fixture
def lightning(monkeypatch):
    package, inner = types.ModuleType("lightning"), types.ModuleType("lightning.pytorch")
    inner.Callback = type("Callback", (), {})
    package.pytorch = inner
    monkeypatch.setitem(sys.modules, "lightning", package)
    monkeypatch.setitem(sys.modules, "lightning.pytorch", inner)
    return types.SimpleNamespace(global_step=0)


@pytest.mark.parametrize("kind", [torch.Tensor, dict])
def test_lightnings_step_returns_the_sum(lightning, kind):
    module = Module(kind)
    batch = (INPUTS, LABELS)
    plain = module.training_step(batch, 0)
    callback = lightning_callback(NuclearNorm(lam=1.0, warmup=1), "model.2")
    callback.on_fit_start(lightning, module)
    first, second = module.training_step(batch, 0), module.training_step(batch, 1)
    if kind is dict:
        assert second["more"] == 1
        plain, first, second = (each["loss"] for each in (plain, first, second))
    assert torch.equal(first, plain)
    assert bool(second > plain)
    callback.on_fit_end(lightning, module)
    assert "training_step" not in vars(module)
    assert not module.model[2]._forward_hooks
    assert callback.report().steps == 2


def test_lightnings_step_is_given_back_after_an_exception(lightning):
    module = Module(type(None))
    own = module.training_step = lambda batch, index: None
    callback = lightning_callback(NuclearNorm(), "model.2")
    callback.on_fit_start(lightning, module)
    assert module.training_step((INPUTS, LABELS), 0) is None, "a batch that is skipped"
    callback.on_exception(lightning, module, KeyError())
    assert module.training_step is own
    assert not module.model[2]._forward_hooks


def test_without_lightning_one_sentence(monkeypatch):
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"pip install lightning"):
        lightning_callback(NuclearNorm())
