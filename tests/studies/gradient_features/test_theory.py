from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.gradient_features.learners import RELU, symmetric_start
from assay.studies.gradient_features.problem import GaussianMixture, LinearData
from assay.studies.gradient_features.theory import (
    cosines,
    escaped,
    in_cone,
    in_flat_cone,
    linear_oracle,
    log_log_slope,
    loss_slope,
    mixture_gradient,
    mixture_oracle,
    safe_oracle_loss,
    simplified_gradient,
    unit_vectors,
)
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
LOSSES = {
    "hinge": lambda outputs, y: (1 - y * outputs).clamp(min=0),
    "logistic": lambda outputs, y: torch.nn.functional.softplus(-y * outputs),
    "squared": lambda outputs, y: (outputs - y).square(),
}


def data(n: int = 60, dim: int = 7):
    inputs = SEEDS.normal("inputs", n, dim)
    return inputs, torch.where(SEEDS.uniform("labels", n) < 0.5, -1.0, 1.0).double()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_gradient_at_a_symmetric_start_is_the_simplified_one(loss):
    """∇_{w_i} L = ℓ'(0)·a_i·G(w_i, b_i), against autograd."""
    inputs, labels = data()
    start = symmetric_start(SEEDS, 5, 7, 1.3)
    weights = start.weights.clone().requires_grad_(True)
    hidden = torch.relu(inputs @ weights.mT + start.biases.unsqueeze(1))
    outputs = (hidden @ start.output.unsqueeze(-1)).squeeze(-1)
    assert float(outputs.detach().abs().max()) < 1e-12
    LOSSES[loss](outputs, labels).mean(1).sum().backward()
    found = simplified_gradient(inputs, labels, start.weights, -start.biases)
    expected = loss_slope(loss) * start.output.unsqueeze(-1) * found
    assert torch.allclose(weights.grad, expected, atol=1e-12)


@given(scale=st.floats(0.01, 100), threshold=st.floats(-2, 2))
@settings(max_examples=25, deadline=None)
def test_identities_of_the_sampled_gradient(scale, threshold):
    inputs, labels = data()
    weights = SEEDS.normal("weights", 6, 7)
    levels = torch.full((2, 6), threshold, dtype=torch.float64)
    found = simplified_gradient(inputs, labels, weights, levels)
    mean = (labels.unsqueeze(-1) * inputs).mean(1, keepdim=True)
    mirrored = simplified_gradient(inputs, labels, -weights, -levels)
    assert torch.allclose(found + mirrored, mean.expand_as(found), atol=1e-12)
    assert torch.allclose(simplified_gradient(inputs, labels, scale * weights, scale * levels), found, atol=1e-12)
    assert torch.allclose(simplified_gradient(inputs, -labels, weights, levels), -found, atol=1e-12)
    turn = torch.linalg.qr(SEEDS.normal("rotation", 7, 7)).Q
    turned = simplified_gradient(inputs @ turn.mT, labels, weights @ turn.mT, levels)
    assert torch.allclose(turned, found @ turn.mT, atol=1e-10)


def test_the_sampled_gradient_is_the_same_in_pieces():
    inputs = SEEDS.normal("many", 9001, 3)
    labels = inputs[..., 0].sign()
    weights, levels = SEEDS.normal("weights", 4, 3), torch.zeros(2, 4).double()
    whole = torch.einsum("snm,sn,snd->smd", (inputs @ weights.mT > 0).double(), labels, inputs) / 9001
    assert torch.allclose(simplified_gradient(inputs, labels, weights, levels), whole, atol=1e-10)


