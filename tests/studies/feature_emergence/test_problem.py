"""The samplers against their stated marginals and moments, within five standard errors."""

import math
import warnings

import pytest
import torch

from assay.studies.feature_emergence.problem import PatternProblem, label_counts, orthonormal, standardized
from assay.training.seeds import Seeds, stream

SEEDS = Seeds((0, 1), dtype=torch.float64)
N = 20_000


def parity(**changes):
    options = {"dim": 30, "patterns": 20, "relevant": 5, "positive": label_counts("parity", 5), **changes}
    return PatternProblem(**options)


def within(values, expected, deviation, n):
    """Whether sample means lie within five standard errors."""
    return bool(((values - expected).abs() <= 5 * deviation / math.sqrt(n)).all())


def test_defaults_have_the_stated_constants():
    problem = PatternProblem(500, 100, 5, label_counts("parity", 5))
    assert problem.correlation == pytest.approx(0.25)
    assert problem.scale == pytest.approx(5.0)
    assert problem.background_deviation == pytest.approx(0.1)
    interval = PatternProblem(500, 100, 30, label_counts("interval", 30, 20, 30), "independent")
    assert interval.positive_share == pytest.approx(0.5848, abs=1e-4)
    assert interval.correlation == pytest.approx(0.0680, abs=1e-4)
    assert interval.scale**2 == pytest.approx(24.167, abs=1e-3)
    unstructured = PatternProblem(500, 100, 30, label_counts("interval", 30, 20, 30), "uniform")
    assert unstructured.positive_share == pytest.approx(0.0494, abs=1e-4)


@pytest.mark.parametrize("inputs", ["mixture", "uniform", "independent"])
@pytest.mark.parametrize("share", [None, 0.8])
def test_sample_has_the_population_moments(inputs, share):
    problem = parity(inputs=inputs, negative_share=share)
    x, y = problem.sample(SEEDS, "train", N)
    hidden = problem.relevant_set(SEEDS)
    assert within(x.mean(1), 0.0, 0.5 / problem.scale, N)
    assert within(x.square().sum(-1).mean(1), 1.0, 1.0, N)
    assert within((y > 0).double().mean(1), problem.positive_share, 0.5, N)
    signal = (x * y.unsqueeze(-1)).mean(1)
    on = signal.gather(1, hidden)
    off = signal.scatter(1, hidden, 0.0)
    # E[yx] = Cov(y, φ̃)/σ̃ on A (x is centred), 0 elsewhere.
    assert within(on, problem.correlation / problem.scale, 0.5 / problem.scale, N)
    assert within(off, 0.0, 0.5 / problem.scale, N)


@pytest.mark.parametrize("background", [0.2, 0.5, 0.66])
def test_mixture_background_marginal_and_gamma(background):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem = parity(background=background)
    drawn = problem.patterns_of(stream(0, "draw"), 50_000)
    assert within(drawn[:, 5:].double().mean(0), background, 0.5, 50_000)
    assert within(drawn[:, :5].double().mean(0), 0.5, 0.5, 50_000)
    assert problem.correlation == pytest.approx((1 - background) / 2)
    labels = problem.labels_of(drawn[:, :5].sum(1)).double()
    assert within((labels.unsqueeze(1) * drawn[:, :5]).mean(0), problem.correlation, 0.7, 50_000)


def test_an_exact_share_of_negatives():
    x, y = parity(negative_share=0.9).sample(SEEDS, "train", 1000)
    assert (y < 0).sum(1).tolist() == [900, 900]
    assert x.shape == (2, 1000, 20)


def test_imbalance_keeps_the_class_gap():
    for share in (0.5, 0.8, 0.9):
        assert parity(negative_share=share).class_gap == pytest.approx(0.25)


def test_empirical_normalisation_centres_the_sample():
    x, _ = parity(normalisation="empirical").sample(SEEDS, "train", 500)
    assert x.mean(1).abs().max() < 1e-12
    assert torch.allclose(x.square().sum(-1).mean(1), torch.ones(2, dtype=torch.float64))


def test_ambient_inputs_are_the_dictionary_times_the_patterns():
    flat, ambient = parity(), parity(basis="ambient")
    x, y = flat.sample(SEEDS, "train", 50)
    z, labels = ambient.sample(SEEDS, "train", 50)
    dictionary = ambient.dictionary(SEEDS)
    assert torch.allclose(z, x @ dictionary.mT)
    assert torch.equal(y, labels)
    truth = ambient.truth(SEEDS)[:, 0]
    columns = [dictionary[s][:, ambient.relevant_set(SEEDS)[s]].sum(1) for s in range(2)]
    assert torch.allclose(truth, torch.stack(columns))
    assert torch.allclose(truth.norm(dim=1), torch.full((2,), math.sqrt(5), dtype=torch.float64))


def test_orthonormal_columns():
    basis = orthonormal(12, 7, generator=stream(0, "basis"))
    assert torch.allclose(basis.mT @ basis, torch.eye(7, dtype=torch.float64), atol=1e-10)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"relevant": 20}, "1 ≤ k < D"),
        ({"relevant": 25, "positive": ()}, "1 ≤ k < D"),
        ({"dim": 10}, "do not fit"),
        ({"positive": (1, 9)}, "not within"),
        ({"background": 0.7}, r"\(0, 2/3\]"),
        ({"background": 0.0}, r"\(0, 2/3\]"),
        ({"negative_share": 1.0}, "one class empty"),
        ({"negative_share": 0.0}, "one class empty"),
        ({"inputs": "other"}, "unknown inputs"),
        ({"basis": "other"}, "unknown basis"),
    ],
)
def test_refusals(changes, words):
    with pytest.raises(ValueError, match=words):
        parity(**changes)


def test_a_dependent_mixture_warns():
    with pytest.warns(UserWarning, match="independence"):
        parity(background=0.3)


def test_label_rules():
    assert label_counts("parity", 5) == (1, 3, 5)
    assert label_counts("threshold", 5) == (3, 4, 5)
    assert label_counts("interval", 5, 2, 3) == (2, 3)
    with pytest.raises(ValueError, match="does not lie"):
        label_counts("interval", 5, 2, 9)
    with pytest.raises(ValueError, match="unknown labelling"):
        label_counts("prime", 5)


def test_a_share_that_no_rejection_can_give_is_refused():
    with pytest.raises(ValueError, match="same label"):
        parity(positive=(0, 1, 2, 3, 4, 5), negative_share=0.5)


def test_standardized_inputs_are_centred_with_unit_mean_variance(digits):
    train, test = standardized(*digits)
    assert train.mean(dim=0).abs().max() < 1e-5
    assert train.var(dim=0, correction=0).mean().item() == pytest.approx(1, abs=1e-5)
    assert test.shape == (200, 64)
