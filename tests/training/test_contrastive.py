"""Contrastive losses against loops that follow their definitions."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from assay.methods.pruned_infonce import pruned_infonce
from assay.training import info_nce, logistic_contrast, nt_xent


@pytest.fixture
def views():
    generator = torch.Generator().manual_seed(0)
    first = torch.randn(5, 7, generator=generator, dtype=torch.double)
    return first, first + 0.5 * torch.randn(5, 7, generator=generator, dtype=torch.double)


def similar(first, second):
    return normalize(first, dim=1) @ normalize(second, dim=1).T


def test_info_nce_is_its_definition(views):
    table = similar(*views) / 0.3
    ways = [
        sum(math.log(sum(math.exp(v) for v in row)) - row[k] for k, row in enumerate(t.tolist())) / 5
        for t in (table, table.T)
    ]
    assert float(info_nce(*views, temperature=0.3, symmetric=False)) == pytest.approx(ways[0])
    assert float(info_nce(*views, temperature=0.3)) == pytest.approx(sum(ways) / 2)


def test_info_nce_has_the_gradient_of_pruned_infonce_without_pruning(views):
    x, y = (view.clone().requires_grad_() for view in views)
    pruned_infonce(x, y, x, y, tau=0.2, stop_gradient=False).surrogate.backward()
    found = [x.grad.clone(), y.grad.clone()]
    x.grad = y.grad = None
    info_nce(x, y, temperature=0.2).backward()
    torch.testing.assert_close(x.grad, found[0])
    torch.testing.assert_close(y.grad, found[1])


def test_given_negatives_take_the_place_of_the_batch(views):
    first, second = views
    others = torch.randn(9, 7, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    losses = []
    for k in range(5):
        row = [float(similar(first[[k]], each[None]) / 0.2) for each in (second[k], *others)]
        losses.append(math.log(sum(map(math.exp, row))) - row[0])
    assert float(info_nce(first, second, negatives=others)) == pytest.approx(sum(losses) / 5)


def test_nt_xent_is_its_definition(views):
    rows = torch.cat(views)
    table = (similar(rows, rows) / 0.5).tolist()
    losses = []
    for k in range(10):
        others = sum(math.exp(v) for j, v in enumerate(table[k]) if j != k)
        losses.append(math.log(others) - table[k][(k + 5) % 10])
    assert float(nt_xent(*views)) == pytest.approx(sum(losses) / 10)


@pytest.mark.parametrize("queue", [False, True])
def test_the_logistic_loss_is_the_mean_over_triples(views, queue):
    first, second = views
    others = torch.randn(4, 7, generator=torch.Generator().manual_seed(1), dtype=torch.double)
    triples = [
        (first[k], second[k], each)
        for k in range(5)
        for j, each in enumerate(others if queue else second)
        if queue or j != k
    ]
    losses = [math.log1p(math.exp(-float(x @ (up - down)) / 2)) for x, up, down in triples]
    found = logistic_contrast(first, second, temperature=2.0, normalize=False, negatives=others if queue else None)
    assert float(found) == pytest.approx(sum(losses) / len(losses))


@pytest.mark.parametrize("loss", [info_nce, nt_xent, logistic_contrast])
def test_seeds_keep_their_axis(views, loss):
    stacked = [torch.stack([view, view.flip(0) * 2]) for view in views]
    both = loss(*stacked)
    assert both.shape == (2,)
    for seed in range(2):
        torch.testing.assert_close(both[seed], loss(stacked[0][seed], stacked[1][seed]))


@pytest.mark.parametrize("loss", [info_nce, nt_xent, logistic_contrast])
def test_half_precision_is_for_the_encoder(views, loss):
    half = [view.bfloat16() for view in views]
    with torch.autocast("cpu", torch.bfloat16):
        found = loss(*half, temperature=0.05)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, loss(*(view.float() for view in half), temperature=0.05))


@pytest.mark.parametrize("loss", [info_nce, nt_xent, logistic_contrast])
def test_refusals(views, loss):
    first, second = views
    with pytest.raises(ValueError, match="batch of one"):
        loss(first[:1], second[:1])
    with pytest.raises(ValueError, match="equal shape"):
        loss(first, second[:3])
    with pytest.raises(ValueError, match="temperature must be positive"):
        loss(first, second, temperature=0)
