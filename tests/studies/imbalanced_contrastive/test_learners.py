import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.methods.contrastive_planning import Descent, growth_factors
from assay.studies.imbalanced_contrastive.learners import (
    Cells,
    Contrastive,
    Encoders,
    attend,
    brelu,
    infonce_step,
    nan_if_diverged,
    random_start,
)
from assay.studies.imbalanced_contrastive.problem import TokenPairs, ambient
from assay.studies.imbalanced_contrastive.theory import pair_correlations
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)
SMALL = TokenPairs(3, 2, 8, 3, 0.5)
TAU = 2.0


@given(s=st.floats(-5, 5), b=st.floats(0, 3))
@settings(deadline=None)
def test_brelu_is_odd_and_its_two_relus(s, b):
    s, b = torch.tensor(s, dtype=torch.float64), torch.tensor(b, dtype=torch.float64)
    expected = torch.relu(s - b) - torch.relu(-s - b)
    torch.testing.assert_close(brelu(s, b), expected)
    torch.testing.assert_close(brelu(-s, b), -expected)
    assert brelu(s, torch.zeros_like(b)) == s


@given(s=st.floats(-5, 5), t=st.floats(-5, 5), b=st.floats(0, 3))
@settings(deadline=None)
def test_brelu_is_lipschitz(s, t, b):
    s, t, b = (torch.tensor(v, dtype=torch.float64) for v in (s, t, b))
    assert (brelu(s, b) - brelu(t, b)).abs() <= (s - t).abs() + 1e-12


def test_softmax_weights_sum_to_one_and_zero_weights_cost_the_log_of_the_candidates(case):
    start, first, second, _ = case()
    found = infonce_step(start, first, second, TAU)
    torch.testing.assert_close(found.softmax.sum(-1), torch.ones_like(found.softmax[..., 0]))
    zero = infonce_step(replace(start, weights=0 * start.weights), first, second, TAU)
    torch.testing.assert_close(zero.loss, torch.full_like(zero.loss, 6.0).log())


def test_rotating_inputs_and_weights_together_changes_nothing():
    problem = SMALL
    run, cells = Contrastive(1, 6, 0.1, TAU, 0, attention="softmax"), Cells([0.5], [0.1], [0.0])
    batch, basis = run.pairs(problem, cells, SEEDS, "rotation").next(6), problem.dictionary(SEEDS)
    start = random_start(problem, 1, SEEDS, width=6, scale=0.5, attention="softmax")
    start = replace(start, biases=0.2 * torch.linalg.vector_norm(start.weights, dim=-1))
    turned = replace(start, weights=ambient(start.weights, basis))
    views = [ambient(view, basis) for view in (batch.first, batch.second)]
    here = infonce_step(start, *run.attended(batch), TAU)
    there = infonce_step(turned, *(attend(view, "softmax") for view in views), TAU)
    torch.testing.assert_close(here.loss, there.loss)
    torch.testing.assert_close(ambient(here.gradient, basis), there.gradient)


def test_without_bias_mixing_the_neurons_leaves_the_loss_and_with_bias_it_does_not(case):
    mix = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3)))[0]
    for bias, kept in ((0.0, True), (0.2, False)):
        start, first, second, _ = case(bias=bias)
        mixed = replace(start, weights=mix @ start.weights)
        apart = (
            (infonce_step(start, first, second, TAU).loss - infonce_step(mixed, first, second, TAU).loss).abs().max()
        )
        assert (apart < 1e-12) == kept


def test_masks_prune_the_rounded_share_of_the_smallest_neurons():
    weights = torch.randn(2, 3, 10, 4, generator=torch.Generator().manual_seed(0))
    mask = Cells([1.0] * 3, [0.0] * 3, [0.0] * 3, [0.0, 0.25, 0.9]).masks(weights)
    assert [int(n) for n in (mask == 0).sum(-1)[0]] == [0, round(0.25 * 10), 9]
    norms = torch.linalg.vector_norm(weights, dim=-1)
    assert norms[mask == 0].numel()
    assert (norms[0, 1][mask[0, 1] == 0].max() <= norms[0, 1][mask[0, 1] == 1].min()).all()
    assert Cells([1.0], [0.0], [0.0]).masks(weights[:, :1]) is None


