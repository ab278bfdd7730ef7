from __future__ import annotations

import pytest
import torch

from assay.studies.icl_scale.prior.problem import PriorRule
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1))
PROBLEM = PriorRule(3, 8, 0.25)


def test_prior_tasks_follow_the_first_coordinate():
    prompts = PROBLEM.sample(SEEDS, "p", 200, "prior")
    assert torch.equal(prompts.labels, torch.where(prompts.inputs[..., 0] >= 0, 1.0, -1.0))
    assert torch.equal(prompts.answers, torch.where(prompts.queries[..., 0] >= 0, 1.0, -1.0))


def test_random_tasks_have_one_rule_each_and_come_as_often_as_told():
    prompts = PROBLEM.sample(SEEDS, "p", 4000)
    as_prior = (prompts.labels == prompts.inputs[..., 0].sign()).all(-1)
    # A random rule agrees with the prior on all of 8 examples now and then, so fewer than 1 in 4 are told apart.
    share = (~as_prior).double().mean(1)
    assert bool(((share > 0.15) & (share < 0.25 + 4.5 * (0.19 / 4000) ** 0.5)).all())


def test_flips_are_nested_and_the_query_is_never_flipped():
    prompts = PROBLEM.sample(SEEDS, "p", 50)
    order = SEEDS.uniform("order", 50, 8).argsort(-1).argsort(-1)
    tokens = [prompts.tokens(order, share) for share in (0.0, 0.5, 1.0)]
    wrong = [each[..., :-1, -1] != prompts.labels for each in tokens]
    assert [int(each.sum(-1).unique()) for each in wrong] == [0, 4, 8]
    assert torch.equal(tokens[0], prompts.tokens())
    for each in tokens:
        assert torch.equal(each[..., -1, :-1], prompts.queries)
        assert bool((each[..., -1, -1] == 0).all())
        assert torch.equal(each[..., :-1, :-1], prompts.inputs)


def test_refusals():
    with pytest.raises(ValueError, match="at least 2"):
        PriorRule(1, 8, 0.1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        PriorRule(3, 8, 1.1)
    with pytest.raises(ValueError, match="unknown kind"):
        PROBLEM.sample(SEEDS, "p", 5, "hard")
    with pytest.raises(ValueError, match="between 0 and 1"):
        PROBLEM.sample(SEEDS, "p", 5).tokens(torch.zeros(2, 5, 8), -0.5)
