"""What does the theory of gradient features promise for data like these, and which of its terms is the largest?

A mixture of four Gaussians whose label is an exclusive or: measure the constants, then ask for the bound.
Run: python examples/gradient_bounds.py
"""

import torch

from assay.methods import FeatureConstants, data_assumptions, gradient_bound, gradient_requirements
from assay.probes import p_hat

torch.manual_seed(0)
dim, count = 100, 4000
axis, side = torch.randint(2, (count,)), 2 * torch.randint(2, (count,)) - 1
inputs = torch.randn(count, dim)
inputs[torch.arange(count), axis] += side * dim**0.5
labels = 1.0 - 2.0 * axis

report = data_assumptions(inputs, labels)
print(report, "", sep="\n")

# First gradients of random neurons with a threshold of one deviation of the noise, and the share near the first axis.
weights = torch.randn(2048, dim)
active = (inputs @ weights.T > dim**0.5).float()
gradients = (active * labels.unsqueeze(1)).T @ inputs / count
near = p_hat(gradients, torch.eye(dim)[0], gamma=0.1, floor=dim**0.5 / 5)
print(near, "", sep="\n")

norms = inputs.norm(dim=1)
knot = dim**0.5 / 2  # of g* = Σ_j y_j/t·max(0, ⟨D_j, x⟩ − 2t) with t = √dim/4
constants = FeatureConstants(
    share=near.share,
    floor=near.floor,
    gamma=near.gamma,
    terms=4,
    largest_output=2 / knot,
    output_norm=4 / knot,
    largest_knot=knot,
    mean_norm=float(norms.mean()),
    second_moment=float(norms.square().mean()),
    largest_norm=float(norms.max()),
)
print(gradient_bound(constants, neurons=len(weights), samples=count), "", sep="\n")
print(gradient_requirements(constants, error=0.1, dim=dim))
