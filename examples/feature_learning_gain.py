"""How much of a model's accuracy comes from learning features? Full training against two fixed-feature comparators.

First on parity, where features must be learned: the label is the product of two of sixteen signs. Then on images,
animals or vehicles of CIFAR-10 where $ASSAY_DATA has it, odd or even digits otherwise.
Run: python examples/feature_learning_gain.py [FIGURE.svg]
"""

import sys

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from assay.data.catalog import available
from assay.data.images import load_images
from assay.methods import feature_learning_gain

torch.set_num_threads(1)  # networks this small gain nothing from more
torch.manual_seed(0)


def parity(count: int) -> tuple[Tensor, Tensor]:
    signs = torch.where(torch.rand(count, 16) < 0.5, -1.0, 1.0)
    return signs, (signs[:, 0] * signs[:, 1] > 0).long()


model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
signs = feature_learning_gain(
    model, parity(600), parity(300), parity(800), head="2", seeds=4, steps=100, learning_rates=(1e-3, 1e-2, 1e-1, 1.0)
)
print(f"parity of two among sixteen signs: {signs!r}\n")

name = "digits" if available("cifar10") else "cifar10"  # the catalogue says what is missing, or nothing
images = load_images(name, limit=1500)
inputs = avg_pool2d(images.images, 2 if name == "cifar10" else 1) - 0.5
wanted = torch.tensor((2, 3, 4, 5, 6, 7)) if name == "cifar10" else torch.arange(1, 10, 2)
labels = torch.isin(images.labels, wanted).long()
parts = [(inputs[rows], labels[rows]) for rows in (slice(0, 700), slice(700, 1000), slice(1000, 1500))]
model = nn.Sequential(
    nn.Conv2d(inputs.shape[1], 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(96, 2),
)
pictures = feature_learning_gain(
    model, *parts, head="7", seeds=3, steps=60, batch_size=32, learning_rates=(1e-3, 1e-2, 1e-1)
)
print(f"{name}, a small CNN: {pictures!r}")
if len(sys.argv) > 1:
    titles = {"parity of two signs": signs, f"{name}, small CNN": pictures}
    left, right = (report.figure().properties(width=260, title=title) for title, report in titles.items())
    (left | right).save(sys.argv[1])
