from __future__ import annotations

import pytest
import torch

from assay.studies.icl_scale.prior.learners import Size, Transformer, attention_to_examples, train
from assay.studies.icl_scale.prior.problem import PriorRule
from assay.training import Stacked
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2))
PROBLEM = PriorRule(3, 6, 0.1)


def test_the_order_of_examples_says_nothing_and_their_labels_do():
    network = Transformer(4, 8, 2, 2)
    tokens = PROBLEM.sample(SEEDS, "p", 10).tokens()[0]
    with torch.no_grad():
        odds = network(tokens)
        shuffled = torch.cat([tokens[:, [3, 0, 5, 1, 2, 4]], tokens[:, 6:]], 1)
        torch.testing.assert_close(network(shuffled), odds, rtol=1e-4, atol=1e-5)
        other = tokens.clone()
        other[:, :-1, -1] *= -1
        assert not torch.allclose(network(other), odds)
    assert odds.shape == (10,)


def test_asking_the_last_token_alone_changes_nothing():
    network = Transformer(4, 8, 1, 2)
    tokens = PROBLEM.sample(SEEDS, "p", 10).tokens()[0]
    with torch.no_grad():
        state = network.embed(tokens)
        every, last = network.blocks[0](state, last=False), network.blocks[0](state, last=True)
    torch.testing.assert_close(every[:, -1:], last, rtol=1e-4, atol=1e-5)


def test_training_learns_the_prior_rule_and_seeds_keep_apart():
    seen = []
    recipe = {"steps": 120, "batch": 64, "rate": 5e-3}
    network = train(PROBLEM, Size(8, 1, 1), SEEDS, watch=seen.append, **recipe)
    assert seen[-1] == len(seen) == 120
    prompts = PROBLEM.sample(SEEDS, "test", 500, "prior")
    with torch.no_grad():
        right = (network(prompts.tokens()) >= 0) == (prompts.answers > 0)
    assert bool((right.double().mean(1) > 0.75).all())
    short = {**recipe, "steps": 5}
    company = [Seeds(values, dtype=torch.float64) for values in ((0, 1, 2), (1,))]  # Adam magnifies rounding
    together, alone = (train(PROBLEM, Size(8, 1, 1), seeds, **short) for seeds in company)
    for ours, theirs in zip(together.values, alone.values, strict=True):
        torch.testing.assert_close(ours[1:2], theirs, rtol=1e-6, atol=1e-8)


def test_a_width_that_heads_cannot_share_is_refused():
    with pytest.raises(ValueError, match="cannot be shared"):
        Transformer(4, 9, 1, 2)


def test_attention_to_examples_is_that_of_the_last_layer():
    size = Size(8, 2, 2)
    network = Stacked(lambda: size.make(3), SEEDS)
    tokens = PROBLEM.sample(SEEDS, "p", 9).tokens()
    ratios = attention_to_examples(network, size, tokens)
    assert ratios.shape == (3,)
    assert bool((ratios > 0).all())
    one = size.make(3)
    one.load_state_dict({name: values[1] for name, values in network.weights.items()})
    with torch.no_grad():
        looked = one.looked_at(tokens[1])
        torch.testing.assert_close(looked.sum(1), torch.ones(9))
        torch.testing.assert_close(ratios[1], (looked[:, :6].mean(1) / looked[:, 6]).median())
        one.blocks[-1].query.weight.zero_()  # a query that asks for nothing looks everywhere alike
        one.blocks[-1].query.bias.zero_()
        torch.testing.assert_close(one.looked_at(tokens[1]), torch.full((9, 7), 1 / 7))
