from __future__ import annotations

import math
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from assay.methods.gradient_descent_rates import BOUNDS, STEP_RULES, chebyshev_nodes
from assay.methods.looped_transformer import (
    LoopedLinearTransformer,
    error_bound,
    estimates,
    linear_attention,
    make_prompt,
    prompt_condition,
    required_loops,
    step_sizes,
)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def problem(*shape: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Examples (*shape), noiseless targets, and the unit parameter behind them."""
    inputs = normal(*shape, seed=seed)
    truth = normal(*shape[:-2], shape[-1], seed=seed + 1)
    truth = truth / truth.norm(dim=-1, keepdim=True)
    return inputs, (inputs @ truth.unsqueeze(-1)).squeeze(-1), truth


def descent(inputs: Tensor, targets: Tensor, steps: Tensor, theta: Tensor) -> list[Tensor]:
    """The slow obvious thing: gradient descent by autograd, one prompt."""
    path = [theta]
    for step in steps:
        point = path[-1].detach().requires_grad_()
        (gradient,) = torch.autograd.grad(0.5 * (targets - inputs @ point).square().sum(), point)
        path.append(path[-1] - step * gradient)
    return path


def slow_attention(prompt: Tensor, query_key: Tensor, value_output: Tensor) -> Tensor:
    """Entry by entry: only the last row attends, to all rows but itself."""
    out = torch.zeros_like(prompt)
    for example in prompt[:-1]:
        out[-1] += (prompt[-1] @ query_key @ example) * (example @ value_output)
    return out


@pytest.mark.parametrize("shape", [(5, 1), (9, 3), (20, 7)])
@pytest.mark.parametrize("alpha", [1.0, -2.5, 0.3])
@pytest.mark.parametrize("fast", [True, False])
def test_loops_are_gradient_descent(shape, alpha, fast):
    inputs, targets, _ = problem(*shape)
    start = normal(shape[1], seed=5)
    largest = prompt_condition(inputs).largest
    steps = (0.2 + 0.8 * torch.rand(30, generator=torch.Generator().manual_seed(1), dtype=torch.float64)) / largest
    model = LoopedLinearTransformer(shape[1], 30, steps, fast=fast)
    rows = model.query_rows(make_prompt(inputs, targets, alpha, start))
    path = torch.stack(descent(inputs, targets, steps, start))
    torch.testing.assert_close(estimates(rows, alpha), path, rtol=0, atol=1e-12)
    assert bool((rows[:, -1] == alpha).all())
    assert torch.equal(model(make_prompt(inputs, targets, alpha, start)), -rows[-1, :-1])
    torch.testing.assert_close(model.solve(inputs, targets, alpha=alpha, start=start), path[-1], rtol=0, atol=1e-12)


def test_only_the_query_row_changes_bit_for_bit():
    inputs, targets, _ = problem(3, 9, 4)
    states = LoopedLinearTransformer(4, 20, fast=False).prompts(make_prompt(inputs, targets, 0.7))
    assert torch.equal(states[:, :, :-1], states[:1, :, :-1].expand_as(states[:, :, :-1]))
    assert not torch.equal(states[0, :, -1], states[-1, :, -1])


@pytest.mark.parametrize("own_weights", [False, True])
def test_the_fast_path_equals_the_dense_one(own_weights):
    inputs, targets, _ = problem(2, 5, 12, 4)
    prompt = make_prompt(inputs, targets, 1.3, normal(2, 5, 4, seed=3))
    weights = (normal(5, 5, seed=8), normal(5, 5, seed=9)) if own_weights else (None, None)
    for steps in ("1/L", 1e-3) if own_weights else (*STEP_RULES, 1e-3):
        dense = LoopedLinearTransformer(4, 6, steps, *weights, fast=False)
        fast = LoopedLinearTransformer(4, 6, steps, *weights, fast=True)
        torch.testing.assert_close(fast.query_rows(prompt), dense.query_rows(prompt), rtol=1e-9, atol=1e-12)


def test_dense_attention_equals_a_loop_over_examples():
    prompt, query_key, value_output = normal(7, 4), normal(4, 4, seed=1), normal(4, 4, seed=2)
    model = LoopedLinearTransformer(3, 1, 1.0, query_key, value_output, fast=False)
    slow = slow_attention(prompt, query_key, value_output)
    torch.testing.assert_close(model.attention(prompt), slow)
    mask = torch.zeros(7, 7, dtype=torch.float64)
    mask[-1, :-1] = 1
    torch.testing.assert_close(linear_attention(prompt, query_key, value_output, mask), slow)


@pytest.mark.parametrize("change", [{"mask": "query_reads_all"}, {"mask": "causal"}, {"value_output": torch.eye(5)}])
def test_each_change_of_the_construction_breaks_the_identity(change):
    inputs, targets, _ = problem(32, 4)
    prompt = make_prompt(inputs, targets)
    right = LoopedLinearTransformer(4, 12)(prompt)
    assert (LoopedLinearTransformer(4, 12, fast=False, **change)(prompt) - right).norm() > 1e-3


def test_invariances():
    inputs, targets, _ = problem(16, 4)
    model = LoopedLinearTransformer(4, 8)
    output = model(make_prompt(inputs, targets, 2.0))
    close = {"rtol": 1e-10, "atol": 1e-12}
    order = torch.randperm(16, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model(make_prompt(inputs[order], targets[order], 2.0)), output, **close)
    rotation = torch.linalg.qr(normal(4, 4, seed=4)).Q
    torch.testing.assert_close(model(make_prompt(inputs @ rotation, targets, 2.0)), rotation.T @ output, **close)
    torch.testing.assert_close(model(make_prompt(inputs, targets, -1.0)), -output / 2, **close)
    torch.testing.assert_close(model(make_prompt(3 * inputs, 3 * targets, 2.0)), output, **close)
    keep = torch.diag(torch.tensor([1.0, 1, 1, 1, 0], dtype=torch.float64))
    scaled = LoopedLinearTransformer(4, 8, "1/L", 7 * torch.eye(5, dtype=torch.float64), keep / 7)
    torch.testing.assert_close(scaled(make_prompt(inputs, targets, 2.0)), output, **close)


def test_cases_with_a_known_answer():
    columns = torch.linalg.qr(normal(9, 3)).Q
    truth = torch.tensor([0.0, 0.6, 0.8], dtype=torch.float64)
    torch.testing.assert_close(LoopedLinearTransformer(3, 1).solve(columns, columns @ truth), truth)
    none = LoopedLinearTransformer(3, 0).solve(columns, columns @ truth)
    assert torch.equal(none, torch.zeros(3, dtype=torch.float64))
    for rule in STEP_RULES:
        inputs, targets, truth = problem(50, 3)
        torch.testing.assert_close(LoopedLinearTransformer(3, 60, rule).solve(inputs, targets), truth)


def test_gradients_pass_through_the_loop():
    inputs, targets, _ = problem(10, 3)
    steps = torch.full((5,), 0.01, dtype=torch.float64)

    def by_descent(x: Tensor, y: Tensor) -> Tensor:
        theta = torch.zeros(3, dtype=torch.float64)
        for step in steps:
            theta = theta - step * (x.T @ (x @ theta) - x.T @ y)
        return theta

    grads = []
    for solve in (by_descent, LoopedLinearTransformer(3, 5, steps).solve):
        x, y = inputs.clone().requires_grad_(), targets.clone().requires_grad_()
        grads.append(torch.autograd.grad(solve(x, y).square().sum(), (x, y)))
    torch.testing.assert_close(grads[0], grads[1])
    for rule in STEP_RULES:
        layer = LoopedLinearTransformer(3, 4, rule)
        assert torch.autograd.gradcheck(layer.solve, (inputs.requires_grad_(), targets.requires_grad_()))


def test_given_parameters_are_trained_and_others_are_not():
    assert list(LoopedLinearTransformer(3, 2).parameters()) == []
    step = nn.Parameter(torch.tensor(0.01))
    model = LoopedLinearTransformer(3, 2, step, nn.Parameter(torch.eye(4)), nn.Parameter(torch.eye(4)))
    assert len(list(model.parameters())) == 3
    inputs, targets, _ = (part.float() for part in problem(8, 3))
    model.solve(inputs, targets).sum().backward()
    assert all(bool(parameter.grad.any()) for parameter in model.parameters())


@pytest.mark.parametrize("change", ["loaded", "assigned", "in place"])
def test_weights_that_change_later_are_used(change):
    trained = LoopedLinearTransformer(4, 5, "1/L", nn.Parameter(normal(5, 5)), nn.Parameter(normal(5, 5, seed=1)))
    fast, dense = (LoopedLinearTransformer(4, 5, fast=fast).double() for fast in (True, False))
    inputs, targets, _ = problem(9, 4)
    prompt = make_prompt(inputs, targets)
    assert fast.constructed
    for model in (fast, dense):
        if change == "loaded":
            model.load_state_dict(trained.state_dict())
        elif change == "assigned":
            model.query_key, model.value_output = trained.query_key.detach(), trained.value_output.detach()
        else:
            model.query_key.copy_(trained.query_key.detach())
            model.value_output.copy_(trained.value_output.detach())
        assert not model.constructed
        torch.testing.assert_close(model.query_rows(prompt), trained.query_rows(prompt))
    fast.load_state_dict(LoopedLinearTransformer(4, 5).state_dict())
    assert fast.constructed
    assert torch.equal(fast(prompt), LoopedLinearTransformer(4, 5)(prompt))


def test_chebyshev_steps_stay_stable_for_many_loops():
    inputs = torch.linalg.qr(normal(40, 6)).Q * torch.linspace(1, 30, 6, dtype=torch.float64)
    truth = normal(6, seed=3)
    theta = LoopedLinearTransformer(6, 200, "chebyshev").solve(inputs, inputs @ truth)
    assert (theta - truth).norm() < 1e-4 * truth.norm()
    natural = torch.sort(step_sizes("chebyshev", inputs, 200), descending=True).values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (LoopedLinearTransformer(6, 200, natural).solve(inputs, inputs @ truth) - truth).norm() > 1e3
    assert sorted(chebyshev_nodes(7)) == pytest.approx(sorted(math.cos((2 * i + 1) * math.pi / 14) for i in range(7)))


@settings(max_examples=60, deadline=None)
@given(
    dim=st.integers(1, 6),
    extra=st.integers(1, 20),
    loops=st.integers(0, 40),
    kind=st.sampled_from(["signs", "cauchy", "sparse", "uniform", "scaled"]),
    rule=st.sampled_from(STEP_RULES),
    seed=st.integers(0, 10_000),
)
def test_the_bounds_hold_for_inputs_that_are_not_gaussian(dim, extra, loops, kind, rule, seed):
    draw = normal(dim + extra, dim, seed=seed)
    inputs = {
        "signs": torch.where(draw > 0, 1.0, -1.0).double(),
        "cauchy": torch.tan(1.5 * torch.tanh(draw)),
        "sparse": draw * (draw.abs() > 1),
        "uniform": torch.erf(draw) + 1,
        "scaled": draw * torch.logspace(0, 2, dim, dtype=torch.float64),
    }[kind]
    try:
        condition = float(prompt_condition(inputs).condition)
    except ValueError:
        return  # linearly dependent columns: refused, as it should be
    if condition > 1e5:
        return  # rounding of the eigenvalues alone would exceed the tolerance
    truth = normal(dim, seed=seed + 1)
    truth = truth / truth.norm()
    theta = LoopedLinearTransformer(dim, loops, rule).solve(inputs, inputs @ truth)
    error, task = float((theta - truth).norm()), abs(float(theta @ truth) - 1)
    sharp = error_bound(condition, loops, bound=rule)
    slack = 1e-12 * condition
    assert task <= error + slack
    assert error <= sharp * (1 + 1e-6) + slack
    printed = error_bound(condition, loops, bound="theorem")
    assert sharp <= printed
    assert error_bound(condition, loops) <= math.exp(-loops / condition) * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(
    condition=st.floats(1.0, 1e4),
    tolerance=st.floats(1e-9, 2.0),
    alpha=st.floats(0.1, 10),
    bound=st.sampled_from(BOUNDS),
)
def test_required_loops_is_the_smallest_number_that_suffices(condition, tolerance, alpha, bound):
    loops = required_loops(condition, tolerance, alpha, bound=bound)
    assert error_bound(condition, loops, alpha, bound=bound) <= tolerance
    assert loops == 0 or error_bound(condition, loops - 1, alpha, bound=bound) > tolerance


def test_bounds_against_values_known_by_hand():
    assert error_bound(4.0, 3, alpha=-2.0) == pytest.approx(2 * 0.75**3)
    assert error_bound(4.0, 3, bound="2/(L+mu)") == pytest.approx(0.6**3)
    ratio = 5 / 3  # (κ+1)/(κ−1); T_2(x) = 2x² − 1
    assert error_bound(4.0, 2, bound="chebyshev") == pytest.approx(1 / (2 * ratio**2 - 1))
    assert error_bound(4.0, 8, bound="theorem") == pytest.approx(math.exp(-1))
    assert required_loops(4.0, 1e-6, bound="theorem") == math.ceil(8 * math.log(1e6))
    assert required_loops(1.0, 1e-6) == 1
    assert required_loops(4.0, 2.0, alpha=1.5) == 0
    several = error_bound(torch.tensor([1.0, 4.0]), 3)
    torch.testing.assert_close(several, torch.tensor([0.0, 0.75**3]))


def test_prompt_condition_of_a_known_spectrum():
    inputs = torch.linalg.qr(normal(9, 3)).Q * torch.tensor([1.0, 2.0, 5.0], dtype=torch.float64)
    found = prompt_condition(inputs)
    assert float(found.smallest) == pytest.approx(1)
    assert float(found.condition) == pytest.approx(25)
    assert prompt_condition(normal(2, 3, 9, 4)).condition.shape == (2, 3)


def test_refusals():
    inputs, targets, _ = problem(8, 3)
    with pytest.raises(ValueError, match="α = 0"):
        make_prompt(inputs, targets, 0.0)
    with pytest.raises(ValueError, match="α = 0"):
        estimates(normal(2, 4), 0.0)
    for rule in ("2/(L+mu)", "chebyshev"):
        with pytest.raises(ValueError, match="minimum-norm"):
            LoopedLinearTransformer(3, 2, rule).solve(inputs[:3], targets[:3])
    with pytest.raises(ValueError, match="linearly dependent"):
        prompt_condition(inputs[:, [0, 1, 1]])
    for steps in (0.0, -0.1, [0.1, 0.0], math.nan):
        with pytest.raises(ValueError, match="step sizes must be"):
            LoopedLinearTransformer(3, 2, steps)
    with pytest.raises(ValueError, match="one for each of 2 loops"):
        LoopedLinearTransformer(3, 2, [0.1, 0.1, 0.1])
    with pytest.raises(ValueError, match="the step rule must be one of"):
        LoopedLinearTransformer(3, 2, "1/mu")
    with pytest.raises(ValueError, match="mask must be one of"):
        LoopedLinearTransformer(3, 2, mask="none")
    with pytest.raises(ValueError, match="fast=False"):
        LoopedLinearTransformer(3, 2, mask="causal")
    with pytest.raises(ValueError, match="loops must be at least 0"):
        LoopedLinearTransformer(3, -1)
    with pytest.raises(ValueError, match="prompts must be finite"):
        LoopedLinearTransformer(3, 2).solve(inputs * math.inf, targets)
    with pytest.raises(ValueError, match="prompts must be"):
        LoopedLinearTransformer(4, 2)(make_prompt(inputs, targets))
    with pytest.raises(ValueError, match="all zero"):
        step_sizes("1/L", torch.zeros(4, 2), 3)
    for condition in (0.5, math.nan, math.inf):
        with pytest.raises(ValueError, match="condition number"):
            error_bound(condition, 3)
    with pytest.raises(ValueError, match="bound must be one of"):
        error_bound(2.0, 3, bound="loose")
    with pytest.raises(ValueError, match="positive"):
        required_loops(2.0, 0.0)


def test_a_step_of_two_over_the_largest_eigenvalue_warns():
    inputs, targets, _ = problem(8, 3)
    limit = 2 / float(prompt_condition(inputs).largest)
    with pytest.warns(UserWarning, match="diverges"):
        LoopedLinearTransformer(3, 4, limit * (1 + 1e-9)).solve(inputs, targets)
    LoopedLinearTransformer(3, 4, 0.99 * limit).solve(inputs, targets)  # warnings are errors here


def test_with_few_examples_descent_ends_at_the_minimum_norm_solution():
    inputs, targets, _ = problem(3, 6)
    theta = LoopedLinearTransformer(6, 3000).solve(inputs, targets)
    torch.testing.assert_close(theta, torch.linalg.pinv(inputs) @ targets, rtol=1e-8, atol=1e-8)
