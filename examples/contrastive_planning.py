"""Which rare features can contrastive training learn, how fast, and with how many neurons? Formulas, no training.

Run: python examples/contrastive_planning.py
"""

import torch

from assay.methods.contrastive_planning import (
    Descent,
    growth_factors,
    learnability_threshold,
    learnable,
)
from assay.methods.loss_floor import loss_floor
from assay.methods.neuron_sets import neuron_sets, required_width

descent = Descent(rate=0.02, decay=0.05, temperature=4.0, candidates=128)
frequencies = torch.tensor([0.3, 0.1, 0.03, 0.01, 0.003])  # how often a feature is active in a sample
correlation = frequencies * 4**2  # active in all 4 tokens of both views, with magnitude 1
print(f"learnable from κ = {learnability_threshold(descent):.3f}")
growth, can = growth_factors(correlation, descent), learnable(correlation, descent)
for q, g, ok in zip(frequencies.tolist(), growth.tolist(), can.tolist(), strict=True):
    print(f"active in {q:6.1%}: grows by {g:.5f} per step, {'learnable' if ok else 'never learned'}")

floor = loss_floor([0.3] * 5 + [0.03] * 4, 127)
print(f"\nwith 127 negatives, pure neurons compared by inner products get no loss below {floor:.3f}")
for ratio in (1.0, 0.9, 0.8):
    sets = neuron_sets(30, ratio)
    width, printed = required_width(30, ratio), required_width(30, ratio, exact=False)
    print(
        f"30 features, rare/frequent = {ratio}: {sets.features_per_neuron:.2f} features per random neuron, "
        f"{width:.3g} neurons for one lucky neuron per feature (by the order statement {printed:.3g})"
    )
