from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from assay.methods.forward_pruning import ForwardMagnitudePruner


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(norm: bool = True) -> nn.Sequential:
    """A convolution, a norm, two linear layers: everything that a mask must meet."""
    parts: list[nn.Module] = [nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4) if norm else nn.Identity(), nn.ReLU()]
    parts += [nn.Flatten(), nn.Linear(64, 6), nn.Tanh(), nn.Linear(6, 5)]
    model = nn.Sequential(*parts).double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(0.5 * normal(*parameter.shape, seed=number) + (number == 2))
    return model


X, Y = normal(8, 1, 4, 4, seed=20), normal(8, 1, 4, 4, seed=21)
CHOICES = [("neuron", "layer"), ("neuron", "global"), ("weight", "layer"), ("weight", "global")]


def gradients(model: nn.Module) -> list[Tensor]:
    return [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize(("granularity", "scope"), CHOICES)
@given(alpha=st.floats(0, 0.95))
@settings(max_examples=8, deadline=None)
def test_masks_hide_the_rounded_share_of_the_smallest(granularity: str, scope: str, alpha: float) -> None:
    model = network()
    pruner = ForwardMagnitudePruner(model, alpha=0.0, granularity=granularity, scope=scope)  # type: ignore[arg-type]
    pruner.alpha = alpha
    sizes = {n: pruner._magnitudes(layer.weight).detach().reshape(-1) for n, layer in pruner.layers.items()}
    every = [torch.cat(list(sizes.values()))] if scope == "global" else list(sizes.values())
    if any(round(alpha * len(size)) == len(size) for size in every):
        with pytest.raises(ValueError, match="nothing would be left"):
            pruner.update_mask()
        return
    if scope == "global":
        threshold = every[0].sort().values[round(alpha * len(every[0])) :].min()
        if any(bool((size < threshold).all()) for size in sizes.values()):
            with pytest.warns(UserWarning, match="is pruned"):
                pruner.update_mask()
        else:
            pruner.update_mask()
        masks = [torch.cat([mask.reshape(-1) for mask in pruner.masks.values()])]
    else:
        pruner.update_mask()
        masks = [mask.reshape(-1) for mask in pruner.masks.values()]
    for size, mask in zip(every, masks, strict=True):
        assert int((~mask).sum()) == round(alpha * len(size))
        if (~mask).any():
            assert size[~mask].max() <= size[mask].min()


def test_ties_go_to_the_lower_index() -> None:
    layer = nn.Linear(3, 4, bias=False)
    nn.init.ones_(layer.weight)
    pruner = ForwardMagnitudePruner(nn.Sequential(layer), alpha=0.5, granularity="neuron")
    assert pruner.masks["0"].tolist() == [False, False, True, True]
    assert pruner.report().pruned == {"0": 2}
    assert pruner.report().share == 0.5


@pytest.mark.parametrize(("granularity", "scope"), CHOICES)
def test_the_masked_pass_is_that_of_a_copy_with_zeros(granularity: str, scope: str) -> None:
    model = network()
    pruner = ForwardMagnitudePruner(model, alpha=0.3, granularity=granularity, scope=scope)  # type: ignore[arg-type]
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for name, mask in pruner.masks.items():
            layer = twin.get_submodule(name)
            assert isinstance(layer, (nn.Linear, nn.Conv2d))
            layer.weight.mul_(mask if granularity == "weight" else mask.view(-1, *[1] * (layer.weight.ndim - 1)))
            if granularity == "neuron" and layer.bias is not None:
                layer.bias.mul_(mask)
    torch.testing.assert_close(pruner.masked(X), twin(X))
    assert not torch.equal(pruner.masked(X), model(X))


MODES = ["logit_masked", "straight_through", "self_competitor"]


def infonce(f_x: Tensor, f_y: Tensor) -> Tensor:
    """The loss by its definition, with the pruner's usual options: normalised, symmetric, candidates held fixed."""
    f_x, f_y = (normalize(f, dim=1) for f in (f_x, f_y))
    target = torch.arange(len(f_x))
    return (cross_entropy(f_x @ f_y.detach().T / 0.2, target) + cross_entropy(f_y @ f_x.detach().T / 0.2, target)) / 2


def trained(
    loss: Callable[[nn.Module], Callable[[], Tensor]], steps: int = 4
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Weights, last gradients and buffers after some steps of SGD on what ``loss`` makes of a fresh network."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step = loss(model)
    for _ in range(steps):
        optimizer.zero_grad()
        step().backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()], gradients(model), list(model.buffers())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [{"alpha": 0.0}, {"alpha": 0.5, "start": 4}])