def test_the_mixtures_closed_form_against_samples():
    """100,000 samples: every coordinate is within 5 standard errors, which are at most √E[x²]/√n."""
    problem = GaussianMixture.multi_xor(6, (0.3, 0.2, 0.5), (1.0, -1.0, -1.0), 3.0, 1.5, balanced=False)
    n = 100_000
    sample = problem.sample(SEEDS, "train", n)
    weights = SEEDS.normal("weights", 5, 6)
    for threshold in (-4.0, 0.0, 3.0):
        levels = torch.full((2, 5), threshold, dtype=torch.float64)
        exact = mixture_gradient(problem, weights, levels)
        sampled = simplified_gradient(sample.inputs, sample.labels, weights, levels)
        error = sample.inputs.square().mean((0, 1)).sqrt() / math.sqrt(n)
        assert bool(((sampled - exact).abs() < 5 * error).all())


def test_the_thresholds_sign_is_lost_where_the_label_mean_is_zero():
    weights = SEEDS.normal("weights", 64, 16)
    level = torch.full(weights.shape[:2], 3.0, dtype=torch.float64)
    apart = {}
    for name, mixture in {
        "even": GaussianMixture.multi_xor(16, (0.25,) * 4, (1.0, -1.0, 1.0, -1.0), 4.0),
        "tilted": GaussianMixture.orthogonal(16, 8, 4.0),
    }.items():
        one, other = (mixture_gradient(mixture, weights, sign * level) for sign in (1, -1))
        apart[name] = float((one - other).norm(dim=-1).max() / one.norm(dim=-1).max())
    assert apart["even"] < 1e-12
    assert apart["tilted"] > 0.1


def test_an_always_active_neuron_sees_all_of_a_single_component_and_a_silent_one_nothing():
    problem = GaussianMixture(
        torch.tensor([[3.0, 0.0, -4.0]]), torch.tensor([-1.0]), torch.ones(1), 1.5, balanced=False
    )
    weights = SEEDS.normal("weights", 4, 3)
    far = torch.full((2, 4), 1e6, dtype=torch.float64)
    assert torch.allclose(mixture_gradient(problem, weights, -far), -problem.means.double().expand(2, 4, 3))
    assert float(mixture_gradient(problem, weights, far).abs().max()) == 0


def test_an_always_active_neuron_sees_the_label_mean():
    problem = GaussianMixture.orthogonal(5, 2, 4.0)
    weights = SEEDS.normal("weights", 3, 5)
    far = torch.full((2, 3), -1e6, dtype=torch.float64)
    assert torch.allclose(mixture_gradient(problem, weights, far), problem.label_mean.double().expand(2, 3, 5))


def test_cones_have_two_sides_grow_with_their_width_and_exclude_zero():
    vectors = torch.tensor([[1.0, 0.1], [-2.0, 0.2], [0.0, 0.0], [0.5, 0.5]])
    axis = torch.tensor([[1.0, 0.0]])
    assert in_cone(vectors, axis, 0.05)[:, 0].tolist() == [True, True, False, False]
    assert in_cone(vectors, -axis, 0.05)[:, 0].tolist() == [True, True, False, False]
    assert in_cone(vectors, axis, 0.5)[:, 0].tolist() == [True, True, False, True]
    assert in_cone(vectors, axis, 0.05, floor=1.5)[:, 0].tolist() == [False, True, False, False]
    assert torch.allclose(cosines(7 * vectors[:1], axis), cosines(vectors[:1], axis))
    for width in (0.0, 1.0, -0.1):
        with pytest.raises(ValueError, match="between 0 and 1"):
            in_cone(vectors, axis, width)


@given(width=st.floats(0.01, 0.99), seed=st.integers(0, 50))
@settings(max_examples=25, deadline=None)
def test_a_cone_holds_the_unit_vectors_within_the_root_of_twice_its_width(width, seed):
    """⟨u, v⟩ ≥ 1 − γ exactly where ‖u − v‖ ≤ √(2γ), so that the bound cannot be improved."""
    generator = torch.Generator().manual_seed(seed)
    axis = torch.eye(1, 3, dtype=torch.float64)
    vectors = 5 * torch.randn(500, 3, generator=generator, dtype=torch.float64)
    signed = unit_vectors(vectors) * vectors[:, :1].sign()
    near = (signed - axis).norm(dim=-1) < math.sqrt(2 * width)
    assert torch.equal(in_cone(vectors, axis, width)[:, 0], near)
    edge = torch.tensor([1 - width, math.sqrt(1 - (1 - width) ** 2), 0.0], dtype=torch.float64)
    assert float((edge - axis[0]).norm()) == pytest.approx(math.sqrt(2 * width))


