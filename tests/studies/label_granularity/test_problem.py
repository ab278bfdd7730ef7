from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.label_granularity.learners import PatchNetwork
from assay.studies.label_granularity.problem import (
    COMMON,
    DISTRACTOR,
    NOISE,
    STRONG,
    SUBCLASS,
    HierarchicalPatches,
    orthonormal,
    rotations,
)
from assay.training import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
CLEAN = HierarchicalPatches(dim=24, subclasses=3, noise=0.0, strong_noise=0.0, jitter=0.1)


@settings(max_examples=25, deadline=None)
@given(
    k=st.integers(1, 6),
    s=st.integers(1, 5),
    far=st.integers(0, 4),
    per=st.integers(1, 4),
    counts=st.sampled_from(["exact", "bernoulli"]),
    hard=st.booleans(),
    compact=st.booleans(),
)
def test_every_patch_is_what_its_kind_says(k, s, far, per, counts, hard, compact):
    problem = HierarchicalPatches(20, 14, k, s, 0.2, 0.0, far, (0.3, 0.5), 0.0, counts)
    samples = problem.sample(SEEDS, "check", per, hard=hard, compact=compact and counts == "exact")
    assert len(samples) == 2 * k * per
    assert torch.equal(torch.bincount(samples.fine, minlength=2 * k), torch.full((2 * k,), per))
    y, c = samples.superclass, samples.subclass
    expected = torch.zeros_like(samples.patches)
    for seed, n, p in torch.cartesian_prod(*(torch.arange(size) for size in samples.kinds.shape)).tolist():
        kind, strength = int(samples.kinds[seed, n, p]), float(samples.strengths[seed, n, p])
        place = {COMMON: int(y[n]), SUBCLASS: 2 + k * int(y[n]) + int(c[n]), DISTRACTOR: 1 - int(y[n])}.get(kind)
        if place is None:
            assert strength == 0
            continue
        low, high = (0.3, 0.5) if kind == DISTRACTOR else (math.sqrt(0.8), math.sqrt(1.2))
        assert low - 1e-9 <= strength <= high + 1e-9
        expected[seed, n, p, place] = strength
    torch.testing.assert_close(samples.patches, expected)
    if hard:
        assert not bool((samples.kinds == COMMON).any())
        strong = (samples.kinds == STRONG).sum(-1)
        full = (samples.kinds == NOISE).sum(-1) == 0
        assert bool(((strong == 1) | full).all())
    else:
        assert set(samples.kinds.unique().tolist()) <= {NOISE, COMMON, SUBCLASS}
    if counts == "exact":
        assert bool(((samples.kinds == SUBCLASS).sum(-1) == s).all())
        assert bool(((samples.kinds == (DISTRACTOR if hard else COMMON)).sum(-1) == (far if hard else s)).all())


def test_mean_counts_of_independent_patches():
    """4,800 samples: the standard error of a mean count is below 0.03."""
    problem = HierarchicalPatches(dim=20, subclasses=4, counts="bernoulli")
    easy = problem.sample(SEEDS, "easy", 200)
    hard = problem.sample(SEEDS, "hard", 200, hard=True)
    for kind in (COMMON, SUBCLASS):
        assert float((easy.kinds == kind).double().sum(-1).mean()) == pytest.approx(6, abs=0.15)
    assert float((hard.kinds == SUBCLASS).double().sum(-1).mean()) == pytest.approx(6, abs=0.15)
    assert float((hard.kinds == DISTRACTOR).double().sum(-1).mean()) == pytest.approx(4, abs=0.15)
    assert float(((hard.kinds == SUBCLASS).sum(-1) == 0).double().mean()) == pytest.approx(math.exp(-6), abs=0.004)


