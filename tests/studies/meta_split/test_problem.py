"""The data: exact orthogonality, exact realisability and both labels in both halves."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.meta_split import theory
from assay.studies.meta_split.problem import SharedFeature
from assay.training import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
SMALL = SharedFeature(60, 12, 5, 6, 3)


@pytest.mark.parametrize("basis", ["gaussian", "orthogonal"])
@pytest.mark.parametrize("labels", ["balanced", "iid"])
def test_samples_have_the_stated_structure(basis, labels):
    problem = replace(SMALL, basis=basis, labels=labels)
    tasks = problem.sample(SEEDS)
    own = problem.own_features(SEEDS)
    assert float((own @ tasks.shared.unsqueeze(-1)).abs().amax()) == 0
    assert float((tasks.noise @ own.mT.unsqueeze(1)).abs().amax()) == 0
    assert float((tasks.noise @ tasks.shared.reshape(3, 1, -1, 1)).abs().amax()) == 0
    for half in (tasks.labels[..., :3], tasks.labels[..., 3:]):
        assert float(half.sum(-1).abs().amax()) < 3
    signal = tasks.labels.unsqueeze(-1) * tasks.features.unsqueeze(2)
    is_signal = (tasks.inputs == signal.unsqueeze(-2)).all(-1)
    assert torch.equal(is_signal.sum(-1), torch.ones_like(is_signal.sum(-1)))
    assert torch.equal(is_signal.int().argmax(-1), tasks.signal_patch)


def test_the_linear_solution_labels_every_sample():
    tasks = SMALL.sample(SEEDS)
    answers = (tasks.inputs * tasks.linear_solution.reshape(3, 1, 1, 2, -1)).sum((-1, -2))
    torch.testing.assert_close(answers, tasks.labels, rtol=0, atol=1e-12)


def test_swapping_patches_changes_nothing():
    tasks = SMALL.sample(SEEDS)
    weights = SEEDS.normal("filters", 8, 60).unsqueeze(1)
    a = theory.outputs(weights, tasks.inputs, 0.5)
    b = theory.outputs(weights, tasks.inputs.flip(-2), 0.5)
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_the_turned_dictionary_keeps_the_products_of_the_drawn_one():
    drawn = SEEDS.normal("dictionary", 12, 59)
    own = SMALL.own_features(SEEDS)
    torch.testing.assert_close(own @ own.mT, 0.09 / 60 * drawn @ drawn.mT)


def test_unseen_tasks_use_features_that_no_observed_task_has():
    observed, unseen = SMALL.sample(SEEDS), SMALL.sample_unseen(SEEDS, 20, 5)
    same = (observed.own.unsqueeze(2) == unseen.own.unsqueeze(1)).all(-1)
    assert not bool(same.any())
    other = (observed.own.unsqueeze(2) == observed.own.unsqueeze(1)).all(-1)
    assert torch.equal(other.sum((1, 2)), torch.full((3,), 5))


@settings(max_examples=20, deadline=None)
@given(
    tasks=st.integers(1, 12), support=st.sampled_from([2, 4]), query=st.sampled_from([2, 4]), seed=st.integers(0, 50)
)
def test_shuffled_labels_have_no_correlation_with_the_signal(tasks, support, query, seed):
    problem, seeds = (
        SharedFeature(60, 12, tasks, support + query, support),
        Seeds((seed, seed + 1), dtype=torch.float64),
    )
    true = problem.sample(seeds)
    shuffled = problem.shuffled(true, seeds)
    assert torch.equal(shuffled.inputs, true.inputs)
    assert torch.equal(shuffled.signs, true.labels)
    odd = tasks % 2
    for half, count in ((slice(0, support), support), (slice(support, None), query)):
        labels, signs = shuffled.labels[..., half], true.labels[..., half]
        assert float(labels.sum(-1).abs().amax()) == 0  # both classes in every half, as often as before
        for sign in (1, -1):  # within either sign of the signal, both labels are equally frequent
            told = torch.where(signs == sign, labels, 0).sum((1, 2)).abs()
            assert told.tolist() == [odd * count / 2] * 2
    # What adaptation to the first half tells about the second: none, or that of two tasks where four do not divide all.
    agreement = (shuffled.labels * true.labels)[..., [0, -1]].prod(-1).sum(1).abs()
    assert float(agreement.amax()) <= (0, 1, 2, 1)[tasks % 4]


def test_labels_drawn_freely_correlate_with_the_signal():
    """Why they are balanced: among ten tasks free draws leave a correlation that can be learned."""
    problem = SharedFeature(60, 12, 10, 4, 2)
    true = problem.sample(SEEDS).labels
    free = SEEDS.draw("free", lambda g: problem._draw_labels(g, 10, 4)).to(true)
    assert float((free * true).sum((1, 2)).abs().amax()) > 0


def test_a_seeds_draws_do_not_depend_on_its_company():
    alone, together = SMALL.sample(Seeds((1,), dtype=torch.float64)), SMALL.sample(SEEDS)
    assert torch.equal(alone.inputs[0], together.inputs[1])


@settings(max_examples=20, deadline=None)
@given(half=st.integers(2, 6), other=st.integers(2, 6), tasks=st.integers(1, 6))
def test_balanced_halves_are_balanced(half, other, tasks):
    problem = SharedFeature(40, 10, tasks, half + other, half)
    labels = problem.sample(Seeds((3,), dtype=torch.float64)).labels
    assert float(labels[..., :half].sum(-1).abs().amax()) == half % 2
    assert float(labels[..., half:].sum(-1).abs().amax()) == other % 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(support=6), "support"),
        (dict(support=0), "support"),
        (dict(support=5), "both halves"),
        (dict(dictionary=59), "no room for noise"),
        (dict(tasks=13), "without replacement"),
        (dict(noise_energy=0.0), "positive"),
    ],
)
def test_impossible_problems_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        replace(SMALL, **change)


def test_impossible_samples_are_refused():
    tasks = SMALL.sample(SEEDS)
    with pytest.raises(ValueError, match=r"\+1 or"):
        replace(tasks, labels=tasks.labels * 2)
    with pytest.raises(ValueError, match="orthogonal"):
        replace(tasks, own=tasks.own + 0.1 * tasks.shared.unsqueeze(1))
    one = torch.ones_like(tasks.labels)
    with pytest.raises(ValueError, match="one class only"):
        replace(tasks, labels=one)
    assert replace(tasks, labels=one, allow_degenerate=True).labels is one
    with pytest.raises(ValueError, match="split off"):
        replace(tasks, support=6)


def test_repeated_tasks_are_allowed_when_asked_for():
    tasks = replace(SMALL, tasks=40, distinct=False).sample(SEEDS)
    assert tasks.own.shape == (3, 40, 60)
