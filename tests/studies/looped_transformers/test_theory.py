from __future__ import annotations

import torch

from assay.methods.looped_transformer import LoopedLinearTransformer
from assay.studies.looped_transformers.problem import LinearVectorGeneration
from assay.studies.looped_transformers.theory import gradient_descent, layer_output
from assay.training.seeds import Seeds

SEEDS = Seeds((0, 1, 2), dtype=torch.float64)


def test_descent_written_out_is_descent_by_autograd():
    prompts = LinearVectorGeneration(9, 3).sample(SEEDS, "autograd")
    eta = torch.full((4,), 0.02, dtype=torch.float64)
    theta = torch.zeros(3, 3, dtype=torch.float64)
    path = gradient_descent(prompts.inputs, prompts.targets, eta)
    for step in range(4):
        theta.requires_grad_()
        loss = 0.5 * (prompts.targets - (prompts.inputs @ theta.unsqueeze(-1)).squeeze(-1)).square().sum()
        theta = theta.detach() - 0.02 * torch.autograd.grad(loss, theta)[0]
        torch.testing.assert_close(path[step + 1], theta)


def test_the_layer_output_is_one_attention_pass():
    prompts = LinearVectorGeneration(9, 3, 0.4).sample(SEEDS, "layer")
    start = SEEDS.normal("start", 3)
    matrix = prompts.matrix(start)
    layer = LoopedLinearTransformer(3, 1, fast=False).attention(matrix)
    printed = layer_output(prompts.inputs, prompts.targets, matrix[:, -1, :-1], 0.4)
    torch.testing.assert_close(layer, printed, rtol=0, atol=1e-12)
