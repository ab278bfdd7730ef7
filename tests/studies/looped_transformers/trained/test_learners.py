from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from assay.methods.looped_transformer import LoopedLinearTransformer
from assay.studies.looped_transformers.problem import LinearVectorGeneration
from assay.studies.looped_transformers.trained.learners import Training, Weights, constructed, examples_gram
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)
PROBLEM = LinearVectorGeneration(12, 3)
QUICK = Training(loops=3, steps=40, batch=32, pool=128, rate=0.02)


def test_outputs_are_those_of_the_layer():
    prompts = PROBLEM.sample(SEEDS, "test", 5)
    key, value = SEEDS.normal("key", 4, 4), SEEDS.normal("value", 4, 4)
    weights = Weights(SEEDS.uniform("step", 1)[:, 0], key, value)
    ours = weights.outputs(examples_gram(prompts), 4)
    for seed in range(3):
        layer = LoopedLinearTransformer(3, 4, weights.step[seed] / 12, key[seed], value[seed])
        matrix = torch.cat([prompts.inputs[seed], prompts.targets[seed].unsqueeze(-1)], -1)
        query = torch.tensor([0.0, 0, 0, 1], dtype=torch.float64).expand(5, 1, 4)
        torch.testing.assert_close(ours[seed], layer(torch.cat([matrix, query], 1)))


def test_training_lowers_the_loss_it_is_given():
    problem = LinearVectorGeneration(30, 3)  # long prompts: on short ones a few bad prompts make the mean
    prompts = problem.sample(SEEDS, "training", QUICK.pool)
    gram = examples_gram(prompts)

    def losses(weights: Weights) -> dict[str, torch.Tensor]:
        output = weights.outputs(gram, 3)
        task = ((output * prompts.truth).sum(-1) - 1).square().mean(1)
        return {"task": task, "vector": (output - prompts.truth).square().sum(-1).mean(1)}

    for start in ("construction", "random"):
        for loss in ("task", "vector"):
            recipe = replace(QUICK, start=start, loss=loss)
            before, after = recipe.initial(SEEDS, 3), recipe.train(problem, SEEDS)
            assert bool((losses(after)[loss] < losses(before)[loss]).all())


def test_what_is_not_free_stays_bit_for_bit():
    trained = replace(QUICK, free="step", start="construction").train(PROBLEM, SEEDS)
    given = constructed(SEEDS, 3)
    assert torch.equal(trained.query_key, given.query_key)
    assert torch.equal(trained.value_output, given.value_output)
    assert not bool((trained.step == given.step).any())
    everything = replace(QUICK, start="construction").train(PROBLEM, SEEDS)
    assert not torch.equal(everything.value_output, given.value_output)


def test_a_seed_trains_the_same_in_any_company():
    together, alone = QUICK.train(PROBLEM, SEEDS), QUICK.train(PROBLEM, replace(SEEDS, values=(1,)))
    torch.testing.assert_close(together.query_key[1:2], alone.query_key, rtol=1e-8, atol=1e-10)


def test_unknown_trainings_are_refused():
    for change in ({"free": "all"}, {"start": "zero"}, {"loss": "hinge"}):
        with pytest.raises(ValueError, match="unknown training"):
            replace(QUICK, **change)
