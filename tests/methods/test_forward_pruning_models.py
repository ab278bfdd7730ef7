"""Encoders as people have them: attention, GPT-2's layers, frozen parts, checkpointing."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from assay.methods.forward_pruning import ForwardMagnitudePruner


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def filled(model: nn.Module) -> Any:
    with torch.no_grad():
        for place, parameter in enumerate(model.double().parameters()):
            parameter.copy_(0.5 * normal(*parameter.shape, seed=place))
    return model


X, Y = normal(8, 6, seed=20), normal(8, 6, seed=21)


class Checkpointed(nn.Module):
    """Two layers whose first pass is repeated for its gradient, when asked."""

    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        self.first, self.head, self.reentrant = nn.Sequential(nn.Linear(6, 7), nn.Tanh()), nn.Linear(7, 5), reentrant

    def forward(self, inputs: Tensor) -> Tensor:
        if self.reentrant is None:
            return self.head(self.first(inputs))  # type: ignore[no-any-return]
        hidden = checkpoint(self.first, inputs, use_reentrant=self.reentrant)
        return self.head(hidden)  # type: ignore[no-any-return]


def slopes(mode: str, reentrant: bool | None) -> list[Tensor | None]:
    model = filled(Checkpointed(reentrant))
    pruner = ForwardMagnitudePruner(model, alpha=0.5, mode=mode)  # type: ignore[arg-type]
    pruner.loss(X.clone().requires_grad_(), Y.clone().requires_grad_()).surrogate.backward()
    return [p.grad for p in model.parameters()]


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("mode", ["straight_through", "self_competitor"])
def test_a_pass_that_would_be_repeated_without_its_mask_is_refused(mode: str, reentrant: bool) -> None:
    with pytest.raises(RuntimeError, match=r"gradient checkpointing, .* mode='logit_masked'"):
        slopes(mode, reentrant)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_is_right_where_the_masked_pass_has_no_gradient(reentrant: bool) -> None:
    torch.testing.assert_close(slopes("logit_masked", reentrant), slopes("logit_masked", None), rtol=0, atol=0)


def test_a_refusal_leaves_the_encoder_as_it_was() -> None:
    model = filled(Checkpointed(False))
    before = copy.deepcopy(model.state_dict())
    pruner = ForwardMagnitudePruner(model, alpha=0.5, mode="straight_through")
    with pytest.raises(RuntimeError, match="checkpointing"):
        pruner.masked(X)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not model._forward_hooks
    model(X).sum().backward()  # checkpointing works again outside
    with torch.no_grad():
        assert pruner.masked(X).shape == (8, 5)


def test_checkpointing_before_the_encoder_and_hooks_around_the_step_are_no_matter() -> None:
    stem, model = filled(nn.Linear(6, 6)), filled(Checkpointed(None))
    pruner = ForwardMagnitudePruner(model, alpha=0.5, mode="straight_through")
    inputs = checkpoint(stem, X.clone().requires_grad_(), use_reentrant=True)
    pruner.masked(inputs).sum().backward()
    assert stem.weight.grad is not None
    with torch.autograd.graph.save_on_cpu():
        pruner.loss(X, Y).surrogate.backward()
    assert model.head.weight.grad is not None


class Conv1D(nn.Module):
    """GPT-2's linear layer: the weight is (inputs, neurons)."""

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(inputs, outputs)), nn.Parameter(torch.empty(outputs))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs @ self.weight + self.bias


@pytest.mark.parametrize("granularity", ["neuron", "weight"])
def test_gpt2s_layers_are_masked_like_the_linear_layers_that_they_are(granularity: Any) -> None:
    theirs, ours = (
        filled(nn.Sequential(Conv1D(7, 6), nn.Tanh(), Conv1D(5, 7))),
        filled(nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 5))),
    )
    with torch.no_grad():
        for place in (0, 2):
            ours[place].weight.copy_(theirs[place].weight.T)
            ours[place].bias.copy_(theirs[place].bias)
    pruners = [ForwardMagnitudePruner(m, alpha=0.5, granularity=granularity, scope="layer") for m in (theirs, ours)]
    torch.testing.assert_close(pruners[0].masked(X), pruners[1].masked(X))
    assert pruners[0].report() == pruners[1].report()
    assert not torch.equal(pruners[0].masked(X), theirs(X))


