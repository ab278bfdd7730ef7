"""FOMAML with and without a split, and Reptile, on a small CNN: digits on coloured backgrounds, rotated.

A task is one colour and one rotation; it comes with two images of each of five digits. The audit trains with and
without a split from the same weights on the same tasks and shows what adaptation gains on the samples it adapted to,
and on held-out ones.

Run: python examples/fomaml_cnn.py [FIGURE.svg]
"""

import sys

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from assay.data.images import load_images
from assay.methods.fomaml import Fomaml
from assay.methods.meta_tasks import Task
from assay.methods.reptile import Reptile
from assay.methods.split_audit import SplitAudit

torch.set_num_threads(1)  # networks this small are fastest on one core
DIGITS = 5
train, test = load_images("digits"), load_images("digits", "test")


def sampler(images, colours):
    """Tasks of one colour and one rotation, two images of each digit."""

    def draw(generator):
        colour = colours[int(torch.randint(len(colours), (1,), generator=generator))].reshape(3, 1, 1)
        quarter = int(torch.randint(4, (1,), generator=generator))
        chosen = []
        for digit in range(DIGITS):
            members = (images.labels == digit).nonzero().flatten()
            chosen.append(members[torch.randperm(len(members), generator=generator)[:2]])
        index = torch.cat(chosen)
        grey = torch.rot90(images.images[index], quarter, (-2, -1))
        return Task(colour * (1 - grey) + grey, images.labels[index])

    return draw


def make_model():
    first = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(32, DIGITS))


colours = torch.rand(12, 3, generator=torch.Generator().manual_seed(0))
training, testing = sampler(train, colours[:8]), sampler(test, colours[8:])
method = Fomaml(inner_lr=0.1, inner_steps=3, tasks_per_step=2)
report = SplitAudit(method, steps=30, test_tasks=20).run(
    make_model, lambda model: torch.optim.Adam(model.parameters(), lr=0.01), training, testing, cross_entropy, seeds=3
)
print(report)
if len(sys.argv) > 1:
    report.figure().save(sys.argv[1])

torch.manual_seed(0)
model = make_model()
reptile = Reptile(inner_lr=0.1, inner_steps=3, epsilon=1.0, tasks_per_step=2)
steps = list(reptile.train(model, training, cross_entropy, steps=30, seed=0))
print(f"Reptile on the same tasks: loss after adaptation {steps[0].loss:.3f} at first, {steps[-1].loss:.3f} at last")
