"""The penalty on a model: what is added, what is reported, and that nothing is left behind."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from assay.methods import NuclearNorm, nuclear_norm

INPUTS = torch.randn(24, 6, generator=torch.Generator().manual_seed(1))
LABELS = (INPUTS[:, 0] > 0).long()


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Dropout(0.1), nn.Linear(10, 3))


def trained(model, penalty=None, steps=6, layer=None):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(2)  # dropout
    attached = penalty.attach(model, layer) if penalty else None
    for _ in range(steps):
        loss = cross_entropy(model(INPUTS), LABELS)
        optimizer.zero_grad()
        (attached(loss) if attached else loss).backward()
        optimizer.step()
    if attached:
        attached.remove()
    return attached


def weights(model):
    return nn.utils.parameters_to_vector(model.parameters()).detach()


@pytest.mark.parametrize("penalty", [NuclearNorm(lam=0.0, warmup=0), NuclearNorm(lam=5.0, warmup=6)])
def test_no_weight_and_the_warm_up_are_the_plain_loop_bit_for_bit(penalty):
    plain, watched = network(), network()
    trained(plain)
    attached = trained(watched, penalty)
    assert torch.equal(weights(plain), weights(watched))
    assert {row.penalty for row in attached.report().rows} == {0.0}
    assert attached.report().rows[0].stable_rank >= 1


def test_the_first_step_after_the_warm_up_differs():
    plain, watched = network(), network()
    trained(plain)
    trained(watched, NuclearNorm(lam=5.0, warmup=5))
    assert not torch.equal(weights(plain), weights(watched))


@pytest.mark.parametrize(
    "options", [{}, {"normalize": "fro"}, {"center": True}, {"max_rank": 1}, {"solver": "gram"}, {"every": 0}]
)
def test_the_hook_adds_the_formula(options):
    model = network().eval()
    model.train()
    model[2].p = 0.0
    hidden = model[2](model[1](model[0](INPUTS)))
    plain = {name: options[name] for name in options if name != "every"}
    loss = cross_entropy(model[3](hidden), LABELS)
    expected = torch.autograd.grad(loss + 0.7 * nuclear_norm(hidden, **plain), list(model.parameters()))
    with NuclearNorm(lam=0.7, warmup=0, **options).attach(model) as attached:
        found = torch.autograd.grad(attached(cross_entropy(model(INPUTS), LABELS)), list(model.parameters()))
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(one, other)


def test_named_layers_and_both_of_their_sides():
    model = network().train()
    model[2].p = 0.0
    for layer, at, features in (("1", "output", model[1](model[0](INPUTS))), ("1", "input", model[0](INPUTS))):
        with NuclearNorm(lam=1.0, warmup=0, normalize="none").attach(model, layer, at=at) as attached:
            model(INPUTS)
            torch.testing.assert_close(attached(torch.tensor(0.0)), nuclear_norm(features, "none"))


def test_passes_since_the_last_call_are_one_batch():
    model = network()
    model[2].p = 0.0
    with NuclearNorm(lam=1.0, warmup=0).attach(model) as attached:
        model(INPUTS)
        whole = attached(torch.tensor(0.0))
        for part in INPUTS.split(8):
            model(part)
        torch.testing.assert_close(attached(torch.tensor(0.0)), whole)


def test_evaluation_and_passes_without_gradients_leave_no_trace():
    model = network()
    with NuclearNorm(lam=1.0, warmup=0).attach(model) as attached:
        model.eval()
        loss = cross_entropy(model(INPUTS), LABELS)
        assert attached(loss) is loss
        model.train()
        with torch.no_grad():
            loss = cross_entropy(model(INPUTS), LABELS)
            assert attached(loss) is loss
        assert attached.steps == 0
        with pytest.raises(RuntimeError, match="no pass in training mode reached '3'"):
            attached(torch.tensor(1.0))


def test_the_hook_goes_also_after_an_exception():
    model = network()
    before = weights(model).clone()
    attached = NuclearNorm().attach(model, to_output=True)

    def interrupted():
        with attached:
            model(INPUTS)

    with pytest.raises(RuntimeError, match="returned no loss"):
        interrupted()
    assert not any(module._forward_hooks for module in model.modules())
    assert not any(module._forward_hooks_with_kwargs for module in model.modules())
    assert torch.equal(weights(model), before)
    assert attached._passes == []


def test_a_copy_of_the_model_is_not_watched():
    model = network()
    with NuclearNorm(warmup=0).attach(model) as attached:
        model(INPUTS)
        other = copy.deepcopy(model)
        other(INPUTS)
        assert len(attached._passes) == 1
    with pytest.raises(RuntimeError, match="was removed"):
        attached(torch.tensor(1.0))


def test_what_cannot_be_penalised_is_refused():
    model = network()
    with pytest.raises(ValueError, match=r"has no layer 'fc'; it has 0, 1, 2, 3"):
        NuclearNorm().attach(model, "fc")
    with pytest.raises(ValueError, match="no linear layer that could be its head"):
        NuclearNorm().attach(nn.Sequential(nn.Conv2d(1, 1, 1)))
    with pytest.raises(ValueError, match="at must be one of input, output"):
        NuclearNorm().attach(model, at="inside")
    model[0].requires_grad_(False)
    with NuclearNorm(warmup=0).attach(model) as attached:
        loss = cross_entropy(model(INPUTS), LABELS)
        with pytest.raises(RuntimeError, match="nothing that trains lies before '3'"):
            attached(loss)
    model[0].requires_grad_(True)
    with NuclearNorm(warmup=0).attach(model) as attached:
        loss = cross_entropy(model(INPUTS * torch.nan), LABELS)
        with pytest.raises(ValueError, match="features must be finite"):
            attached(loss)


def test_passes_that_are_never_used_do_not_pile_up():
    model = network()
    with NuclearNorm().attach(model):
        for _ in range(256):
            model(INPUTS[:1])
        with pytest.raises(RuntimeError, match="added to no loss"):
            model(INPUTS[:1])


def test_a_repeated_pass_of_checkpointing_is_seen_once():
    class Checkpointed(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, inputs):
            return checkpoint(self.inner, inputs, use_reentrant=False)

    model = Checkpointed(network())
    with NuclearNorm(lam=1.0, warmup=0).attach(model) as attached:
        attached(cross_entropy(model(INPUTS), LABELS)).backward()
        assert attached._passes == []


def test_autocast_gives_the_penalty_in_single_precision():
    losses = []
    for kind in (None, torch.bfloat16):
        model = network()
        model[2].p = 0.0
        with NuclearNorm(lam=1.0, warmup=0).attach(model) as attached:
            with torch.autocast("cpu", torch.bfloat16, enabled=kind is not None):
                loss = attached(cross_entropy(model(INPUTS), LABELS))
            loss.backward()
        assert loss.dtype == torch.float32
        losses.append(float(loss.detach()))
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


def test_the_report_has_what_it_says(tmp_path):
    model = network()
    attached = trained(model, NuclearNorm(lam=0.5, warmup=2, every=2), steps=7)
    report = attached.report()
    assert [row.step for row in report.rows] == [1, 3, 5, 7]
    assert (report.steps, report.layer, report.at) == (7, "3", "input")
    first, second = report.rows[:2]
    assert first.penalty == first.share == 0
    assert second.penalty == pytest.approx(0.5 * second.value)
    assert second.share == pytest.approx(second.penalty / (second.loss + second.penalty))
    assert second.product == pytest.approx(second.head_norm * second.feature_norm)
    assert "stable_rank" in repr(report)
    assert report.table()[1]["value"] == second.value
    kept = json.loads(report.save(tmp_path / "deep" / "report.json").read_text())
    assert kept["report"] == "PenaltyReport"
    assert kept["rows"][1]["step"] == 3
    chart = report.figure().to_dict()
    assert len(chart["data"]["values"]) == 6 * 4
    assert attached.last() == report.rows[-1]


def test_the_stable_rank_and_the_norms_are_those_of_the_features():
    model = network()
    model[2].p = 0.0
    features = model[1](model[0](INPUTS)).detach()
    with NuclearNorm(warmup=5).attach(model) as attached:
        attached(cross_entropy(model(INPUTS), LABELS))
    row = attached.report().rows[0]
    values = torch.linalg.svdvals(features)
    assert row.stable_rank == pytest.approx(float(values.square().sum() / values[0] ** 2), rel=1e-5)
    assert row.feature_norm == pytest.approx(float(features.norm()) / 24**0.5, rel=1e-5)
    assert row.head_norm == pytest.approx(float(model[3].weight.detach().norm()), rel=1e-5)


def test_a_checkpoint_keeps_the_warm_up():
    model = network()
    penalty = NuclearNorm(lam=1.0, warmup=3)
    state = trained(model, penalty, steps=3).state_dict()
    with penalty.attach(model) as attached:
        attached.load_state_dict(state)
        loss = cross_entropy(model(INPUTS), LABELS)
        assert bool(attached(loss) > loss)


def test_a_model_that_returns_its_loss_adds_the_penalty_itself():
    class WithLoss(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.inner, self.kind = network(), kind
            self.inner[2].p = 0.0

        def forward(self, inputs, labels=None, num_items_in_batch=None):
            logits = self.inner(inputs)
            loss = None if labels is None else cross_entropy(logits, labels)
            return {"loss": loss, "logits": logits} if self.kind is dict else (loss, logits)

    for kind in (dict, tuple):
        model = WithLoss(kind)

        def read(output):
            return float((output["loss"] if isinstance(output, dict) else output[0]).detach())

        plain = read(model(INPUTS, LABELS))
        with NuclearNorm(lam=1.0, warmup=0).attach(model, to_output=True) as attached:
            penalty = read(model(INPUTS, LABELS)) - plain
            assert penalty > 0
            attached.accumulation = 4.0
            parted = read(model(INPUTS, LABELS, num_items_in_batch=96)) - plain
            assert parted == pytest.approx(penalty / 4, rel=1e-4)
            model.eval()
            assert read(model(INPUTS, LABELS)) == plain
            model.train()
            with pytest.raises(RuntimeError, match="returned no loss"):
                model(INPUTS)
        assert read(model(INPUTS, LABELS)) == plain
