"""Do the first gradients of each filter agree? A small CNN, with true labels against shuffled ones.

CIFAR-10 where $ASSAY_DATA has it, scikit-learn's digits otherwise.
Run: python examples/early_gradients.py [FIGURE.svg]
"""

import sys

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from assay.data.catalog import available
from assay.data.images import load_images
from assay.probes import GradientConsistency
from assay.probes.gradient_consistency import ConsistencyReport

torch.set_num_threads(1)  # a network this small gains nothing from more
name = "digits" if available("cifar10") else "cifar10"
images = load_images(name, limit=1700)
inputs = images.images - images.images.mean(0)


def first_steps(labels: Tensor) -> ConsistencyReport:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(inputs.shape[1], 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    probe = GradientConsistency(["0", "2", "6"], chunks=3, steps_per_chunk=10)
    with probe.attach(model, optimizer) as record:
        while not record.complete:
            batch = torch.randint(len(inputs), (128,))
            optimizer.zero_grad()
            cross_entropy(model(inputs[batch]), labels[batch]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # the probe has seen the raw gradient by now
            optimizer.step()
    return record.report()


torch.manual_seed(1)
shuffled = images.labels[torch.randperm(len(images))]
reports = {"true labels": first_steps(images.labels), "shuffled labels": first_steps(shuffled)}
for what, report in reports.items():
    print(f"{name}, {what}: {report!r}\n")
if len(sys.argv) > 1:
    left, right = (report.figure().properties(width=250, title=what) for what, report in reports.items())
    (left | right).save(sys.argv[1])
