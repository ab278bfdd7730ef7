from __future__ import annotations

import pytest
import torch

from assay.methods.looped_transformer import prompt_condition
from assay.studies.looped_transformers.problem import INPUTS, LinearVectorGeneration
from assay.training.seeds import Seeds

SEEDS = Seeds(tuple(range(6)), dtype=torch.float64)


@pytest.mark.parametrize("inputs", INPUTS)
def test_targets_follow_a_unit_parameter(inputs):
    prompts = LinearVectorGeneration(20, 4, inputs=inputs, condition=50.0).sample(SEEDS, "data")
    assert prompts.inputs.shape == (6, 20, 4)
    torch.testing.assert_close(prompts.truth.norm(dim=1), torch.ones(6, dtype=torch.float64))
    torch.testing.assert_close(prompts.least_squares(), prompts.truth)
    assert float(prompts.parameter_error(prompts.truth).max()) == 0
    assert float(prompts.task_error(prompts.truth).max()) < 1e-12
    if inputs == "signs":
        assert set(prompts.inputs.unique().tolist()) == {-1.0, 1.0}
    if inputs == "sparse":
        assert 0.15 < float((prompts.inputs != 0).double().mean()) < 0.35
    if inputs == "spectrum":
        expected = torch.full((6,), 50.0, dtype=torch.float64)
        torch.testing.assert_close(prompt_condition(prompts.inputs).condition, expected)


def test_draws_per_seed_and_the_weakest_direction():
    prompts = LinearVectorGeneration(9, 3, truth="weakest").sample(SEEDS, "draws", 7)
    assert prompts.inputs.shape == (6, 7, 9, 3)
    values = torch.linalg.eigvalsh(prompts.gram)
    turned = (prompts.gram @ prompts.truth.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(turned, values[..., :1] * prompts.truth)


def test_noise_moves_the_least_squares_solution():
    prompts = LinearVectorGeneration(20, 4, noise=0.5).sample(SEEDS, "data")
    assert float(prompts.parameter_error(prompts.least_squares()).min()) > 1e-3


def test_the_prompt_matrix():
    prompts = LinearVectorGeneration(5, 2, -1.5).sample(SEEDS, "data")
    start = SEEDS.normal("start", 2)
    matrix = prompts.matrix(start)
    assert torch.equal(matrix[:, :-1, :-1], prompts.inputs)
    assert torch.equal(matrix[:, :-1, -1], prompts.targets)
    torch.testing.assert_close(matrix[:, -1, :-1], 1.5 * start)
    assert bool((matrix[:, -1, -1] == -1.5).all())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"examples": 4}, "1 ≤ d < n"),
        ({"alpha": 0.0}, "α = 0"),
        ({"inputs": "cauchy"}, "unknown inputs"),
        ({"truth": "first"}, "unknown truth"),
        ({"noise": -1.0}, "at least"),
        ({"condition": 0.5}, "at least"),
    ],
)
def test_refusals(change, words):
    with pytest.raises(ValueError, match=words):
        LinearVectorGeneration(**{"examples": 9, "dim": 4, **change})


def test_least_squares_are_the_same_to_the_last_digit_wherever_memory_lies():
    prompts = LinearVectorGeneration(20, 4, noise=0.5).sample(SEEDS, "noise")
    held, found = [], set()
    for length in range(1, 400):
        held.append(bytearray(37 * length % 4999))  # so that the next tensor lies elsewhere
        found.add(prompts.least_squares().numpy().tobytes())
    assert len(found) == 1
