"""How good are a small CNN's features after k steps? Snapshots while it trains, each read by a linear head.

CIFAR-10 where $ASSAY_DATA has it, scikit-learn's digits otherwise.
Run: python examples/representation_steps.py [FIGURE.svg]
"""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from assay.data.catalog import available
from assay.data.images import load_images
from assay.probes import RepresentationTracker

torch.manual_seed(0)
torch.set_num_threads(1)
name = "digits" if available("cifar10") else "cifar10"
images = load_images(name, limit=1700)
inputs, labels = images.images - images.images.mean(0), images.labels
train, test = (inputs[:1000], labels[:1000]), (inputs[1000:], labels[1000:])

model = nn.Sequential(
    nn.Conv2d(inputs.shape[1], 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
record = RepresentationTracker(layer="5", steps=(0, 1, 10, 30, 100, 300)).begin(model)
for _ in range(300):
    batch = torch.randint(len(train[1]), (64,))
    optimizer.zero_grad()
    cross_entropy(model(train[0][batch]), train[1][batch]).backward()
    optimizer.step()
    record.step()

report = record.report(train, test)
print(f"{name}: {report!r}")
if len(sys.argv) > 1:
    report.figure().save(sys.argv[1])
