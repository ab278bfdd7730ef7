"""What the theorems and their proofs say, against sequences and samples."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.meta_split.problem import SharedFeature
from assay.studies.meta_split.theorems import theory
from assay.studies.meta_split.theory import Scales, loss, outputs
from assay.training import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)


def test_the_feature_only_loss_is_the_loss_without_noise():
    problem = SharedFeature(30, 6, 50, 4, 2, task_norm=1e-9, noise_energy=1e-18, distinct=False)
    tasks = problem.sample(SEEDS)
    filters = SEEDS.normal("filters", 6, 30)
    slow = loss(tasks.labels * outputs(filters.unsqueeze(1), tasks.inputs, 0.5)).mean((1, 2))
    torch.testing.assert_close(theory.feature_only_loss(filters[..., 0], 0.5), slow, rtol=0, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(A=st.floats(0.01, 0.5), ratio=st.floats(0.05, 0.95), x0=st.floats(1e-4, 0.1), y0=st.floats(1e-4, 0.1))
def test_the_race_lemma_on_sequences(A, ratio, x0, y0):
    B, x, y = A * ratio, x0, y0
    while x < 1:
        x, y = x * (1 + A), y * (1 + B)
    assert y <= theory.race_bound(x0, A, B, 1.0, y0) * (1 + 1e-9)
    # Its use: a slow runner gains at most (D/x₀)^{log(1+B)/log(1+A)}, one step over.
    assert y / y0 <= (1 / x0) ** (math.log1p(B) / math.log1p(A)) * (1 + B) * (1 + 1e-9)


def test_the_steps_of_a_race_are_those_of_a_sequence():
    x, steps = 0.01, 0
    while x < 1:
        x, steps = 1.2 * x, steps + 1
    assert math.ceil(theory.race_steps(0.01, 0.2, 1.0)) == steps
    assert theory.race_steps(2.0, 0.2, 1.0) < 0
    assert theory.race_bound(2.0, 0.2, 0.1, 1.0, 0.5) == 0.5


def test_the_race_refuses_nonsense():
    with pytest.raises(ValueError, match="positive"):
        theory.race_steps(1, 1, 0)
    with pytest.raises(ValueError, match="positive"):
        theory.race_bound(0, 1, 1, 1, 1)


def test_stage_thresholds_and_conditions():
    assert theory.noise_threshold(10, 0.5, 8.0, 4, 5) == pytest.approx(10**-0.5 / 32)
    assert theory.feature_threshold(10, 0.5, 5) == pytest.approx(10**-0.5 / 1.5**5)
    assert theory.unlearned_level(2000) == pytest.approx(0.1495, abs=1e-3)
    assert theory.residual_condition(0.5, 10, 4, 8.0, 5, 2000) < 1e-4
    assert theory.pooled_fails(8.0, 2, 4)
    assert not theory.pooled_fails(8.0, 10, 4)


def test_proof_scales():
    proof = theory.proof_scales(10**6)
    assert (proof.K, proof.m) == (4, 2)
    assert proof.s == pytest.approx(math.log(10**6) / 2, rel=1e-3)


def test_noise_and_first_alignments_keep_the_bounds_of_initialisation():
    scales = Scales(d=2000, M=200, K=10, m=10, sigma_0=1e-4, sigma_s=0.3 * 2000**-0.5, sigma_xi=(8 / 1799) ** 0.5)
    assert scales.s == pytest.approx(8)
    bounds = theory.initial_bounds(scales, samples=40, delta=40**-10)
    tasks = SharedFeature(2000, 200, 10, 4, 2).sample(SEEDS)
    gram = tasks.noise.flatten(1, 2) @ tasks.noise.flatten(1, 2).mT
    energy = gram.diagonal(dim1=1, dim2=2)
    assert bounds.energy[0] <= float(energy.min())
    assert float(energy.max()) <= bounds.energy[1]
    assert float((gram - torch.diag_embed(energy)).abs().amax()) <= bounds.product
    start = 1e-4 * SEEDS.normal("filters", 20, 2000)
    feature = start[..., 0]
    noise = torch.einsum("sknd,smd->skmn", tasks.noise, start)
    assert float(feature.abs().amax()) <= bounds.feature
    assert float(noise.abs().amax()) <= bounds.noise
    assert float(feature[:, :10].amax(1).min()) >= bounds.largest_feature
    assert float(noise[:, :, :10].amax(2).min()) >= bounds.largest_noise
    # With M = d/2 the printed lower bound, ½σ²d, is the mean itself: half of the vectors miss it.
    half = SharedFeature(400, 199, 50, 4, 2, noise_energy=200.0).sample(SEEDS)
    share = (half.noise.square().sum(-1) < 0.5 * 400).double().mean()
    assert 0.35 < float(share) < 0.65


def test_the_dictionary_condition():
    own = SharedFeature(2000, 200, 10, 4, 2).own_features(SEEDS)[0]
    found = theory.check_dictionary(own, 0.3 * 2000**-0.5)
    assert found.holds
    assert found.smallest_norm == pytest.approx(1, abs=0.1)
    assert found.largest_product < 0.012
    assert not theory.check_dictionary(own.clone().index_fill_(0, torch.tensor([0]), 0.0), 0.3 * 2000**-0.5).holds
