from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.methods import rank_noise
from assay.studies.icl_scale import theory
from assay.studies.icl_scale.learners import answers
from assay.studies.icl_scale.problem import InContextRegression, geometric
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
LAM = torch.tensor(geometric(5, 2.0, 0.2), dtype=torch.float64)
N, M = 12, 7


def _random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _covariance(seed: int = 3) -> torch.Tensor:
    rotation, _ = torch.linalg.qr(_random(5, 5, seed=seed))
    return rotation * LAM @ rotation.T


def test_the_loss_is_the_mean_over_prompts():
    problem = InContextRegression(tuple(LAM.tolist()))
    U = 0.3 * SEEDS.normal("U", 5, 5)
    prompts = problem.sample(SEEDS, "p", 60_000, N)
    errors = 0.5 * (answers(prompts, 0.7 * U.unsqueeze(1))[:, 0] - prompts.targets).square()
    exact = theory.pretraining_loss(U, torch.tensor(0.7), problem.covariance(SEEDS), N)
    deviation = errors.std(1) / 60_000**0.5
    assert bool(((errors.mean(1) - exact).abs() < 4.5 * deviation).all())


def test_the_gradient_vanishes_at_the_inverse_of_gamma():
    Lambda = _covariance()
    U = torch.linalg.inv(theory.gamma(Lambda, N)).requires_grad_(True)
    theory.pretraining_loss(U, torch.tensor(1.0), Lambda, N).backward()
    assert float(U.grad.abs().max()) < 1e-10
    other = _random(5, 5).requires_grad_(True)
    theory.pretraining_loss(other, torch.tensor(1.0), Lambda, N).backward()
    by_hand = theory.gamma(Lambda, N) @ Lambda @ other @ Lambda - Lambda @ Lambda
    torch.testing.assert_close(other.grad, by_hand.detach())


@pytest.mark.parametrize("seed", range(6))
def test_squares_are_completed(seed):
    """The lowest loss, where it lies, and the excess of any other network as a squared norm, to 1e-10."""
    drawn = _random(5, 5, seed=seed)
    Lambda, U, n = drawn @ drawn.T + 0.05 * torch.eye(5), _random(5, 5, seed=seed + 50), 1 + 4 * seed
    u = _random(1, seed=seed + 90)[0]
    values, vectors = torch.linalg.eigh(Lambda)

    def power(matrix_values: torch.Tensor) -> torch.Tensor:
        return vectors * matrix_values @ vectors.T

    exactly = {"atol": 1e-10, "rtol": 1e-10}
    wide = theory.widened(values, n)
    torch.testing.assert_close(power(wide), theory.gamma(Lambda, n), **exactly)
    inverse = torch.linalg.inv(theory.gamma(Lambda, n))
    lowest = 0.5 * torch.trace(Lambda) - 0.5 * torch.trace(Lambda @ Lambda @ inverse)
    torch.testing.assert_close(theory.lowest_loss(values.flip(0), n, 5), lowest, **exactly)
    torch.testing.assert_close(theory.pretraining_loss(inverse / u, u, Lambda, n), lowest, **exactly)
    inner = u * power(values.sqrt()) @ U @ power(values.sqrt()) - Lambda @ inverse
    excess = 0.5 * (power(wide.sqrt()) @ inner).square().sum()
    torch.testing.assert_close(theory.pretraining_loss(U, u, Lambda, n) - lowest, excess, **exactly)


@pytest.mark.parametrize("c", [-3.0, 0.01, 40.0])
def test_the_loss_knows_only_the_product_of_key_query_matrix_and_label_weight(c):
    Lambda, U, u = _covariance(), _random(5, 5), torch.tensor(0.6, dtype=torch.float64)
    loss = theory.pretraining_loss(U, u, Lambda, N)
    torch.testing.assert_close(theory.pretraining_loss(c * U, u / c, Lambda, N), loss, atol=0, rtol=1e-12)
    assert not torch.isclose(theory.pretraining_loss(c * U, u, Lambda, N), loss)