def test_no_pruning_is_plain_training_bit_for_bit_and_pruning_is_not():
    run = Contrastive(15, 16, 0.05, TAU, 3)
    start = random_start(SMALL, 2, SEEDS, width=6, scale=0.3)
    *_, plain = run.train(SMALL, Cells([0.5] * 2, [0.1] * 2, [0.01] * 2), SEEDS, start)
    *_, pruned = run.train(SMALL, Cells([0.5] * 2, [0.1] * 2, [0.01] * 2, [0.0, 0.5]), SEEDS, start)
    assert torch.equal(plain.encoders.weights[:, 0], pruned.encoders.weights[:, 0])
    assert not torch.equal(plain.encoders.weights[:, 1], pruned.encoders.weights[:, 1])


def test_masked_neurons_learn_when_logits_are_masked_and_only_decay_straight_through():
    run = Contrastive(1, 16, 0.05, TAU, 0)
    start = replace(random_start(SMALL, 2, SEEDS, width=6, scale=0.3))
    cells = Cells([0.5] * 2, [0.1] * 2, [0.01] * 2, [0.5, 0.5], [False, True])
    *_, end = run.train(SMALL, cells, SEEDS, start)
    pruned = cells.masks(start.weights) == 0
    moved = end.encoders.weights - (1 - 0.05 * 0.01) * start.weights
    assert moved[:, 1][pruned[:, 1]].abs().max() == 0
    assert torch.linalg.vector_norm(moved[:, 0], dim=-1)[pruned[:, 0]].min() > 0
    assert torch.linalg.vector_norm(moved[:, 1], dim=-1)[~pruned[:, 1]].min() > 0


def test_biases_follow_the_schedule_of_the_proofs():
    run = Contrastive(6, 16, 0.05, TAU, 2, 0.3, 0.01, looks=tuple(range(6)))
    looks = list(run.train(SMALL, Cells([0.5], [0.1], [0.0]), SEEDS, random_start(SMALL, 1, SEEDS, width=6, scale=0.3)))
    norms = [torch.linalg.vector_norm(look.encoders.weights, dim=-1) for look in looks]
    biases = [look.encoders.biases for look in looks]
    assert (biases[1] == 0).all()
    torch.testing.assert_close(biases[2], 0.3 * norms[2])
    for t in range(2, 6):
        expected = torch.maximum(biases[t] * 1.01, biases[t] * norms[t + 1] / norms[t])
        torch.testing.assert_close(biases[t + 1], expected)


@pytest.mark.parametrize(("bias", "most"), [(None, 0.5), (0.2, float("inf"))])
def test_the_proofs_biases_keep_norms_below_their_bound(bias, most):
    """‖w‖² ≤ d b²/log d from T₁ on: b/‖w‖ starts at √(2 log d/d) and never falls, so half of the bound is kept, while
    neurons grow and shrink. A bias of 0.2‖w‖ is too small for it."""
    problem = TokenPairs(dim=20)
    run = Contrastive(40, 16, 0.5, 4.0, 5, bias, 0.5 / 9, looks=tuple(range(5, 40)))
    start = random_start(problem, 1, SEEDS, width=12, scale=0.1)
    norms, shares = [], []
    for look in run.train(problem, Cells([1.0], [0.1], [0.05]), SEEDS, start):
        norms.append(torch.linalg.vector_norm(look.encoders.weights, dim=-1))
        shares.append((norms[-1] / look.encoders.biases).square() * math.log(9) / 9)
    moves = torch.stack(norms).diff(dim=0)
    assert (moves > 0).any()
    assert (moves < 0).any()
    assert float(shares[0].min()) == pytest.approx(0.5 if bias is None else math.log(9) / 9 / 0.04)
    assert max(float(share.max()) for share in shares) <= min(most, float(shares[0].max())) * (1 + 1e-9)