def test_flat_cones_have_one_side_two_norms_and_the_largest_coordinate():
    axis = torch.tensor([[1.0, 0.0, 0.0]])
    # Off the axis by 0.28 in one coordinate, and by 0.2 in each of two.
    vectors = torch.tensor([[0.96, 0.28, 0.0], [math.sqrt(0.92), 0.2, 0.2], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert in_flat_cone(2 * vectors, axis, 0.25, floor=1.0)[:, 0].tolist() == [False, True, False, False]
    assert in_flat_cone(2 * vectors, axis, 0.3, floor=1.0)[:, 0].tolist() == [True, True, False, False]
    assert in_flat_cone(2 * vectors, -axis, 0.3, floor=1.0)[:, 0].tolist() == [False, False, True, False]
    assert not in_flat_cone(2 * vectors, axis, 0.3, floor=2.5).any()
    assert not in_flat_cone(2 * vectors, axis, 0.3, floor=1.0, ceiling=1.5).any()
    assert torch.equal(
        in_flat_cone(2 * vectors, 7 * axis, 0.3, floor=1.0), in_flat_cone(2 * vectors, axis, 0.3, floor=1.0)
    )
    for width in (0.0, 1.0):
        with pytest.raises(ValueError, match="between 0 and 1"):
            in_flat_cone(vectors, axis, width, floor=1.0)
    for floor, ceiling in ((0.0, 1.0), (2.0, 1.0)):
        with pytest.raises(ValueError, match="above 0 and up to a ceiling"):
            in_flat_cone(vectors, axis, 0.3, floor, ceiling)


def test_gradients_of_norm_zero_have_no_direction():
    gradients = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, -2.0]])
    with pytest.raises(ValueError, match="norm 0 has no direction, and 1 of 3 have norm 0") as refusal:
        unit_vectors(gradients)
    assert "\n" not in str(refusal.value)
    with pytest.raises(ValueError, match="no direction"):
        in_flat_cone(gradients, torch.zeros(1, 2), 0.1, floor=1.0)
    assert torch.allclose(unit_vectors(gradients[::2]), torch.tensor([[0.6, 0.8], [0.0, -1.0]]))


@pytest.mark.parametrize("margin", [0.1, 0.5, 3.0])
def test_the_linear_oracle_has_no_loss_and_a_smaller_one_has(margin):
    """OPT = 0 of the linear case: y·g* ≥ 1 on every input, with the outputs ±1/β and no less."""
    problem = LinearData(9, margin)
    sample = problem.sample(SEEDS, "train", 5000)
    margins = sample.labels * linear_oracle(problem, sample.inputs)
    assert float((1 - margins).clamp(min=0).max()) < 1e-12
    assert float((1 - 0.9 * margins).clamp(min=0).mean()) > 1e-4
    along = sample.inputs @ problem.features[0].double()
    assert torch.allclose(linear_oracle(problem, sample.inputs), along / margin)


@pytest.mark.parametrize("tails", [1.0, 1.5, 2.0])
def test_the_safe_bound_covers_the_oracles_loss(tails):
    """With means of norm 4t the hinge loss of the oracle lies below the bound, up to four standard errors."""
    problem = GaussianMixture.multi_xor(6, (0.5, 0.5), (1.0, -1.0), norm=4 * tails)
    sample = problem.sample(SEEDS, "train", 40_000)
    losses = (1 - sample.labels * mixture_oracle(problem, sample.inputs, tails)).clamp(min=0)
    spread = float(losses.std()) / math.sqrt(80_000)
    assert float(losses.mean()) <= safe_oracle_loss(4, tails) + 4 * spread