def test_losses_and_errors_turn_with_the_tokens():
    Lambda, U, w = _covariance(), _random(5, 5), _random(5, seed=4)
    R, _ = torch.linalg.qr(_random(5, 5, seed=6))
    u = torch.tensor(0.6, dtype=torch.float64)
    turned, other = R @ Lambda @ R.T, R @ U @ R.T
    close = {"atol": 0, "rtol": 1e-12}
    loss = theory.pretraining_loss(U, u, Lambda, N)
    torch.testing.assert_close(theory.pretraining_loss(other, u, turned, N), loss, **close)
    assert not torch.isclose(theory.pretraining_loss(U, u, turned, N), loss)
    error = theory.evaluation_error(U, Lambda, w, M, 0.3)
    after = theory.evaluation_error(other, turned, R @ w, M, 0.3)
    for part in ("label_noise", "input_noise", "bias"):
        torch.testing.assert_close(getattr(after, part), getattr(error, part), **close)


def _minimised(Lambda: torch.Tensor, r: int, *, seed: int) -> torch.Tensor:
    """uU of rank r with the lowest loss, found from random factors: no formula tells where it lies."""
    key, query = (0.5 * _random(2, r, 5, seed=seed)).unbind()
    u = torch.tensor(0.5, dtype=torch.float64)
    factors = [key.clone().requires_grad_(True), query.clone().requires_grad_(True)]
    search = torch.optim.LBFGS(
        factors, max_iter=400, tolerance_grad=1e-12, tolerance_change=1e-16, line_search_fn="strong_wolfe"
    )

    def closure() -> torch.Tensor:
        search.zero_grad()
        loss = theory.pretraining_loss(factors[0].T @ factors[1], u, Lambda, N)
        loss.backward()
        return loss

    search.step(closure)
    return (u * factors[0].T @ factors[1]).detach()


@pytest.mark.parametrize("r", [1, 3, 5])
def test_the_optimum_turns_with_the_tokens(r):
    """U* → RU*Rᵀ where Λ → RΛRᵀ; the two searches start at different factors, and know R by the covariance alone."""
    Lambda = _covariance()
    R, _ = torch.linalg.qr(_random(5, 5, seed=6))
    found, turned = _minimised(Lambda, r, seed=1), _minimised(R @ Lambda @ R.T, r, seed=2)
    torch.testing.assert_close(turned, R @ found @ R.T, atol=1e-5, rtol=0)
    assert float((turned - found).abs().max()) > 0.05
    values, vectors = torch.linalg.eigh(R @ Lambda @ R.T)
    best = vectors.flip(1) * theory.optimal_gains(values.flip(0), N, r) @ vectors.flip(1).T
    torch.testing.assert_close(turned, best, atol=1e-5, rtol=0)


@pytest.mark.parametrize("r", range(6))
def test_the_optimum_has_the_lowest_loss_and_no_exchange_improves_it(r):
    Lambda = torch.diag(LAM)
    one = torch.tensor(1.0, dtype=torch.float64)
    loss = theory.pretraining_loss(torch.diag(theory.optimal_gains(LAM, N, r)), one, Lambda, N)
    torch.testing.assert_close(loss, theory.lowest_loss(LAM, N, r))
    if 0 < r < 5:
        gains = theory.optimal_gains(LAM, N, 5)
        gains[[r - 1, *range(r + 1, 5)]] = 0
        other = theory.pretraining_loss(torch.diag(gains), one, Lambda, N)
        torch.testing.assert_close(other - loss, theory.exchange_cost(LAM, N, r))


def test_ranks_are_nested_and_full_rank_is_the_inverse():
    losses = torch.stack([theory.lowest_loss(LAM, N, r) for r in range(6)])
    assert bool((losses.diff() < 0).all())
    torch.testing.assert_close(theory.optimal_gains(LAM, N, 5), 1 / theory.gamma(torch.diag(LAM), N).diagonal())
    for r in (-1, 6):
        with pytest.raises(ValueError, match="not possible"):
            theory.optimal_gains(LAM, N, r)


