from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck

from assay.methods import NuclearNorm, nuclear_norm

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 10_000))


def matrix(rows, dim, seed=0, dtype=torch.float64):
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def orthogonal(size, seed):
    return torch.linalg.qr(matrix(size, size, seed))[0]


def raw(features, **options):
    return nuclear_norm(features, "none", **options)


@settings(max_examples=40, deadline=None)
@given(SHAPES)
def test_the_value_is_the_matrix_norm_and_has_its_symmetries(shape):
    rows, dim, seed = shape
    features = matrix(rows, dim, seed)
    value = raw(features)
    torch.testing.assert_close(value, torch.linalg.matrix_norm(features, ord="nuc"))
    torch.testing.assert_close(raw(orthogonal(rows, seed + 1) @ features @ orthogonal(dim, seed + 2)), value)
    torch.testing.assert_close(raw(features[torch.randperm(rows)]), value)
    torch.testing.assert_close(raw(features.T.contiguous()), value)
    torch.testing.assert_close(raw(-3 * features), 3 * value)
    other = matrix(rows, dim, seed + 3)
    assert float(raw(features + other)) <= float(value + raw(other)) + 1e-9
    frobenius = float(features.norm())
    assert frobenius - 1e-9 <= float(value) <= math.sqrt(min(rows, dim)) * frobenius + 1e-9


@settings(max_examples=30, deadline=None)
@given(SHAPES)
def test_the_gradient_is_the_product_of_the_singular_vectors(shape):
    features = matrix(*shape).requires_grad_()
    (gradient,) = torch.autograd.grad(raw(features), features)
    left, _, right = torch.linalg.svd(features.detach(), full_matrices=False)
    torch.testing.assert_close(gradient, left @ right)


@pytest.mark.parametrize("solver", ["svd", "gram"])
@pytest.mark.parametrize("normalize", ["rows", "none", "sqrt_rows", "fro"])
@pytest.mark.parametrize("center", [False, True])
def test_the_gradient_is_that_of_finite_differences(normalize, center, solver):
    features = matrix(6, 4, 5).requires_grad_()
    assert gradcheck(lambda x: nuclear_norm(x, normalize, center, solver=solver), features)


def test_the_gradient_is_autograds_through_the_whole_decomposition():
    features = matrix(7, 5, 1).requires_grad_()
    (ours,) = torch.autograd.grad(raw(features), features)
    (theirs,) = torch.autograd.grad(torch.linalg.svd(features, full_matrices=False)[1].sum(), features)
    torch.testing.assert_close(ours, theirs)


def test_directions_that_are_not_there_have_no_gradient():
    rank_two = (matrix(8, 2, 0) @ matrix(2, 6, 1)).requires_grad_()
    (gradient,) = torch.autograd.grad(raw(rank_two), rank_two)
    left, _, right = torch.linalg.svd(rank_two.detach(), full_matrices=False)
    torch.testing.assert_close(gradient, left[:, :2] @ right[:2])
    zero = torch.zeros(4, 3, requires_grad=True)
    for solver in ("svd", "gram"):
        for normalize in ("rows", "fro"):
            (gradient,) = torch.autograd.grad(nuclear_norm(zero, normalize, solver=solver), zero)
            assert torch.equal(gradient, torch.zeros(4, 3))


def test_the_normalisations():
    features = matrix(12, 5, 2)
    value = raw(features)
    torch.testing.assert_close(nuclear_norm(features), value / 12)
    torch.testing.assert_close(nuclear_norm(features, "sqrt_rows"), value / math.sqrt(12))
    torch.testing.assert_close(nuclear_norm(features, "fro"), value / features.norm())
    torch.testing.assert_close(nuclear_norm(7 * features, "fro"), nuclear_norm(features, "fro"))
    torch.testing.assert_close(raw(features + 100, center=True), raw(features, center=True))
    torch.testing.assert_close(raw(features, center=True), raw(features - features.mean(0)))


def test_a_rank_that_is_allowed_costs_nothing():
    features = matrix(9, 6, 3)
    values = torch.linalg.svdvals(features)
    torch.testing.assert_close(raw(features, max_rank=2), values[2:].sum())
    assert float(raw(features, max_rank=6)) == 0
    assert float(raw(matrix(8, 2, 0) @ matrix(2, 6, 1), max_rank=2)) < 1e-12


