"""How much rank can in-context regression use before label noise makes it a burden?

Run: python examples/rank_noise.py
"""

import torch

from assay.methods import rank_noise, token_covariance

hidden = torch.randn(4000, 16, generator=torch.Generator().manual_seed(0)) * 1.5 / torch.arange(1, 17) ** 0.7
task = 1 / torch.arange(1, 17.0)
for noise in (0.0, 1.0, 4.0):
    print(rank_noise(token_covariance(hidden), pretraining=32, examples=16, noise=noise, weights=task).headline())