def test_moments_of_labelled_tokens():
    Lambda, w = _covariance(), _random(5, seed=8)
    x = _random(400_000, 5, seed=9) @ torch.linalg.cholesky(Lambda).T
    y = x @ w + 0.5 * _random(400_000, seed=10)
    found = torch.cov((y[:, None] * x).T)
    exact = theory.label_moments(w, Lambda, 0.25)
    torch.testing.assert_close(found, exact, atol=0.03 * float(exact.abs().max()), rtol=0)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 50), st.integers(1, 50), st.floats(0, 4), st.integers(0, 100))
def test_the_error_of_the_optimum_is_that_of_its_matrix(n, length, sigma2, seed):
    w = _random(5, seed=seed)
    closed = rank_noise(LAM, pretraining=n, examples=length, noise=sigma2, weights=w)
    for r in range(6):
        gains = theory.optimal_gains(LAM, n, r)
        matrix = theory.evaluation_error(torch.diag(gains), torch.diag(LAM), w, length, sigma2)
        torch.testing.assert_close(matrix.label_noise, closed.label_noise[r])
        torch.testing.assert_close(matrix.input_noise, closed.sampling[r])
        torch.testing.assert_close(matrix.bias, closed.bias[r])


def test_the_error_is_the_mean_over_noisy_prompts():
    problem = InContextRegression(tuple(LAM.tolist()))
    w, A = SEEDS.normal("w", 5), 0.4 * SEEDS.normal("A", 5, 5)
    prompts = problem.sample(SEEDS, "p", 60_000, M, w).noisy(SEEDS.normal("noise", 60_000, M), 0.7)
    errors = (answers(prompts, A.unsqueeze(1))[:, 0] - prompts.targets).square()
    exact = theory.evaluation_error(A, problem.covariance(SEEDS), w, M, 0.49).total
    assert bool(((errors.mean(1) - exact).abs() < 4.5 * errors.std(1) / 60_000**0.5).all())


def test_long_pretraining_has_a_limit():
    w = _random(5)
    exact = rank_noise(LAM, pretraining=10**9, examples=M, noise=0.5, weights=w).error
    for r in range(6):
        torch.testing.assert_close(exact[r], theory.long_prompt_error(LAM, r, w, M, 0.5))


def test_the_gap_is_the_difference_of_errors():
    w = torch.tensor([1.0, -0.5, 0, 0, 0], dtype=torch.float64)
    signal = float((LAM * w.square()).sum())
    exact = rank_noise(LAM, pretraining=N, examples=M, noise=0.8, weights=w)
    for larger in (3, 4, 5):
        assert theory.gap(LAM, N, 2, larger, signal, M, 0.8) == pytest.approx(exact.gap(2, larger))
    with pytest.raises(ValueError, match="not possible"):
        theory.gap(LAM, N, 2, 6, signal, M, 0.8)


def test_angles_of_known_spaces():
    features = torch.eye(3, dtype=torch.float64)
    tilt = torch.tensor([0.1], dtype=torch.float64)
    turn = torch.eye(3, dtype=torch.float64)
    turn[0, 0], turn[2, 2] = tilt.cos(), tilt.cos()
    turn[0, 2], turn[2, 0] = -tilt.sin(), tilt.sin()
    kept = torch.diag(torch.tensor([2.0, 1, 0], dtype=torch.float64))
    assert float(theory.principal_angle(kept, features, 2)) == pytest.approx(0, abs=1e-6)
    assert float(theory.principal_angle(turn @ kept, features, 2)) == pytest.approx(float(torch.rad2deg(tilt)))
    assert float(theory.principal_angle(kept @ turn, features, 1)) == pytest.approx(float(torch.rad2deg(tilt)))
