"""Heads are minima of convex problems: checked by their slopes, normal equations and points left out."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import one_hot

from assay.probes import fit_head
from assay.probes.heads import Ridge


def data(rows=80, dim=4, seed=0):
    features = torch.randn(rows, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return features, (features[:, 0] > 0).long() + (features[:, 1] > 1).long()


@pytest.mark.parametrize("rows", [4, 60])  # fewer samples than features, and more
def test_ridge_heads_are_the_normal_equations(rows):
    features = data(rows, 5)[0] + 2
    targets = torch.randn(rows, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    ridge = Ridge(features, targets)
    head = ridge.head(0.3)
    x = (features - head.shift) / head.scale
    normal = torch.linalg.solve(x.T @ x / rows + 0.3 * torch.eye(5), x.T @ (targets - targets.mean(0)) / rows)
    torch.testing.assert_close(head.weight, normal.T)
    torch.testing.assert_close(head.scores(features).mean(0), targets.mean(0))
    if rows > 5:
        assert ridge.best([1e-6, 100.0]) == 100.0, "pure noise asks for the largest penalty on offer"


def test_the_softmax_head_is_stationary_from_any_start():
    features, labels = data()
    options = dict(scaling="rescaled", penalty=0.025)
    head = fit_head(features, labels, **options)
    warm = fit_head(features, labels, **options, start=fit_head(features, labels, scaling="rescaled", penalty=1.0))
    torch.testing.assert_close(warm.weight, head.weight, atol=1e-3, rtol=1e-2)
    x = (features - head.shift) / head.scale
    slope = (head.scores(features).softmax(1) - one_hot(labels, 3)).T @ x / len(x) + 0.05 * head.weight
    assert float(slope.abs().max()) < 1e-5


def test_the_head_is_scikit_learns():
    linear_model = pytest.importorskip("sklearn.linear_model")
    features, labels = data(400)
    head = fit_head(features, labels, scaling="raw", penalty=1e-3)
    theirs = linear_model.LogisticRegression(C=1 / (2 * 1e-3 * 400), tol=1e-10, max_iter=1000).fit(features, labels)
    ours = head.scores(features).softmax(1).numpy()
    assert abs(ours - theirs.predict_proba(features)).max() < 1e-4


def test_classes_that_do_not_occur_have_a_score_and_unknown_labels_are_refused():
    features, labels = data()
    assert fit_head(features, labels, classes=torch.arange(5)).scores(features).shape == (80, 5)
    assert torch.equal(fit_head(features, 2 * labels).predict(features) % 2, torch.zeros(80, dtype=torch.long))
    with pytest.raises(ValueError, match="none of the 2 classes"):
        fit_head(features, labels, classes=[0, 1])


def test_autocast_and_inference_mode_change_nothing():
    features, labels = data()
    expected = fit_head(features.float(), labels.to(torch.uint8)).weight
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.inference_mode():
        torch.testing.assert_close(fit_head(features.float().numpy(), labels.int().numpy()).weight, expected)
