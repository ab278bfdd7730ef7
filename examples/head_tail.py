"""Whom does pretraining on a long tail fail? A small CNN learns from many zeros and few nines; a balanced linear head
then reads every class from its features.

scikit-learn's digits; the most frequent class has sixty times the images of the rarest.
Run: python examples/head_tail.py [FIGURE.svg]
"""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from assay.data.images import load_images
from assay.data.long_tail import balanced, long_tailed
from assay.probes import head_tail_probe

torch.manual_seed(0)
torch.set_num_threads(1)  # a network this small gains nothing from more
generator = torch.Generator().manual_seed(0)
train, test = load_images("digits"), load_images("digits", "test")
tail = long_tailed(train, 60.0, generator=generator)
labelled = balanced(train, 20, generator=generator)
counts = torch.bincount(tail.labels).tolist()

features = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 12, 3, padding=1), nn.ReLU()
)
features.extend([nn.AdaptiveAvgPool2d(2), nn.Flatten()])
model = nn.Sequential(features, nn.Linear(48, 10))
reports = {}


def look(name):
    with torch.no_grad():
        known, new = features(labelled.images), features(test.images)
    reports[name] = head_tail_probe(known, labelled.labels, new, test.labels, counts)
    print(f"{name}: {reports[name].headline()}")


print(f"{len(tail)} images to pretrain on, {counts[0]} of class 0 and {counts[-1]} of class 9")
look("random features")
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(600):
    batch = torch.randint(len(tail), (64,))
    optimizer.zero_grad()
    cross_entropy(model(tail.images[batch]), tail.labels[batch]).backward()
    optimizer.step()
look("after pretraining on the tail")
if len(sys.argv) > 1:
    left, right = (report.figure().properties(title=name, width=260) for name, report in reports.items())
    (left | right).save(sys.argv[1])