def test_alpha_zero_and_steps_before_the_start_are_infonce_of_the_bare_encoder(mode: str, options: Any) -> None:
    def pruned(model: nn.Module) -> Callable[[], Tensor]:
        pruner = ForwardMagnitudePruner(model, mode=mode, **options)  # type: ignore[arg-type]
        return lambda: pruner.loss(X, Y).surrogate

    found, expected = trained(pruned), trained(lambda model: lambda: infonce(model(X), model(Y)))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("mode", MODES)
def test_a_mask_of_ones_is_no_mask_bit_for_bit(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The masked path with nothing hidden against the path without a mask."""

    def pruned(model: nn.Module) -> Callable[[], Tensor]:
        pruner = ForwardMagnitudePruner(model, alpha=0.0, mode=mode)  # type: ignore[arg-type]
        return lambda: pruner.loss(X, Y).surrogate

    plain, passes = trained(pruned), []
    monkeypatch.setattr(ForwardMagnitudePruner, "active", True)
    masked = ForwardMagnitudePruner.masked
    monkeypatch.setattr(ForwardMagnitudePruner, "masked", lambda *a: passes.append(1) or masked(*a))
    forced = trained(pruned)
    assert len(passes) == 4 * (1 if mode == "self_competitor" else 2)
    # The encoder of a self-competitor sees one view only, so its running statistics differ.
    for part in range(2 if mode == "self_competitor" else 3):
        assert all(torch.equal(a, b) for a, b in zip(forced[part], plain[part], strict=True))


@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize(("mode", "passes"), [("logit_masked", 2), ("straight_through", 2), ("self_competitor", 1)])
def test_the_encoders_own_statistics_move_in_every_mode(mode: str, passes: int, separate: bool) -> None:
    model = network()
    pruner = ForwardMagnitudePruner(model, alpha=0.5, mode=mode, separate_bn=separate)  # type: ignore[arg-type]
    twin = copy.deepcopy(model)
    pruner.loss(X, Y)
    for view in (X, Y)[:passes]:
        pruned = ForwardMagnitudePruner(twin, alpha=0.5, mode="straight_through")
        pruned.masked(view) if mode == "straight_through" else twin(view)
    norm = model[1]
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.num_batches_tracked == passes
    torch.testing.assert_close(list(model.buffers()), list(twin.buffers()))
    assert bool(pruner._statistics) == (separate and mode != "straight_through")


def test_pruned_neurons_learn_with_masked_logits_and_not_straight_through() -> None:
    for mode, learns in (("logit_masked", True), ("straight_through", False)):
        model = network()
        pruner = ForwardMagnitudePruner(model, alpha=0.5, granularity="neuron", scope="layer", mode=mode)  # type: ignore[arg-type]
        pruner.loss(X, Y).surrogate.backward()
        for name, mask in pruner.masks.items():
            layer = model.get_submodule(name)
            assert isinstance(layer.weight, Tensor)
            rows = layer.weight.grad.flatten(1).norm(dim=1)  # type: ignore[union-attr]
            assert bool((rows[~mask] > 0).all()) == learns
            assert (rows[mask] > 0).any()


def test_the_modes_give_three_different_updates_with_weight_masks() -> None:
    found = {}
    for mode in ("logit_masked", "straight_through", "self_competitor"):
        model = network()
        ForwardMagnitudePruner(model, alpha=0.5, mode=mode).loss(X, Y).surrogate.backward()  # type: ignore[arg-type]
        found[mode] = torch.cat([g.flatten() for g in gradients(model)])
    assert (found["logit_masked"] - found["straight_through"]).norm() > 1e-3
    assert (found["self_competitor"] - found["straight_through"]).norm() > 1e-3
    plain = network()
    ForwardMagnitudePruner(plain, alpha=0.0).loss(X, Y).surrogate.backward()
    assert (found["logit_masked"] - torch.cat([g.flatten() for g in gradients(plain)])).norm() > 1e-3


class Faulty(nn.Module):
    def forward(self, inputs: Tensor) -> Tensor:
        raise RuntimeError("halfway")


@pytest.mark.parametrize("separate", [True, False])
def test_weights_hooks_and_buffers_are_as_before_after_an_exception(separate: bool) -> None:
    model = network()
    fired = []
    hook = model[4].register_forward_hook(lambda *_: fired.append(1))
    pruner = ForwardMagnitudePruner(model, alpha=0.5, separate_bn=separate)
    objects = [id(t) for t in (*model.parameters(), *model.buffers())]
    names, values = list(model.state_dict()), copy.deepcopy(model.state_dict())
    hooks = [dict(module._forward_hooks) for module in model.modules()]
    model.append(Faulty())
    with pytest.raises(RuntimeError, match="halfway"), pruner.applied():
        model(X)
    with pytest.raises(RuntimeError, match="halfway"):
        pruner.masked(X)
    del model[-1]
    assert fired == [1, 1]
    assert [id(t) for t in (*model.parameters(), *model.buffers())] == objects
    assert list(model.state_dict()) == names
    assert all(torch.equal(value, values[name]) for name, value in model.state_dict().items())
    assert [dict(module._forward_hooks) for module in model.modules()] == hooks
    hook.remove()


def test_the_masked_branch_keeps_its_own_statistics_or_leaves_none() -> None:
    for separate in (True, False):
        model = network()
        pruner = ForwardMagnitudePruner(model, alpha=0.5, separate_bn=separate)
        for _ in range(3):
            pruner.masked(X)
        norm = model[1]
        assert isinstance(norm, nn.BatchNorm2d)
        assert torch.equal(norm.running_mean, torch.zeros(4, dtype=torch.float64))  # type: ignore[arg-type]
        assert norm.num_batches_tracked == 0
        model.eval()
        own = pruner.masked(X)
        with torch.no_grad():
            pruner.separate_bn = False
            shared = pruner.masked(X)
        assert torch.equal(own, shared) == (not separate)


def test_masks_are_refreshed_when_asked_and_steps_are_counted() -> None:
    for refresh in ("step", "epoch"):
        model = network()
        pruner = ForwardMagnitudePruner(model, alpha=0.5, granularity="neuron", scope="layer", refresh=refresh)  # type: ignore[arg-type]
        before = pruner.masks["6"].clone()
        with torch.no_grad():
            model[6].weight.copy_(torch.where(before[:, None], 1e-3, 10.0).expand(-1, 6))
        pruner.loss(X, Y)
        assert torch.equal(pruner.masks["6"], before) == (refresh == "epoch")
        pruner.end_epoch()
        assert not torch.equal(pruner.masks["6"], before)
        assert pruner.steps == 1


def test_layers_are_chosen_by_name_or_predicate_and_ties_are_masked_together() -> None:
    assert list(ForwardMagnitudePruner(network(), alpha=0.5, layers=["6", "0"]).layers) == ["0", "6"]
    linear = ForwardMagnitudePruner(network(), alpha=0.5, layers=lambda name, module: isinstance(module, nn.Linear))
    assert list(linear.layers) == ["4", "6"]
    tied = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)).double()
    tied[1].weight = tied[0].weight
    pruner = ForwardMagnitudePruner(tied, alpha=0.5, layers=["0"])
    masked = tied[0].weight * pruner.masks["0"]
    x = normal(3, 4)
    torch.testing.assert_close(pruner.masked(x), x @ masked.T @ masked.T)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": 1.0}, "must lie in"),
        ({"alpha": -0.1}, "must lie in"),
        ({"alpha": 0.5, "mode": "forward"}, "mode must be"),
        ({"alpha": 0.5, "granularity": "filter"}, "granularity must be"),
        ({"alpha": 0.5, "scope": "model"}, "scope must be"),
        ({"alpha": 0.5, "refresh": "never"}, "refresh must be"),
        ({"alpha": 0.5, "start": -1}, "start must be at least 0"),
        ({"alpha": 0.5, "layers": ["head"]}, "is called 'head'"),
        ({"alpha": 0.5, "layers": lambda name, module: False}, "no linear or convolution"),
        ({"alpha": 0.95, "granularity": "neuron", "scope": "layer"}, "nothing would be left"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ForwardMagnitudePruner(network(), **options)  # type: ignore[arg-type]


def test_parametrised_weights_are_refused() -> None:
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)))
    with pytest.raises(ValueError, match="parametrisation"):
        ForwardMagnitudePruner(model, alpha=0.5)


def test_masks_and_statistics_follow_an_encoder_that_moves() -> None:
    model = network()
    pruner = ForwardMagnitudePruner(model, alpha=0.5)
    pruner.masked(X)
    kept = {key: value.clone() for key, value in pruner._statistics.items()}
    model.float()
    assert pruner.masked(X.float()).dtype == torch.float32
    assert {v.dtype for v in pruner._statistics.values()} == {torch.float32, torch.int64}
    mean = next(key for key in kept if key.endswith("running_mean"))
    assert not torch.equal(pruner._statistics[mean].double(), kept[mean])
    model.to("meta")
    assert pruner.masked(X.float().to("meta")).device.type == "meta"
    assert {m.device.type for m in pruner.masks.values()} == {"meta"}
    assert {v.device.type for v in pruner._statistics.values()} == {"meta"}


def test_what_is_masked_learns_through_the_full_view_of_a_self_competitor() -> None:
    model = network()
    pruner = ForwardMagnitudePruner(model, alpha=0.5, mode="self_competitor")
    pruner.loss(X, Y).surrogate.backward()
    for name, mask in pruner.masks.items():
        weight = model.get_submodule(name).weight
        assert isinstance(weight, Tensor)
        assert weight.grad is not None
        assert weight.grad[~mask].abs().max() > 0


class Counting(nn.Module):
    """A layer with a buffer of its own that every pass changes in place, and one that it exchanges."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("passes", torch.zeros(()))
        self.register_buffer("last", torch.zeros(()))

    def forward(self, inputs: Tensor) -> Tensor:
        self.passes += 1  # type: ignore[operator]
        self.last = inputs.detach().mean()
        return inputs


@pytest.mark.parametrize("separate", [True, False])
def test_buffers_of_any_layer_are_put_back(separate: bool) -> None:
    model = nn.Sequential(nn.Linear(3, 4), Counting()).double()
    pruner = ForwardMagnitudePruner(model, alpha=0.5, separate_bn=separate)
    objects = [id(b) for b in model.buffers()]
    pruner.masked(normal(5, 3))
    assert [id(b) for b in model.buffers()] == objects
    assert [float(b) for b in model.buffers()] == [0, 0]
    model(normal(5, 3))
    assert model[1].passes == 1
    other = ForwardMagnitudePruner(model, alpha=0.5, mode="straight_through")
    other.masked(normal(5, 3))
    assert model[1].passes == 2


@pytest.mark.parametrize("mode", MODES)
def test_a_training_is_resumed_bit_for_bit(mode: str, tmp_path: Path) -> None:
    def build(model: nn.Module) -> tuple[nn.Module, torch.optim.Optimizer, ForwardMagnitudePruner]:
        pruner = ForwardMagnitudePruner(model, alpha=0.4, mode=mode, start=1)  # type: ignore[arg-type]
        return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), pruner

    def epoch(model: nn.Module, optimizer: torch.optim.Optimizer, pruner: ForwardMagnitudePruner) -> None:
        for _ in range(3):
            optimizer.zero_grad()
            pruner.loss(X, Y).surrogate.backward()
            optimizer.step()
        pruner.end_epoch()

    whole = build(network())
    epoch(*whole)
    torch.save([part.state_dict() for part in whole], tmp_path / "state.pt")
    epoch(*whole)
    other = network()
    with torch.no_grad():
        other[0].weight.add_(normal(*other[0].weight.shape, seed=50))
    resumed = build(other)
    for part, state in zip(resumed, torch.load(tmp_path / "state.pt"), strict=True):
        part.load_state_dict(state)
    assert resumed[2].steps == 3
    epoch(*resumed)
    for a, b in zip(whole[0].state_dict().values(), resumed[0].state_dict().values(), strict=True):
        assert torch.equal(a, b)
    for a, b in zip(whole[2].state_dict()["masks"].values(), resumed[2].state_dict()["masks"].values(), strict=True):
        assert torch.equal(a, b)
    kept, again = (each[2].state_dict()["statistics"] for each in (whole, resumed))
    assert all(torch.equal(kept[name], again[name]) for name in kept | again)
    assert bool(kept) == (mode != "straight_through")


def test_a_state_of_another_pruner_is_refused() -> None:
    pruner = ForwardMagnitudePruner(network(), alpha=0.5)
    with pytest.raises(ValueError, match="granularity"):
        pruner.load_state_dict(ForwardMagnitudePruner(network(), alpha=0.3, granularity="neuron").state_dict())
    with pytest.raises(KeyError, match="masks"):
        pruner.load_state_dict(network().state_dict())


def test_one_name_is_one_layer_and_an_alpha_that_masks_nothing_is_told() -> None:
    assert list(ForwardMagnitudePruner(network(), alpha=0.5, layers="6").layers) == ["6"]
    with pytest.raises(ValueError, match="is called 'fc1'"):
        ForwardMagnitudePruner(network(), alpha=0.5, layers="fc1")
    with pytest.warns(UserWarning, match=r"alpha = 0.01"):
        ForwardMagnitudePruner(network(), alpha=0.01, granularity="neuron")