def test_another_layer_of_that_name_is_taken_for_what_it_is() -> None:
    wrapper = type("Conv1D", (nn.Sequential,), {})(nn.Linear(6, 5))
    assert list(ForwardMagnitudePruner(wrapper, alpha=0.5).layers) == ["0"]


def test_a_gpt2_of_transformers_is_masked() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=11, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    pruner = ForwardMagnitudePruner(transformers.GPT2Model(config), alpha=0.5, granularity="neuron", scope="layer")
    assert pruner.report().total == {
        "h.0.attn.c_attn": 24,
        "h.0.attn.c_proj": 8,
        "h.0.mlp.c_fc": 32,
        "h.0.mlp.c_proj": 8,
    }


class Attends(nn.Module):
    def __init__(self, **sizes: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True, **sizes)
        self.value = nn.Parameter(torch.empty(6, sizes.get("vdim", 6)), requires_grad=False)

    def forward(self, inputs: Tensor) -> Tensor:
        parts = inputs.reshape(len(inputs), -1, 6)
        answer: Tensor = self.attention(parts, parts, parts @ self.value, need_weights=False)[0]
        return answer.flatten(1)


@pytest.mark.parametrize("granularity", ["neuron", "weight"])
@pytest.mark.parametrize("sizes", [{}, {"vdim": 4}])
def test_the_projections_of_attention_are_masked(granularity: Any, sizes: dict[str, int]) -> None:
    model = filled(Attends(**sizes))
    pruner = ForwardMagnitudePruner(model, alpha=0.5, granularity=granularity, scope="layer")
    parts = ["q_proj_weight", "k_proj_weight", "v_proj_weight"] if sizes else ["in_proj_weight"]
    assert set(pruner.masks) == {f"attention.{part}" for part in parts} | {"attention.out_proj"}
    twin = copy.deepcopy(model)
    with torch.no_grad():
        masks = {part: pruner.masks[f"attention.{part}"] for part in parts}
        for part, mask in masks.items():
            getattr(twin.attention, part).mul_(mask if granularity == "weight" else mask[:, None])
        outer = pruner.masks["attention.out_proj"]
        twin.attention.out_proj.weight.mul_(outer if granularity == "weight" else outer[:, None])
        if granularity == "neuron":
            twin.attention.in_proj_bias.mul_(torch.cat(list(masks.values())))
            twin.attention.out_proj.bias.mul_(outer)
    inputs = normal(4, 18, seed=5)
    torch.testing.assert_close(pruner.masked(inputs), twin(inputs))
    assert not torch.equal(pruner.masked(inputs), model(inputs))


def test_frozen_layers_are_masked_only_when_named() -> None:
    model = filled(nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 5)))
    model[0].requires_grad_(False)
    pruner = ForwardMagnitudePruner(model, alpha=0.5)
    assert pruner.report().total == {"2": 35}
    assert list(ForwardMagnitudePruner(model, alpha=0.5, layers="0").layers) == ["0"]
    model.requires_grad_(False)
    with pytest.raises(ValueError, match="that trains: name in layers"):
        ForwardMagnitudePruner(model, alpha=0.5)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm, self.token = nn.Embedding(5, 6), nn.LayerNorm((2, 6)), nn.Parameter(torch.zeros(1, 6))
        self.cell, self.head = nn.GRU(6, 6, batch_first=True), nn.Linear(6, 2, bias=False)


def test_matrices_that_are_never_masked_are_told_once() -> None:
    model = Recurrent()
    share = sum(p.numel() for p in model.cell.parameters() if p.ndim > 1) / sum(p.numel() for p in model.parameters())
    with pytest.warns(UserWarning, match=rf"cell\.weight_ih_l0, cell\.weight_hh_l0 \({share:.1%}") as told:
        pruner = ForwardMagnitudePruner(model, alpha=0.5)
    assert len(told) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pruner.update_mask()
        ForwardMagnitudePruner(model, alpha=0.5, layers="head")
