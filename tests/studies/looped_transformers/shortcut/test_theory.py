from __future__ import annotations

import torch

from assay.studies.looped_transformers.problem import LinearVectorGeneration
from assay.studies.looped_transformers.shortcut.theory import one_example
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)


def test_one_example_answers_the_task():
    prompts = LinearVectorGeneration(9, 3, -1.7).sample(SEEDS, "shortcut")
    answer = one_example(prompts.inputs, prompts.targets, -1.7)
    assert float(prompts.task_error(answer).max()) < 1e-12
    assert float(prompts.parameter_error(answer / -1.7).min()) > 1e-3
