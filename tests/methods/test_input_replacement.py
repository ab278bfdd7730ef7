import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from assay.methods.input_replacement import (
    InputReplacement,
    ReplacementData,
    agreement,
    balance_regularizer,
    confidence_regularizer,
    labels_of,
)
from assay.methods.replacement_report import area_under_curve
from assay.methods.size_curve import first_local_minimum
from assay.networks.quadratic import Quadratic
from assay.networks.resnet import ResNet


@settings(deadline=None)
@given(st.integers(2, 8), st.integers(1, 30), st.integers(0, 2**31), st.floats(0.1, 50))
def test_regularizers_stay_within_their_bounds(classes, batch, seed, sharpness):
    draw = torch.randn(3, batch, classes, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    chances = (sharpness * draw).softmax(dim=-1)
    balance, confidence = balance_regularizer(chances), confidence_regularizer(chances)
    assert balance.shape == confidence.shape == (3,)
    assert (balance >= -math.log(classes) - 1e-12).all()
    assert (balance <= 1e-12).all()
    assert (confidence >= 0).all()
    assert (confidence <= math.log(classes) + 1e-12).all()


def test_regularizers_equal_the_slow_sums():
    chances = torch.randn(7, 4, dtype=torch.float64).softmax(dim=-1)
    means = [sum(row[j].item() for row in chances) / 7 for j in range(4)]
    entropy = -sum(p.item() * math.log(p.item()) for row in chances for p in row) / 7
    assert balance_regularizer(chances).item() == pytest.approx(sum(p * math.log(p) for p in means))
    assert confidence_regularizer(chances).item() == pytest.approx(entropy)


def test_balance_is_lowest_only_when_classes_are_balanced():
    balanced = torch.eye(4, dtype=torch.float64).repeat(3, 1)  # certain, and every class equally often
    assert balance_regularizer(balanced).item() == pytest.approx(-math.log(4))
    assert confidence_regularizer(balanced).item() == 0
    tilted = torch.cat([balanced, balanced[:1]])
    assert balance_regularizer(tilted).item() > -math.log(4) + 1e-4
    assert confidence_regularizer(torch.full((5, 4), 0.25)).item() == pytest.approx(math.log(4))


def test_zero_probabilities_have_finite_values_and_gradients():
    chances = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], requires_grad=True)
    total = balance_regularizer(chances) + confidence_regularizer(chances)
    total.backward()
    assert total.item() == 0
    assert chances.grad.isfinite().all()


def test_the_first_minimum_of_a_double_descent_is_found():
    found = first_local_minimum([1, 3, 9, 30, 100, 300], [2.0, 1.0, 0.5, 3.0, 0.4, 0.1])
    assert found.size == 9
    seeds = torch.tensor([[2.0, 2.0], [0.9, 1.0], [1.3, 0.5], [3.0, 3.0]])  # the mean decides, not a single seed
    assert first_local_minimum([1, 2, 3, 4], seeds).size == 3


def test_a_small_rise_within_the_tolerance_does_not_end_the_descent():
    losses = [2.0, 1.0, 1.02, 0.5, 0.9]
    assert first_local_minimum([1, 2, 3, 4, 5], losses).size == 2
    assert first_local_minimum([1, 2, 3, 4, 5], losses, tolerance=0.1).size == 4


@pytest.mark.parametrize(
    ("losses", "reason"),
    [([3, 2, 1], "largest size, 4"), ([1, 2, 3], "smallest size, 1"), ([1, 1, 1], "largest size, 4"), ([2, 1, 1], "4")],
)
def test_without_an_interior_minimum_none_is_reported(losses, reason):
    found = first_local_minimum([1, 2, 4], losses)
    assert found.size is None
    assert "no interior minimum" in found.reason
    assert reason in found.reason


@pytest.mark.parametrize(
    ("sizes", "losses", "message"),
    [
        ([1, 2], [1, 2], "at least 3 sizes"),
        ([1, 3, 2], [3, 1, 2], "grow"),
        ([1, 2, 3], [3, 1], "one loss"),
        ([1, 2, 3], [3, math.nan, 2], "finite"),
    ],
)
def test_u_curves_that_cannot_be_read_are_refused(sizes, losses, message):
    with pytest.raises(ValueError, match=message):
        first_local_minimum(sizes, losses)


def test_area_is_the_mean_height():
    steps, accuracy = torch.tensor([0, 10, 40]), torch.tensor([[0.0, 0.5], [1.0, 0.5], [1.0, 0.5]])
    torch.testing.assert_close(area_under_curve(steps, accuracy), torch.tensor([0.875, 0.5]))


def clouds(n=300, dim=20, classes=3):
    """Well separated clouds, and noise to inject."""
    generator = torch.Generator().manual_seed(0)
    centres = 3 * torch.randn(classes, dim, generator=generator)
    labels = torch.randint(classes, (n,), generator=generator)
    inputs = (centres[labels] + torch.randn(n, dim, generator=generator)) / 3
    noise = torch.randn(n, dim, generator=generator)
    half = n // 2
    return ReplacementData(inputs[:half], labels[:half], inputs[half:], labels[half:], noise[:half], noise[half:])


def make(size):
    return Quadratic(size, inputs=20, classes=3)


QUICK = InputReplacement(teacher_steps=100, student_steps=60, batch=60, learning_rate=1e-2, evaluate_every=25)


