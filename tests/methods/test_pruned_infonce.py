from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from assay.methods import ForwardMagnitudePruner, pruned_infonce
from assay.training.contrastive import info_nce


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


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


def test_the_baseline_has_the_options_of_the_loss_and_infonce_the_whole_gradient():
    torch.manual_seed(0)
    encoder, x, y = torch.nn.Linear(6, 4), torch.randn(16, 6), torch.randn(16, 6)
    pruner = ForwardMagnitudePruner(encoder, alpha=0.0)

    def slope(value):
        return torch.cat([each.flatten() for each in torch.autograd.grad(value, list(encoder.parameters()))])

    whole = slope(info_nce(encoder(x), encoder(y), temperature=0.2))
    torch.testing.assert_close(slope(pruner.loss(x, y, stop_gradient=False).surrogate), whole)
    stopped = slope(pruner.loss(x, y).surrogate)
    torch.testing.assert_close(stopped, slope(pruner.baseline(x, y).surrogate))
    assert 0.3 < float(stopped.norm() / whole.norm()) < 0.7, "about half, as the guide says"
    assert pruner.steps == 2
