"""How fine should the pretraining labels be? Digits below five or not, with the ten digits, clusters and random labels.

Run: python examples/granularity.py
"""

import torch
from torch import nn

from assay.data.images import load_images
from assay.methods.granularity import (
    FineToCoarse,
    LabelHierarchy,
    Stage,
    clusters_per_superclass,
    granularity_report,
    random_ids,
)

torch.set_num_threads(1)
train, test = load_images("digits"), load_images("digits", "test")
inputs, wanted = train.images.flatten(1), (train.labels >= 5).long()
used, kept = slice(0, 600), slice(600, 1000)
coarse = wanted[used]

hierarchies = [
    LabelHierarchy("ten digits", train.labels[used], coarse, aligned=True),
    clusters_per_superclass(inputs[used], coarse, 5, seed=0),
    random_ids(coarse, 10, generator=torch.Generator().manual_seed(0)),
]
method = FineToCoarse(Stage(epochs=8, batch=100, rate=0.2), rates=(1.0,))
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
test_data = (test.images.flatten(1), (test.labels >= 5).long())

for hierarchy in hierarchies:
    print(granularity_report(hierarchy, inputs[used]))
    found = method.run(model, inputs[used], hierarchy, validation=(inputs[kept], wanted[kept]), test=test_data, seeds=3)
    print(found, "\n")
