"""Do the first gradients of each filter agree? A small CNN on scikit-learn's digits, true labels against shuffled ones.

Run: python examples/early_gradients.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

from assay.probes.gradient_consistency import GradientConsistency

torch.manual_seed(0)
torch.set_num_threads(1)  # a network this small gains nothing from more
images, labels = load_digits(return_X_y=True)
inputs = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
targets = torch.tensor(labels)


def first_steps(labels: torch.Tensor) -> dict[str, dict[str, float]]:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    probe = GradientConsistency(["0", "2", "6"], chunks=3, steps_per_chunk=10)
    with probe.attach(model, optimizer) as record:
        while not record.complete:
            batch = torch.randint(len(inputs), (128,))
            optimizer.zero_grad()
            cross_entropy(model(inputs[batch]), labels[batch]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # the probe has seen the raw gradient by now
            optimizer.step()
    return {
        layer: found.summary() | {"null pair": found.null_pairwise, "null mean": found.null_to_mean}
        for layer, found in record.report().items()
    }


for name, chosen in (("true labels", targets), ("shuffled labels", targets[torch.randperm(len(targets))])):
    table = first_steps(chosen)
    print(f"{name:16}" + "".join(f"{column:>10}" for column in table["0.weight"]))
    for layer, row in table.items():
        print(f"{layer:16}" + "".join(f"{value:10.3f}" for value in row.values()))
