import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.studies.imbalanced_contrastive import theory
from assay.studies.imbalanced_contrastive.problem import MODES, PairStream, TokenPairs, ambient
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


def stream(problem, rare=(0.3,), sigma=(0.0,), **options):
    deviations = torch.tensor(sigma, dtype=torch.float64)
    return PairStream(problem, SEEDS, "test", rates=problem.rates(list(rare)), deviations=deviations, **options)


def test_the_dictionary_is_orthonormal_and_spread_out():
    problem = TokenPairs(dim=60)
    basis = problem.dictionary(SEEDS)
    torch.testing.assert_close(basis.mT @ basis, torch.eye(60, dtype=torch.float64).expand(2, -1, -1))
    assert basis.abs().max() < 6 / math.sqrt(60)
    assert not torch.equal(basis[0], basis[1])


@pytest.mark.parametrize("mode", MODES)
def test_views_share_support_and_sign_and_nothing_else(mode):
    problem = TokenPairs(5, 4, 12, 4, 0.3, mode)
    batch = stream(problem, folded=False).next(500)
    for view in (batch.first, batch.second):
        latents = view[..., :9]
        assert torch.equal(latents.sum(-2).sign(), batch.signs.double())
        assert ((latents == 0) | (latents.sign() == batch.signs.unsqueeze(-2))).all()
        active = (latents != 0).sum(-2)[batch.signs != 0]
        assert active.min() >= 1
        if mode != "bernoulli":
            assert (active == (4 if mode == "all" else 1)).all()
        sizes = latents.abs()[latents != 0]
        assert sizes.min() >= 0.8
        assert sizes.max() <= 1.2
        assert (view[..., 9:] == 0).all()
    assert not torch.equal(batch.first, batch.second)
    assert set(batch.signs.unique().tolist()) == {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("mode", MODES)
def test_rates_and_correlations_are_those_of_the_formulas(mode):
    """Within four standard errors of their own sample."""
    problem = TokenPairs(2, 2, 4, 3, 0.5, mode, share=0.4)
    batch = stream(problem, rare=(0.3, 1.0), sigma=(0.0, 0.0), folded=False).next(20_000)
    q = problem.rates([0.3, 1.0])
    seen = (batch.signs != 0).double().mean((0, 2))
    assert ((seen - q).abs() < 4 * (q * (1 - q) / 40_000).sqrt()).all()
    product = batch.first.sum(-2) * batch.second.sum(-2)
    error = product.std((0, 2)) / math.sqrt(40_000)
    assert ((product.mean((0, 2)) - theory.pair_correlations(problem, [0.3, 1.0])).abs() < 4 * error).all()


@given(share=st.one_of(st.floats(0.05, 0.95), st.just(1.0)), tokens=st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_bernoulli_tokens_are_never_empty_and_have_the_conditional_mean(share, tokens):
    problem = TokenPairs(2, 1, 3, tokens, 1.0, "bernoulli", share)
    active = (stream(problem, folded=False).next(3000).first != 0).double().sum(-2)
    frequent = active[..., :2]
    assert frequent.min() >= 1
    error = 6 * frequent.std() / math.sqrt(frequent.numel()) + 1e-9
    assert abs(float(frequent.mean()) - problem.mean_active) < error


def test_the_folded_token_has_the_law_of_the_mean_token():
    problem = TokenPairs(3, 2, 10, 4, 0.4)
    folded = stream(problem, sigma=(0.3,)).next(40_000).first[..., 0, :]
    mean = stream(problem, sigma=(0.3,), folded=False).next(40_000).first.mean(-2)
    for each in (folded, mean):
        assert each[..., 5:].std() == pytest.approx(0.3 / 2, rel=0.01)
    torch.testing.assert_close(
        folded[..., :5].square().mean((0, 2)), mean[..., :5].square().mean((0, 2)), rtol=0.03, atol=0
    )


def test_cells_share_their_draws_so_that_rarer_supports_are_nested():
    batch = stream(TokenPairs(), rare=(0.1, 0.5, 1.0), sigma=(0.1, 0.1, 0.2)).next(200)
    active = batch.signs != 0
    assert (active[:, 0] <= active[:, 1]).all()
    assert (active[:, 1] <= active[:, 2]).all()
    assert torch.equal(active[:, 0, :, :5], active[:, 2, :, :5])
    torch.testing.assert_close(2 * batch.first[:, 0, ..., 9:], batch.first[:, 2, ..., 9:])


def test_a_seed_draws_the_same_alone():
    problem = TokenPairs()
    alone = PairStream(
        problem,
        Seeds((1,), dtype=torch.float64),
        "test",
        rates=problem.rates([0.3]),
        deviations=torch.tensor([0.1], dtype=torch.float64),
    )
    together = stream(problem, sigma=(0.1,))
    for _ in range(3):
        assert torch.equal(alone.next(8).second[0], together.next(8).second[1])


def test_samples_without_features_can_be_avoided_and_pairs_be_broken():
    problem = TokenPairs(base_rate=0.05)
    assert (stream(problem, nonempty=True).next(500).signs != 0).any(-1).all()
    assert not (stream(problem).next(500).signs != 0).any(-1).all()
    broken = stream(TokenPairs(), unpaired=True).next(4000)
    product = (broken.first[..., 0, :5].sign() * broken.second[..., 0, :5].sign()).mean()
    assert abs(float(product)) < 0.02


def test_ambient_refuses_what_is_no_dictionary():
    with pytest.raises(ValueError, match="orthonormal"):
        ambient(torch.randn(2, 3, 4), 2 * torch.eye(4).expand(2, -1, -1))


def test_theory_rates_are_log_log_d_over_d():
    problem = TokenPairs(base_rate=None)
    assert problem.rate == pytest.approx(math.log(math.log(9)) / 9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dim": 8}, "do not fit"),
        ({"majority": 1, "minority": 1, "base_rate": None}, "d ≥ 3"),
        ({"base_rate": 1.5}, "probability"),
        ({"tokens": 0}, "at least one token"),
        ({"mode": "some"}, "must be one of"),
        ({"low": 2.0}, "low ≤ high"),
        ({"majority": 0}, "at least one frequent"),
    ],
)
def test_impossible_problems_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        TokenPairs(**changes)


@pytest.mark.parametrize(("rare", "words"), [([0.0], "positive"), ([-1.0], "positive"), ([4.0], "no probability")])
def test_impossible_frequencies_are_refused(rare, words):
    with pytest.raises(ValueError, match=words):
        TokenPairs().rates(rare)
