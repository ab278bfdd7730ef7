"""Which directions does the first gradient find in real images, and are the units on them a winning ticket?

A two-layer network learns whether a class is even or odd: each answer has five kinds of images. On scikit-learn's
digits, or on a set in $ASSAY_DATA by its name.
Run: python examples/gradient_features_images.py [mnist|fashion_mnist|cifar10]
"""

import copy
import sys

import numpy as np
import torch
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from assay.data import load_images
from assay.methods import EraseAndStep, OneStepClassifier, compare_tickets, gradient_ticket
from assay.probes import gradient_features

torch.manual_seed(0)
torch.set_num_threads(1)  # networks this small gain nothing from more
name = sys.argv[1] if len(sys.argv) > 1 else "digits"
train, test = (load_images(name, split, limit=3000) for split in ("train", "test"))
centre = train.images.flatten(1).mean(0)
inputs, test_inputs = train.images.flatten(1) - centre, test.images.flatten(1) - centre
labels, test_labels = train.labels % 2, test.labels % 2
print(f"{name}: {len(inputs)} training and {len(test_inputs)} test images\n")

model = nn.Sequential(nn.Linear(inputs.shape[1], 256), nn.ReLU(), nn.Linear(256, 1))
with torch.no_grad():
    model[0].bias.fill_(-0.5 * float((inputs @ model[0].weight.T).std()))  # each unit sees a part of the images
print(gradient_features(model, "0", inputs, labels))
shuffled = labels[torch.randperm(len(labels))]
print("with shuffled labels:", gradient_features(model, "0", inputs, shuffled).headline(), "", sep="\n")

# A first step that forgets the start, as in theory; then the units on the directions against other choices.
initial = copy.deepcopy(model)
EraseAndStep(layers=["0"]).apply(
    model, lambda scores, y: binary_cross_entropy_with_logits(scores.squeeze(1), y.float()), [(inputs, labels)]
)
ticket = gradient_ticket(model, "0", inputs, labels, size=16)
print(ticket, "", sep="\n")
held = len(test_inputs) // 2
race = compare_tickets(
    model, "0", ticket.mask,
    (inputs, labels), (test_inputs[:held], test_labels[:held]), (test_inputs[held:], test_labels[held:]),
    initial=initial, steps=100, learning_rates=(0.03, 0.3, 3.0, 30.0), seeds=3,
)  # fmt: skip
print(race, "", sep="\n")

rivals = {
    "one gradient step": OneStepClassifier(512, random_state=0),
    "random features": make_pipeline(
        RBFSampler(gamma="scale", n_components=512, random_state=0), RidgeClassifierCV(np.logspace(-4, 2, 7))
    ),
    "linear model": RidgeClassifierCV(np.logspace(-2, 4, 7)),
}
for title, rival in rivals.items():
    rival.fit(inputs.numpy(), labels.numpy())
    print(f"{title:18} accuracy {rival.score(test_inputs.numpy(), test_labels.numpy()):.3f}")