def test_noise_is_everywhere_and_strong_noise_in_one_patch():
    problem = HierarchicalPatches(dim=40, subclasses=3, noise=0.01, strong_noise=0.5, distractors=0)
    hard = problem.sample(SEEDS, "noise", 50, hard=True)
    plain = hard.patches[hard.kinds == NOISE]
    assert float(plain.std()) == pytest.approx(0.01, rel=0.03)
    assert float(hard.patches[hard.kinds == STRONG].std()) == pytest.approx(0.5, rel=0.05)
    subclass = hard.patches[hard.kinds == SUBCLASS]
    assert float(subclass.sort(-1).values[:, :-1].std()) == pytest.approx(0.01, rel=0.05)


def test_rotation_of_dictionary_and_weights_leaves_the_outputs():
    basis = rotations(SEEDS, 24)
    torch.testing.assert_close(basis @ basis.mT, torch.eye(24, dtype=torch.float64).expand(3, 24, 24))
    problem = HierarchicalPatches(dim=24, subclasses=3, noise=0.05)
    plain, turned = (problem.sample(SEEDS, "turn", 2, dictionary=d) for d in (None, basis))
    weights = SEEDS.normal("weights", 4, 10, 24)
    biases = SEEDS.normal("biases", 4, 10)
    ours = PatchNetwork(weights, biases).outputs(plain.patches)
    theirs = PatchNetwork(torch.einsum("scmd,sde->scme", weights, basis), biases).outputs(turned.patches)
    torch.testing.assert_close(ours, theirs)


def test_permuting_patches_and_swapping_the_signs():
    samples = CLEAN.sample(SEEDS, "swap", 2)
    net = PatchNetwork(SEEDS.normal("weights", 4, 10, 24), SEEDS.normal("biases", 4, 10))
    shuffled = samples.patches[:, :, torch.randperm(24, generator=torch.Generator().manual_seed(0))]
    torch.testing.assert_close(net.outputs(samples.patches), net.outputs(shuffled))
    k, n = CLEAN.subclasses, len(samples)
    order = torch.cat([torch.tensor([1, 0]), 2 + torch.arange(2 * k).roll(k), torch.arange(2 + 2 * k, 24)])
    swapped = samples.patches[..., order]
    half = n // 2
    # With the roles of + and − exchanged, a + sample is a − sample of the same subclass.
    assert torch.equal(swapped[:, :half].sum(2).ne(0)[..., 1], torch.ones(3, half, dtype=torch.bool))
    own = 2 + k + samples.subclass[:half]
    assert bool((swapped[:, :half].sum(2)[:, torch.arange(half), own] > 0).all())


def test_one_subclass_makes_coarse_and_fine_labels_coincide():
    samples = HierarchicalPatches(dim=8, subclasses=1).sample(SEEDS, "one", 3)
    assert torch.equal(samples.fine, samples.superclass)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dim": 17}, "dictionary vectors"),
        ({"feature_patches": 13}, "do not fit"),
        ({"distractors": 18}, "strong noise do not fit"),
        ({"jitter": 1.0}, "jitter"),
        ({"jitter": -0.1}, "jitter"),
        ({"faint": (0.6, 0.4)}, "small to large"),
        ({"noise": -1.0}, "negative"),
        ({"counts": "poisson"}, "counts are"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(ValueError, match=words):
        HierarchicalPatches(**change)


def test_refusals_of_batches_and_dictionaries():
    problem = HierarchicalPatches(dim=20, subclasses=4)
    with pytest.raises(ValueError, match="not divisible by 8"):
        problem.batch(12)
    assert problem.batch(16) == 2
    with pytest.raises(ValueError, match="at least one sample"):
        problem.sample(SEEDS, "empty", 0)
    with pytest.raises(ValueError, match="not orthonormal"):
        problem.sample(SEEDS, "basis", 1, dictionary=torch.ones(20, 20))
    with pytest.raises(ValueError, match="has shape"):
        orthonormal(torch.eye(3), 4)
    with pytest.raises(ValueError, match="counts are exact"):
        HierarchicalPatches(counts="bernoulli").sample(SEEDS, "compact", 1, compact=True)
