from __future__ import annotations

import math

import pytest
import torch

from assay.methods.looped_transformer import LoopedLinearTransformer
from assay.studies.looped_transformers.problem import LinearVectorGeneration
from assay.studies.looped_transformers.trained.theory import best_cosine, shear
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)


def test_sheared_and_scaled_weights_are_the_construction():
    prompts = LinearVectorGeneration(9, 3).sample(SEEDS, "shear")
    Q, P = torch.eye(4, dtype=torch.float64), torch.diag(torch.tensor([1.0, 1, 1, 0], dtype=torch.float64))
    b = torch.tensor([0.3, -0.8, 0.5], dtype=torch.float64)
    key, value = shear(3 * Q, P / 3, b)
    right = LoopedLinearTransformer(3, 6)(prompts.matrix())
    sheared = LoopedLinearTransformer(3, 6, "1/L", key, value)(prompts.matrix())
    torch.testing.assert_close(sheared, right, rtol=1e-9, atol=1e-12)
    assert best_cosine(Q, P) == pytest.approx(1)
    assert best_cosine(key, value) == pytest.approx(1, abs=1e-6)
    assert best_cosine(Q, Q) == pytest.approx(math.sqrt(3) / 2, abs=1e-6)
    assert best_cosine(Q, -P) == pytest.approx(-1, abs=0.5)
