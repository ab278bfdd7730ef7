from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.gradient_features.problem import GaussianMixture, LinearData, xor_bayes_accuracy
from assay.training import Seeds

SEEDS = Seeds((0, 1))


def test_linear_data_keep_their_margin_and_correlate_with_one_direction_alone():
    problem = LinearData(12, margin=0.5)
    sample = problem.sample(SEEDS, "train", 20_000)
    along = sample.labels * sample.inputs[..., 0]
    assert float(along.min()) >= 0.5
    mean = (sample.labels.unsqueeze(-1) * sample.inputs).mean(1)
    assert float((mean[:, 0] - problem.signal).abs().max()) < 4 * 0.5 / math.sqrt(20_000)
    assert float(mean[:, 1:].abs().max()) < 5 / math.sqrt(20_000)
    norms = sample.inputs.square().sum(-1).mean().sqrt()
    assert float(norms) == pytest.approx(problem.typical_norm(), rel=0.02)


def test_mixture_components_have_their_weights_means_and_labels():
    problem = GaussianMixture.multi_xor(10, (0.4, 0.4, 0.1, 0.1), (1.0, -1.0, 1.0, -1.0), norm=6.0, deviation=0.5)
    sample = problem.sample(SEEDS, "train", 20_000)
    shares = torch.stack([(sample.components == j).float().mean() for j in range(8)])
    assert torch.allclose(shares, problem.weights, atol=4 * math.sqrt(0.25 / 40_000))
    for j in range(8):
        chosen = sample.inputs[0][sample.components[0] == j]
        assert float((chosen.mean(0) - problem.means[j]).abs().max()) < 5 * 0.5 / math.sqrt(len(chosen))
        assert set(sample.labels[0][sample.components[0] == j].tolist()) == {float(problem.component_labels[j])}
    assert float(problem.label_mean.abs().max()) < 1e-6


def test_antipodal_means_are_one_feature():
    assert GaussianMixture.xor(20, 1.0).features.shape == (2, 20)
    assert GaussianMixture.orthogonal(20, 8, 3.0).features.shape == (8, 20)


def test_bayes_accuracy_of_the_xor_mixture_is_reached_by_the_larger_axis():
    problem = GaussianMixture.xor(25, 2.0)
    sample = problem.sample(SEEDS, "test", 40_000)
    larger = sample.inputs[..., 0].abs() > sample.inputs[..., 1].abs()
    right = (larger == (sample.labels > 0)).double().mean()
    assert float(right) == pytest.approx(xor_bayes_accuracy(25, 2.0), abs=4 * 0.5 / math.sqrt(80_000))


@given(count=st.integers(2, 8), weight=st.floats(0.05, 0.95))
@settings(max_examples=20, deadline=None)
def test_classes_of_unequal_weight_are_refused_unless_asked_for(count, weight):
    weights = torch.full((count,), (1 - weight) / (count - 1))
    weights[0] = weight
    labels = torch.full((count,), -1.0)
    labels[0] = 1.0
    means = torch.eye(count, 10)
    if abs(weight - 0.5) > 1e-5:
        with pytest.raises(ValueError, match="each needs a half"):
            GaussianMixture(means, labels, weights, 1.0)
    GaussianMixture(means, labels, weights, 1.0, balanced=False)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LinearData(10, margin=0.0), "margin above 0"),
        (lambda: GaussianMixture.xor(10, 0.0), "deviation above 0"),
        (lambda: GaussianMixture(torch.eye(2), torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.5]), 1.0), "labels of"),
        (lambda: GaussianMixture(torch.eye(2), torch.tensor([1.0, -1.0]), torch.tensor([0.5, 0.6]), 1.0), "sum to 1"),
        (lambda: GaussianMixture.multi_xor(3, (0.5, 0.5), (1.0,), 1.0), "2 axis weights for 1 labels"),
    ],
)
def test_impossible_problems_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_reports_tell_what_the_theory_would_want():
    report = {line.name: line for line in GaussianMixture.xor(100, 1.0).assumptions()}
    assert report["components r"].met
    assert not report["least scaled mean B_μ1"].met  # no run at these sizes meets the proof's constants
    assert all(line.met for line in LinearData(10, margin=0.5).assumptions())


def test_a_seeds_draws_do_not_depend_on_its_company():
    alone = GaussianMixture.xor(6, 1.0).sample(Seeds((1,)), "train", 5)
    together = GaussianMixture.xor(6, 1.0).sample(SEEDS, "train", 5)
    assert torch.equal(alone.inputs[0], together.inputs[1])
    assert together.part(1, 3).labels.shape == (2, 2)


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "low rank"])
def test_the_noise_of_linear_data_has_its_mean_square_in_every_kind(kind):
    problem = LinearData(21, margin=0.5, noise=2.0, kind=kind)
    sample = problem.sample(Seeds((0,)), "train", 100_000)
    noise = sample.inputs[0, :, 1:]
    assert float(noise.square().sum(-1).mean()) == pytest.approx(4 * 20, rel=0.02)
    assert float((sample.labels[0].unsqueeze(-1) * noise).mean(0).abs().max()) < 0.05
    assert int((noise.abs().amax(0) > 0).sum()) == (10 if kind == "low rank" else 20)
    normal = float(noise[:, 0].pow(4).mean() / noise[:, 0].square().mean().square())
    assert normal > 5 if kind == "heavy tails" else normal == pytest.approx(3, abs=0.2)


def test_noise_of_ten_directions_wants_as_many():
    with pytest.raises(ValueError, match="11 dimensions or more, not 10"):
        LinearData(10, margin=0.5, kind="low rank")