def test_the_gram_solver_agrees_for_well_separated_values():
    features = matrix(96, 300, 4, torch.float32)
    torch.testing.assert_close(raw(features, solver="gram"), raw(features), rtol=1e-4, atol=0)
    (exact,) = torch.autograd.grad(raw(features.requires_grad_()), features)
    (fast,) = torch.autograd.grad(raw(features, solver="gram"), features)
    assert float((exact - fast).norm() / exact.norm()) < 1e-3


def test_a_stack_is_taken_matrix_by_matrix():
    stack = torch.stack([matrix(7, 4, seed) for seed in range(3)])
    together = nuclear_norm(stack, "rows", True, stacked=True)
    torch.testing.assert_close(together, torch.stack([nuclear_norm(each, "rows", True) for each in stack]))


def test_tokens_are_rows_and_maps_are_flattened_per_image():
    tokens = matrix(12, 5).reshape(3, 4, 5)
    torch.testing.assert_close(nuclear_norm(tokens), nuclear_norm(tokens.reshape(12, 5)))
    maps = matrix(3, 20).reshape(3, 5, 2, 2)
    torch.testing.assert_close(nuclear_norm(maps), nuclear_norm(maps.flatten(1)))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_are_computed_in_single(kind):
    features = matrix(8, 5, 6, torch.float32).to(kind).requires_grad_()
    expected = raw(features.detach().float())
    torch.testing.assert_close(raw(features), expected)
    for solver in ("svd", "gram"):
        with torch.autocast("cpu", torch.bfloat16):
            inside = raw(features, solver=solver)
        assert inside.dtype == torch.float32
        torch.testing.assert_close(inside, expected, rtol=1e-4, atol=1e-4)
    (gradient,) = torch.autograd.grad(inside, features)
    assert gradient.dtype == kind


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (torch.randn(5), "must be \\(rows, dim\\)"),
        (torch.empty(0, 4), "at least one of each"),
        (torch.ones(3, 2, dtype=torch.long), "floating-point"),
        (torch.tensor([[1.0, math.nan]]), "1 of their entries are not"),
        (torch.tensor([[1.0, math.inf]]), "must be finite"),
    ],
)
def test_features_that_have_no_norm_are_refused(features, said):
    with pytest.raises(ValueError, match=said):
        nuclear_norm(features)


@pytest.mark.parametrize(
    "options",
    [
        {"lam": -0.1},
        {"lam": math.nan},
        {"warmup": -1},
        {"warmup": 1.5},
        {"normalize": "row"},
        {"solver": "qr"},
        {"max_rank": 0},
        {"every": -1},
        {"lam": "much"},
    ],
)
def test_bad_settings_are_refused(options):
    with pytest.raises(ValueError, match="must"):
        NuclearNorm(**options)


@pytest.mark.parametrize("options", [{"normalize": "row"}, {"solver": "qr"}, {"max_rank": 0}])
def test_bad_options_of_the_function_are_refused(options):
    with pytest.raises(ValueError, match="must"):
        nuclear_norm(torch.randn(3, 2), **options)


@pytest.mark.parametrize("seed", range(5))
def test_with_a_fixed_head_the_cheapest_features_have_rank_one(seed):
    """min over A with Aᵀh = v of ‖XAᵀ‖_* is ‖Xv‖/‖h‖, attained by A = hvᵀ/‖h‖²."""
    inputs, head, effective = matrix(30, 5, seed), matrix(1, 4, seed + 1)[0], matrix(1, 5, seed + 2)[0]
    least = (inputs @ effective).norm() / head.norm()
    best = torch.outer(head, effective) / head.square().sum()
    torch.testing.assert_close(raw(inputs @ best.T), least)
    away = torch.eye(4, dtype=torch.float64) - torch.outer(head, head) / head.square().sum()
    for other in range(20):
        feasible = best + away @ matrix(4, 5, 100 + other)
        torch.testing.assert_close(feasible.T @ head, effective)
        assert float(raw(inputs @ feasible.T)) >= float(least) - 1e-9


def test_numpy_numbers_are_settings():
    assert NuclearNorm(lam=np.float64(0.1), warmup=np.int64(3)).warmup == 3


def test_the_features_of_all_processes_are_gathered(tmp_path):
    """A group of one process: what it gathers are its own."""
    features = matrix(6, 4, 8).requires_grad_()
    (alone,) = torch.autograd.grad(NuclearNorm(gather=True).value(features), features)
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/group", world_size=1, rank=0)
    try:
        (gathered,) = torch.autograd.grad(NuclearNorm(gather=True).value(features), features)
    finally:
        torch.distributed.destroy_process_group()
    torch.testing.assert_close(gathered, alone)