def test_growth_factors_are_met_within_half_a_percent():
    problem, rare = TokenPairs(dim=40), [0.3, 1.0]
    seeds = Seeds((0,))
    run, start = Contrastive(40, 512, 0.05, 4.0, None), random_start(problem, 2, seeds, width=24, scale=1e-3)
    *_, end = run.train(problem, Cells(rare, [0.05] * 2, [0.01] * 2), seeds, start)
    growth = growth_factors(pair_correlations(problem, rare), Descent(0.05, 0.01, 4.0, 512))
    measured = {}
    for name, part in (("frequent", slice(0, 5)), ("rare", slice(5, 9)), ("noise", slice(9, None))):
        sizes = [torch.linalg.vector_norm(e.weights[0, :, :, part], dim=(-1, -2)) for e in (start, end.encoders)]
        measured[name] = (sizes[1] / sizes[0]) ** (1 / 40)
    torch.testing.assert_close(measured["frequent"].double(), growth[:, 0], rtol=0.005, atol=0)
    torch.testing.assert_close(measured["rare"].double(), growth[:, -1], rtol=0.005, atol=0)
    torch.testing.assert_close(measured["noise"], torch.full((2,), 1 - 0.05 * 0.01), rtol=1e-3, atol=0)
    assert measured["noise"][0] < measured["rare"][0] < measured["rare"][1]


def test_initial_weights_concentrate_like_chi_squares():
    problem, scale = TokenPairs(dim=50), 0.01
    weights = random_start(problem, 1, Seeds((0,)), width=4000, scale=scale).weights[0, 0] / scale
    for part, freedom in ((weights, 50), (weights[:, :9], 9)):
        energy = part.square().sum(-1)
        assert float(energy.mean()) == pytest.approx(freedom, rel=4 * (2 / freedom / 4000) ** 0.5)
        assert float(energy.var()) == pytest.approx(2 * freedom, rel=0.2)


START = random_start(SMALL, 1, SEEDS, width=4, scale=0.1)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Contrastive(10, 1, 0.1, 1.0, 0), "no negatives"),
        (lambda: Contrastive(10, 8, 0.1, 0.0, 0), "temperature"),
        (lambda: Contrastive(10, 8, 0.1, 1.0, 0, -0.1), "negative bias"),
        (lambda: Contrastive(10, 8, 0.1, 1.0, 0, attention="linear"), "uniform or softmax"),
        (lambda: Encoders(torch.ones(1, 1, 2, 3), -torch.ones(1, 1, 2)), "negative bias"),
        (lambda: Cells([0.1, 0.2], [0.0], [0.0, 0.0]), "every cell needs"),
        (lambda: Cells([0.1], [0.0], [0.0], [1.0]).masks(torch.ones(1, 1, 4, 3)), "must lie in"),
        (lambda: Cells([0.1], [0.0], [0.0], [0.9]).masks(torch.ones(1, 1, 4, 3)), "prunes all"),
        (lambda: infonce_step(START, torch.ones(2, 1, 6, 1, 8), torch.ones(2, 1, 6, 1, 8), -1.0), "temperature"),
        (
            lambda: Contrastive(5, 4, 0.1, 1.0, 0).trained(SMALL, Cells([0.5], [0.0], [20.0]), SEEDS, START),
            "rate × decay",
        ),
    ],
)
def test_bad_trainings_are_refused(build, words):
    with pytest.raises(ValueError, match=words):
        build()


def test_nan_marks_encoders_that_diverged_and_no_others():
    weights = torch.ones(2, 3, 4, 5)
    weights[1, 2, 0, 0] = torch.inf
    assert nan_if_diverged(weights).isnan().tolist() == [[False] * 3, [False, False, True]]
