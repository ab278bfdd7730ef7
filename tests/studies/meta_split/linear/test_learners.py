"""The linear centroid against the slow and obvious one."""

import pytest
import torch

from assay.studies.meta_split.linear.learners import centroid
from assay.studies.meta_split.problem import SharedFeature
from assay.training import Seeds

SEEDS = Seeds((0, 1), dtype=torch.float64)


@pytest.mark.parametrize("split", ["train-train", "train-validation"])
def test_the_linear_centroid_is_the_slow_one(split):
    tasks = SharedFeature(20, 4, 3, 4, 2).sample(SEEDS)
    fast = centroid(tasks, split, 0.7)
    inputs = tasks.inputs.flatten(3)
    for seed in range(2):
        rows, targets = [], []
        for k in range(3):
            x, y = inputs[seed, k], tasks.labels[seed, k]
            ins, outs = (slice(None), slice(None)) if split == "train-train" else (slice(0, 2), slice(2, 4))
            xi, yi, xo, yo = x[ins], y[ins], x[outs], y[outs]
            # argmin of ‖yi − xi θ‖²/n + λ‖θ − w‖² is affine in w: θ = S(xiᵀyi/n + λw).
            solve = torch.linalg.inv(xi.mT @ xi / len(yi) + 0.7 * torch.eye(40, dtype=x.dtype))
            rows.append(xo @ solve * 0.7)
            targets.append(yo - xo @ solve @ xi.mT @ yi / len(yi))
        slow = torch.linalg.pinv(torch.cat(rows)) @ torch.cat(targets)
        torch.testing.assert_close(fast[seed], slow, rtol=0, atol=1e-8)