def test_structured_inputs_are_learned_better_than_injected_noise():
    report = QUICK.run(make, clouds(), teacher_size=6, student_size=20, seeds=[0, 1])
    alone, mixed = report.curves
    assert (alone.fraction, mixed.fraction) == (0.0, 0.5)
    assert mixed.steps.tolist() == [0, 25, 50, 60]
    assert mixed.original.shape == mixed.injected.shape == (4, 2)
    assert (report.teacher_accuracy > 0.9).all()
    assert (mixed.original[-1] > mixed.injected[-1] + 0.05).all()
    torch.testing.assert_close(mixed.mixture, (mixed.original + mixed.injected) / 2)
    assert torch.equal(alone.original[0], mixed.original[0])  # the same start, hence a paired comparison
    torch.testing.assert_close(report.label_shares.sum(dim=1), torch.ones(2))


def test_the_regularizer_balances_what_the_teacher_says_about_injected_inputs():
    data = clouds()
    data = replace(data, injected=data.injected + 2, injected_test=data.injected_test + 2)

    def largest_share(method):
        labels = labels_of(method.teacher(make, 6, data, seed=0), data.injected_test)
        return torch.bincount(labels, minlength=3).max().item() / len(labels)

    assert largest_share(QUICK) < largest_share(replace(QUICK, regularizer_weight=0.0)) - 0.05


def test_a_seed_is_the_same_alone_and_in_company_and_torch_is_left_alone():
    before = torch.random.get_rng_state()
    both = QUICK.run(make, clouds(), teacher_size=3, student_size=3, seeds=[4, 5])
    alone = QUICK.run(make, clouds(), teacher_size=3, student_size=3, seeds=[5])
    assert torch.equal(both.curves[1].injected[:, 1], alone.curves[1].injected[:, 0])
    assert torch.equal(before, torch.random.get_rng_state())


def test_size_curve_reports_every_seed():
    curve = replace(QUICK, teacher_steps=10).size_curve(make, [1, 2, 4], clouds(), seeds=[0, 1, 2])
    assert curve.losses.shape == (3, 3)
    assert curve.minimum == first_local_minimum([1, 2, 4], curve.losses)


def test_networks_with_batch_normalisation_are_welcome():
    data = clouds(n=240, dim=64)
    shaped = {
        name: getattr(data, name).unflatten(1, (1, 8, 8))
        for name in ("inputs", "test_inputs", "injected", "injected_test")
    }
    quick = replace(QUICK, teacher_steps=2, student_steps=2)
    report = quick.run(
        lambda m: ResNet(m, classes=3, channels=1), replace(data, **shaped), teacher_size=1, student_size=2, seeds=[0]
    )
    assert report.curves[1].original.isfinite().all()


def test_looking_at_a_model_leaves_the_mode_of_every_module():
    model = nn.Sequential(nn.Linear(20, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 3)).train()
    model[1].eval()  # frozen on purpose
    before, data = [module.training for module in model.modules()], clouds()
    labels = labels_of(model, data.inputs)
    assert agreement(model, data.inputs, labels) == 1.0, "in evaluation mode, without dropout"
    assert [module.training for module in model.modules()] == before
    with pytest.raises(RuntimeError):
        labels_of(model, data.inputs[:, :3])
    assert [module.training for module in model.modules()] == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fractions", (0.0,)),
        ("fractions", (0.5, 1.0)),
        ("fractions", ()),
        ("confidence_weight", -1.0),
        ("batch", 0),
        ("regularizer_weight", -0.1),
        ("learning_rate", 0.0),
        ("student_steps", 0),
    ],
)
def test_bad_hyper_parameters_are_refused(field, value):
    with pytest.raises(ValueError, match=rf"{field}.* (lie|be positive|be at least)"):
        InputReplacement(**{field: value})


def test_bad_data_is_refused():
    with pytest.raises(ValueError, match="one shape"):
        replace(clouds(), injected=torch.randn(10, 19))
    with pytest.raises(ValueError, match="one for each sample"):
        replace(clouds(), labels=torch.zeros(3, dtype=torch.long))


def test_too_small_batches_and_an_unknown_teacher_size_are_refused():
    with pytest.raises(ValueError, match="batch of 60 or more"):
        replace(QUICK, batch=59).teacher(make, 3, clouds(), seed=0)
    with pytest.raises(ValueError, match="cannot hold a fraction"):
        replace(QUICK, fractions=(0.001,)).run(make, clouds(), teacher_size=2, student_size=2, seeds=[0])
    with pytest.raises(ValueError, match="no interior minimum"):
        QUICK.run(make, clouds(), teacher_size=None, student_size=2, seeds=[0])


def test_a_linear_model_is_as_good_as_any():
    report = QUICK.run(lambda size: nn.Linear(20, 3), clouds(), teacher_size=1, student_size=1, seeds=[0])
    assert report.curves[0].original[-1].item() > 0.9


def test_the_seed_covers_dropout_and_torchs_generator_is_left_alone():
    inputs = torch.randn(80, 4, generator=torch.Generator().manual_seed(0))
    labels = (inputs[:, 0] > 0).to(torch.int32).numpy()
    data = ReplacementData(inputs.numpy(), labels, inputs, labels, inputs.flip(0), inputs)
    method = InputReplacement(teacher_steps=5, student_steps=5, batch=40, evaluate_every=1, learning_rate=0.1)

    def make(size):
        return nn.Sequential(nn.Linear(4, size), nn.Dropout(0.5), nn.ReLU(), nn.Linear(size, 2))

    found = []
    for start in (1, 2):
        torch.manual_seed(start)
        before = torch.get_rng_state()
        found.append(method.run(make, data, teacher_size=8, student_size=8, seeds=[3]))
        assert torch.equal(torch.get_rng_state(), before)
    for one, other in zip(found[0].curves, found[1].curves, strict=True):
        assert torch.equal(one.original, other.original)
        assert torch.equal(one.injected, other.injected)