def test_gaussian_tails_lie_between_their_bounds():
    z = torch.linspace(0.1, 6, 60, dtype=torch.float64)
    tail = torch.special.ndtr(-z)
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    assert bool((density * z / (z.square() + 1) < tail).all())
    assert bool((tail < density / z).all())
    assert bool((density < 2 * tail**0.9).all())


@pytest.mark.parametrize("freedom", [1, 2, 5, 30, 400])
def test_a_sum_of_squares_rarely_exceeds_its_bound(freedom):
    """P[χ²_k ≥ k + 2√(kz) + 2z] ≤ e^(−z), by the incomplete Γ function; without the last term it is exceeded."""
    z = torch.linspace(0.05, 20, 100, dtype=torch.float64)
    k = torch.tensor(float(freedom), dtype=torch.float64)

    def beyond(level: torch.Tensor) -> torch.Tensor:
        return torch.special.gammaincc(k / 2, level / 2)

    bound = torch.exp(-z)
    assert bool((beyond(k + 2 * (k * z).sqrt() + 2 * z) <= bound).all())
    assert bool((beyond(k + 2 * (k * z).sqrt()) > bound).any())


def test_losses_have_their_slope_at_zero():
    for name, loss in LOSSES.items():
        output = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        loss(output, torch.ones(1).double()).sum().backward()
        assert float(output.grad) == loss_slope(name)


def test_an_unknown_loss_is_refused():
    with pytest.raises(ValueError, match="losses are hinge"):
        loss_slope("absolute")


def test_relu_has_slope_zero_at_zero():
    assert RELU.slope(torch.tensor([0.0, -1.0, 2.0])).tolist() == [0.0, 0.0, 1.0]


def test_a_power_law_has_its_exponent_as_slope():
    x = torch.tensor([1.0, 2.0, 5.0, 9.0], dtype=torch.float64)
    assert math.isclose(log_log_slope(x, 3 * x**-0.5), -0.5, rel_tol=1e-9)


def test_what_has_no_logarithm_has_no_slope():
    x = torch.tensor([1.0, 2.0, 4.0])
    for y in ([1.0, math.nan, 2.0], [1.0, 0.0, 2.0], [1.0, -1.0, 2.0], [1.0, math.inf, 2.0]):
        assert math.isnan(log_log_slope(x, torch.tensor(y)))


def test_gradients_that_leave_the_wider_cone_are_counted():
    axis = torch.eye(1, 3)
    exact = torch.tensor([[[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]])
    assert escaped(exact, exact, axis, 0.1, 1.0).tolist() == [0]
    near = exact + torch.tensor([0.0, 0.3, 0.0])
    assert escaped(exact, near, axis, 0.1, 1.0).tolist() == [0]
    # A gradient of half the deviation that is allowed stays inside, whatever its direction.
    turned = exact + 0.5 * torch.nn.functional.normalize(torch.tensor([-1.0, 1.0, 1.0]), dim=0)
    assert escaped(exact, turned, axis, 0.1, 1.0).tolist() == [0]
    assert in_cone(turned[0], axis, 0.01)[0].item() is False
    # Gradients that vanish or turn by a right angle have left; one that was in no cone before cannot leave.
    gone = torch.tensor([[[0.0, 0.0, 0.0], [0.0, 2.0, 0.0]], [[0.0, 0.0, 2.0], [0.0, 2.0, 0.0]]])
    assert escaped(exact.expand(2, -1, -1), gone, axis, 0.1, 1.0).tolist() == [1, 1]
    both = torch.eye(2, 3)
    assert escaped(exact, torch.zeros_like(exact), both, 0.1, 1.0).tolist() == [2]
