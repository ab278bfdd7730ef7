"""A looped transformer as the last layer of a network: few-shot regression by gradient descent in the forward pass.

Each task is y = sin(x + phase). The features are learned through the solver; the head is solved in context.
Run: python examples/looped_solver.py
"""

import torch
from torch import nn

from assay.methods.looped_transformer import LoopedLinearTransformer, prompt_condition

torch.manual_seed(0)
torch.set_num_threads(1)
features = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 4))
solver = LoopedLinearTransformer(dim=4, loops=12, steps="1/L")
optimizer = torch.optim.Adam(features.parameters(), lr=3e-3)


def few_shot_loss(tasks: int) -> tuple[torch.Tensor, float]:
    inputs = 6 * torch.rand(tasks, 20, 1) - 3
    targets = torch.sin(inputs + 6.28 * torch.rand(tasks, 1, 1)).squeeze(-1)
    seen, unseen = features(inputs[:, :10]), features(inputs[:, 10:])
    theta = solver.solve(seen, targets[:, :10])
    predicted = (unseen @ theta.unsqueeze(-1)).squeeze(-1)
    condition = prompt_condition(seen.detach().double()).condition.median()
    return (predicted - targets[:, 10:]).square().mean(), float(condition)


for step in range(401):
    loss, condition = few_shot_loss(64)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(
            f"step {step:3}: error on unseen points {loss.item():.4f}, median condition of the prompts {condition:.0f}"
        )
