"""How much of a model's accuracy comes from learning features? Full training against two fixed-feature comparators.

The label is the product of two of thirty signs: no fixed set of a few features contains it for every pair.
Run: python examples/feature_learning_gain.py
"""

import torch
from torch import Tensor, nn

from assay.methods import feature_learning_gain

generator = torch.Generator().manual_seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)  # matrices this small gain nothing from more


def data(n: int) -> tuple[Tensor, Tensor]:
    signs = torch.where(torch.rand(n, 30, generator=generator) < 0.5, -1.0, 1.0)
    return signs, (signs[:, 0] * signs[:, 1] > 0).long()


model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))
gain = feature_learning_gain(
    model, data(1000), data(500), data(2000),
    head="2", steps=200, learning_rates=(1e-3, 1e-2, 0.1, 1, 10), generator=generator,
)  # fmt: skip

print(f"{'trained':12}{'accuracy':>10}{'rate':>10}   validation accuracy by learning rate")
for name, arm in (("everything", gain.full), ("linearised", gain.linearized), ("head only", gain.frozen)):
    tried = "  ".join(f"{rate:g}: {accuracy:.2f}" for rate, accuracy in arm.validation.items())
    note = "   (edge of the grid)" if arm.at_edge else ""
    print(f"{name:12}{arm.accuracy:10.3f}{arm.learning_rate:10g}   {tried}{note}")
print(f"majority answer {gain.majority:.3f}; feature-learning gain {gain.gain:+.3f} after {gain.steps} steps")
