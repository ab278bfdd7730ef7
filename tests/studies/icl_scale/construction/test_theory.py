from __future__ import annotations

import pytest
import torch

from assay.studies.icl_scale.construction import theory
from assay.studies.icl_scale.construction.problem import SparseParity

SIZES = [(2, 1), (3, 1), (3, 2), (4, 2)]
every_size = pytest.mark.parametrize("size", SIZES, ids=str)


@every_size
def test_outputs_are_the_differing_bits(size):
    problem = SparseParity(*size)
    for bits in size:
        found = theory.margins(theory.constructed(problem, bits), problem, problem.tasks("all"))
        torch.testing.assert_close(found, theory.apart(problem, bits).double()[:, None].expand_as(found))


@every_size
def test_losses_and_norms_have_their_formulas(size):
    problem = SparseParity(*size)
    small, large = theory.constructed(problem, size[1]), theory.constructed(problem, size[0])
    assert theory.hinge_loss(large, problem, "all") == pytest.approx(0)
    assert theory.hinge_loss(small, problem, "important") == pytest.approx(0)
    assert theory.hinge_loss(small, problem, "rare") == pytest.approx(theory.share_alike(problem))
    assert small.squared_norm(0.2) == pytest.approx(theory.squared_norm(problem, size[1]))


def test_printed_shares():
    shares = [theory.share_alike(SparseParity(*size)) for size in SIZES]
    assert shares == pytest.approx([0.4, 4 / 9, 2 / 11, 4 / 19])


def test_the_example_of_eight_signs():
    heads = theory.constructed(SparseParity(3, 1, 0.2), 3)
    signs = 0.8 * heads.diagonals.T
    torch.testing.assert_close(signs[0], torch.tensor([-1.0, 1, -1, 1, -1, 1, -1, 1], dtype=torch.float64))
    torch.testing.assert_close(signs[2], torch.tensor([-1.0, -1, -1, -1, 1, 1, 1, 1], dtype=torch.float64))
    torch.testing.assert_close(signs[3], torch.full((8,), -3.0, dtype=torch.float64))
    torch.testing.assert_close(signs[4:], -signs[:4])
    assert heads.a.tolist() == [-1, -1, -1, 1] * 2


@pytest.mark.parametrize(("bits", "norm"), [(2, 28), (3, 280), (4, 2480)])
def test_four_heads_solve_everything(bits, norm):
    problem = SparseParity(bits, 1)
    heads = theory.four_heads(problem)
    assert float(theory.margins(heads, problem, problem.tasks("all")).min()) == pytest.approx(1)
    assert heads.squared_norm(0.2) == pytest.approx(norm)


def test_other_counterexamples():
    square, pair = SparseParity(2, 1), SparseParity(1, 1)
    centred = theory.centred_heads(square)
    assert float(theory.margins(centred, square, square.tasks("all")).min()) == pytest.approx(1)
    assert centred.squared_norm(0.2) == pytest.approx(11)
    assert theory.constructed(square, 2).squared_norm(0.2) == pytest.approx(12)
    diagonal = theory.constructed(pair, 1)
    spread = theory.spread_over_rows(diagonal)
    tasks = pair.tasks("all")
    torch.testing.assert_close(theory.margins(spread, pair, tasks), theory.margins(diagonal, pair, tasks))
    assert spread.squared_norm(0.2) == pytest.approx(diagonal.squared_norm(0.2) / 2)


@every_size
def test_the_corrected_scale_halves_the_loss_on_rare_tasks(size):
    problem = SparseParity(*size)
    better = theory.constructed(problem, size[1], size[1] + 1)
    assert theory.hinge_loss(better, problem, "important") == pytest.approx(0)
    assert theory.hinge_loss(better, problem, "rare") == pytest.approx(theory.share_alike(problem) / 2)


def test_the_linear_programme_finds_the_printed_signs_with_the_corrected_scale():
    problem = SparseParity(2, 1, 0.2, 0.01)
    loss, scales = theory.sign_class_optimum(problem)
    assert loss == pytest.approx(0.2 * 0.01)
    assert sorted(scales) == pytest.approx([1, 1, 2, 2])
    assert problem.rare < theory.largest_rare_rate(problem)
    with pytest.raises(ValueError, match="two important signs"):
        theory.sign_class_optimum(SparseParity(3, 2))


@every_size
def test_diagonals_are_orthogonal_up_to_sign_and_project(size):
    problem = SparseParity(*size)
    heads = theory.constructed(problem, size[0])
    half = heads.diagonals[:, : size[0] + 1]
    gram = half.T @ half
    torch.testing.assert_close(gram, torch.diag(gram.diagonal()))
    P = theory.projection(heads)
    torch.testing.assert_close(P @ P, P)
    torch.testing.assert_close(P, P.T)
    assert float(P.trace()) == pytest.approx(size[0] + 1)


def test_outputs_do_not_depend_on_the_basis():
    problem = SparseParity(3, 1)
    heads = theory.constructed(problem, 3)
    G = torch.linalg.qr(torch.randn(8, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64))[0]
    tasks = problem.tasks("all")
    phi, _ = problem.queries(tasks)
    z = problem.reads(tasks).unsqueeze(1).expand_as(phi)
    torch.testing.assert_close(heads.in_basis(G)(z @ G.T, phi @ G.T), heads(z, phi))
    torch.testing.assert_close(heads.on_products(z * phi), heads(z, phi))


def test_output_weights_beyond_one_are_refused():
    with pytest.raises(ValueError, match="between −1 and 1"):
        theory.Heads.diagonal([2.0], torch.ones(1, 4, dtype=torch.float64))
