from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev
from torch.utils.checkpoint import checkpoint

from assay.methods import feature_learning_gain, frozen_backbone, linearized


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny matrices gain nothing from threads and lose much on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_model_that_checkpoints_is_refused_in_words() -> None:
    class Checkpointing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def forward(self, inputs: Tensor) -> Tensor:
            found: Tensor = checkpoint(self.layer, inputs, use_reentrant=False)
            return found

    with pytest.raises(RuntimeError, match="gradient checkpointing"):
        linearized(Checkpointing())(torch.ones(4, 3))


def drawn(model: nn.Module, scale: float = 0.5) -> nn.Module:
    """The model in float64 with weights drawn from a fixed seed."""
    model = model.double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(scale * normal(*parameter.shape, seed=number))
    return model


def network() -> nn.Module:
    return drawn(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)))


def displace(model: nn.Module, scale: float) -> list[Tensor]:
    steps = [scale * normal(*p.shape, seed=50 + number) for number, p in enumerate(model.parameters())]
    with torch.no_grad():
        for parameter, step in zip(model.parameters(), steps, strict=True):
            parameter.add_(step)
    return steps


def set_displacement(linear: nn.Module, steps: list[Tensor]) -> None:
    with torch.no_grad():
        for parameter, step in zip([p for p in linear.parameters() if p.requires_grad], steps, strict=True):
            parameter.copy_(step)


def test_linearisation_agrees_with_the_model_to_first_order() -> None:
    inputs, errors = normal(5, 4), []
    torch.testing.assert_close(linearized(network())(inputs), network()(inputs))
    for scale in (1e-2, 5e-3):
        moved, linear = network(), linearized(network())
        set_displacement(linear, displace(moved, scale))
        assert (linear(inputs) - network()(inputs)).norm().item() > 1e-3
        errors.append((moved(inputs) - linear(inputs)).norm().item())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)  # the remainder is quadratic


def test_linearisation_equals_an_explicit_feature_model() -> None:
    model, inputs = network(), normal(5, 4)
    linear = linearized(model)
    set_displacement(linear, displace(copy.deepcopy(model), 1.0))
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    jacobian = jacrev(lambda values: functional_call(model, values, (inputs,)))(parameters)
    features = torch.cat([jacobian[name].flatten(2) for name in parameters], dim=2)  # (n, classes, weights)
    flat = torch.cat([p.flatten() for p in linear.parameters() if p.requires_grad])
    torch.testing.assert_close(linear(inputs), model(inputs) + features @ flat)
    target = normal(5, 3, seed=9)
    (linear(inputs) * target).sum().backward()
    gradient = torch.cat([p.grad.flatten() for p in linear.parameters() if p.grad is not None])
    torch.testing.assert_close(gradient, torch.einsum("ncw,nc->w", features, target))


