from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from assay.methods.forward_pruning import ForwardMagnitudePruner, pruned_infonce


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


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("stop", [False, True])
def test_without_a_mask_the_gradient_is_that_of_infonce(symmetric: bool, scaled: bool, stop: bool) -> None:
    x, y = normal(7, 5).requires_grad_(), normal(7, 5, seed=1).requires_grad_()
    found = pruned_infonce(x, y, x, y, tau=0.7, normalize=scaled, symmetric=symmetric, stop_gradient=stop)
    ours = torch.autograd.grad(found.surrogate, [x, y], allow_unused=True, materialize_grads=True)

    def one_way(a: Tensor, b: Tensor) -> Tensor:
        a, b = (normalize(v, dim=1) if scaled else v for v in (a, b))
        return cross_entropy(a @ (b.detach() if stop else b).T / 0.7, torch.arange(7))

    loss = (one_way(x, y) + one_way(y, x)) / 2 if symmetric else one_way(x, y)
    theirs = torch.autograd.grad(loss, [x, y], allow_unused=True, materialize_grads=True)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(found.loss, loss.detach())
    assert (ours[1].abs().max() == 0) == (stop and not symmetric)


def test_half_precision_embeddings_are_compared_in_full_precision() -> None:
    x, y = (normal(5, 4, seed=s).bfloat16() for s in (0, 1))
    with torch.autocast("cpu", torch.bfloat16):
        found = pruned_infonce(x, y, x, y, tau=0.1)
    assert found.surrogate.dtype == torch.float32
    assert torch.equal(found.loss, pruned_infonce(x.float(), y.float(), x.float(), y.float(), tau=0.1).loss)


def test_masked_softmax_and_full_gradients_by_finite_differences() -> None:
    full, other, mask_x, mask_y = (normal(6, 4, seed=s) for s in range(4))
    residual = (mask_x @ mask_y.T / 2).softmax(1) - torch.eye(6, dtype=torch.float64)

    def by_definition(f: Tensor) -> float:
        return float(sum(residual[k, s] * (f[k] @ other[s]) for k in range(6) for s in range(6)) / (2 * 6))

    free = full.clone().requires_grad_()
    pruned_infonce(free, other, mask_x, mask_y, tau=2, normalize=False, symmetric=False).surrogate.backward()
    direction, h = normal(6, 4, seed=9), 1e-6
    numeric = (by_definition(full + h * direction) - by_definition(full - h * direction)) / (2 * h)
    assert free.grad is not None
    assert float((free.grad * direction).sum()) == pytest.approx(numeric, rel=1e-7)


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


@pytest.mark.parametrize("mode", ["logit_masked", "straight_through", "self_competitor"])
def test_alpha_zero_and_steps_before_the_start_are_no_pruner_bit_for_bit(mode: str) -> None:
    results = []
    for options in ({"alpha": 0.0}, {"alpha": 0.5, "start": 1}, None):
        model = network()
        if options is None:
            f_x, f_y = model(X), model(Y)
            loss = pruned_infonce(f_x, f_y, f_x, f_y)
        else:
            loss = ForwardMagnitudePruner(model, mode=mode, **options).loss(X, Y)  # type: ignore[arg-type]
        loss.surrogate.backward()
        results.append((loss, gradients(model), [b.clone() for b in model.buffers()]))
    for other in results[:2]:
        assert torch.equal(other[0].surrogate, results[2][0].surrogate)
        assert all(torch.equal(a, b) for a, b in zip(other[1], results[2][1], strict=True))
        assert all(torch.equal(a, b) for a, b in zip(other[2], results[2][2], strict=True))


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
        ({"alpha": 0.5, "start": -1}, "number of steps"),
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


@pytest.mark.parametrize(
    ("shapes", "tau", "words"),
    [
        (((1, 4), (1, 4)), 1.0, "batch of one"),
        (((4, 4), (4, 4)), 0.0, "temperature"),
        (((4, 4), (5, 4)), 1.0, "equal shape"),
    ],
)
def test_bad_embeddings_are_refused(shapes: tuple[tuple[int, int], ...], tau: float, words: str) -> None:
    x, y = (normal(*shape) for shape in shapes)
    with pytest.raises(ValueError, match=words):
        pruned_infonce(x, y, x, y, tau=tau)


def test_masks_and_statistics_follow_an_encoder_that_moves() -> None:
    model = network()
    pruner = ForwardMagnitudePruner(model, alpha=0.5)
    pruner.masked(X)
    kept = {key: value.clone() for key, value in pruner._statistics.items()}
    model.float()
    assert pruner.masked(X.float()).dtype == torch.float32
    assert {v.dtype for v in pruner._statistics.values()} == {torch.float32, torch.int64}
    mean = next(key for key in kept if key[1] == "running_mean")
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