def test_only_trainable_parameters_are_displaced_and_the_model_stays_as_it_was() -> None:
    model = network()
    model[0].weight.requires_grad_(False)
    before = copy.deepcopy(model.state_dict())
    linear = linearized(model).train()
    assert linear.names == ["0.bias", "2.weight", "2.bias"]
    linear(normal(5, 4)).sum().backward()
    assert all((p.grad is not None) == p.requires_grad for p in linear.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert not model[0].weight.requires_grad
    assert model[0].bias.requires_grad
    assert model.training
    with pytest.raises(ValueError, match="no trainable parameter"):
        linearized(model.requires_grad_(False))


class TinyLanguageModel(nn.Module):
    """Attention, normalisation, tied output weights and a record with logits, as in the usual language models."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.block = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.1, batch_first=True)
        self.lm_head = nn.Linear(4, 7, bias=False)
        self.lm_head.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> SimpleNamespace:
        return SimpleNamespace(logits=self.lm_head(self.block(self.embed(tokens))))


def test_attention_models_with_tied_weights_are_linearised() -> None:
    model, tokens = drawn(TinyLanguageModel()), torch.tensor([[0, 1, 2], [3, 4, 5]])
    linear = linearized(model)
    assert linear.names.count("embed.weight") == 1
    assert "lm_head.weight" not in linear.names
    forward, backward = copy.deepcopy(model).eval(), copy.deepcopy(model).eval()
    set_displacement(linear, displace(forward, 1e-5))
    displace(backward, -1e-5)
    slope = (forward(tokens).logits - backward(tokens).logits) / 2
    torch.testing.assert_close(linear(tokens) - model.eval()(tokens).logits, slope, rtol=1e-4, atol=1e-9)
    assert torch.backends.mha.get_fastpath_enabled()


def test_model_without_tensor_output_is_refused() -> None:
    with pytest.raises(ValueError, match="logits, not tuple"):
        linearized(nn.GRU(3, 4))(torch.ones(2, 3))


def test_frozen_backbone_trains_its_head_alone() -> None:
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 3))
    frozen = frozen_backbone(model, "3").train()
    assert [name for name, p in frozen.named_parameters() if p.requires_grad] == ["base.3.weight", "base.3.bias"]
    inputs = torch.ones(5, 4)
    torch.testing.assert_close(frozen(inputs), model.eval()(inputs))
    assert torch.equal(frozen.base[1].running_mean, torch.zeros(6))  # statistics of a frozen layer stay too
    assert all(p.requires_grad for p in model.parameters())


def test_frozen_backbone_refuses_heads_that_are_none() -> None:
    with pytest.raises(ValueError, match="no module 'fc'; it has 0, 1, 2"):
        frozen_backbone(network(), "fc")
    with pytest.raises(ValueError, match=r"embed\.weight"):
        frozen_backbone(TinyLanguageModel(), "lm_head")


DIM = 24


def parity_data(n: int, seed: int) -> tuple[Tensor, Tensor]:
    signs = normal(n, DIM, seed=seed).sign().float()
    return signs, (signs[:, 0] * signs[:, 1] > 0).long()


SPLITS = (parity_data(600, 1), parity_data(300, 2), parity_data(600, 3))


def test_gain_is_large_where_features_must_be_learned() -> None:
    model = drawn(nn.Sequential(nn.Linear(DIM, 24), nn.ReLU(), nn.Linear(24, 2)), scale=0.3).float()
    before = copy.deepcopy(model.state_dict())
    arguments = {"head": "2", "steps": 150, "learning_rates": (1e-3, 1e-2, 1e-1)}
    found = feature_learning_gain(model, *SPLITS, generator=torch.Generator().manual_seed(0), **arguments)
    assert found.full.accuracy > 0.95
    assert found.gain > 0.1
    assert 0.5 <= found.majority < 0.6
    for arm in (found.full, found.linearized, found.frozen):
        assert set(arm.validation) == {1e-3, 1e-2, 1e-1}
        assert arm.validation[arm.learning_rate] == max(arm.validation.values())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    again = feature_learning_gain(model, *SPLITS, generator=torch.Generator().manual_seed(0), **arguments)
    assert again == found


def test_gain_is_zero_for_a_model_that_is_already_linear() -> None:
    model = drawn(nn.Sequential(nn.Linear(DIM, 2)))
    data = [(inputs.double(), labels) for inputs, labels in SPLITS]
    found = feature_learning_gain(
        model, *data, head="0", generator=torch.Generator(), steps=40, learning_rates=(1e-2, 1e-1)
    )
    assert found.gain == 0
    assert found.full.at_edge
    assert found.full.accuracy == found.linearized.accuracy == found.frozen.accuracy


def test_divergence_and_bad_requests_are_named() -> None:
    model = nn.Sequential(nn.Linear(DIM, 2))
    arguments = {"head": "0", "generator": torch.Generator(), "steps": 30, "optimizer": torch.optim.SGD}

    def square(scores: Tensor, labels: Tensor) -> Tensor:
        return (scores[:, 0] - labels).square().mean()

    found = feature_learning_gain(model, *SPLITS, loss=square, learning_rates=(1e-2, 1e9), **arguments)
    assert math.isnan(found.full.validation[1e9])
    assert found.full.learning_rate == 1e-2
    with pytest.raises(ValueError, match="diverged at every learning rate"):
        feature_learning_gain(model, *SPLITS, loss=square, learning_rates=(1e9,), **arguments)
    with pytest.raises(ValueError, match="learning_rates must be positive"):
        feature_learning_gain(model, *SPLITS, learning_rates=(0.0,), **arguments)
    with pytest.raises(ValueError, match=r"batch_size must lie in \[1, 600\]"):
        feature_learning_gain(model, *SPLITS, batch_size=601, **arguments)
