"""A vision model with few labels: what pretraining gave, what a contrastive update adds, and regularised fine-tuning.

A small network is pretrained without labels, once on digit images and once on digits mixed with textures, whose
features digits do not need. Then: (1) accuracy of a linear head against the number of labels, with raw pixels and the
untrained network beside it; (2) a contrastive update of the mixed network on digits alone; (3) fine-tuning it on 30
labels with λ = 0 and λ = 0.1, paired over seeds; (4) how alike the networks' features are. Needs scikit-learn for the
images.

Run: python examples/contrastive_regularization.py
"""

import copy
from dataclasses import replace
from functools import partial

import torch
from torch import nn

from assay.data import balanced, load_images, random_view
from assay.methods import ContrastiveUpdate, contrastive_regularized_loss
from assay.networks import SmallCnn
from assay.probes import cka_map, label_efficiency, mean_interval
from assay.training import stream

torch.set_num_threads(1)
SEEDS = range(4)
train, test = load_images("digits"), load_images("digits", "test")
data = (train.images, train.labels), (test.images, test.labels)
textures = nn.functional.interpolate(torch.rand(len(train), 1, 4, 4, generator=stream(0, "textures")), size=8)
view = partial(random_view, smallest=0.7)

untrained = SmallCnn(1, 16, stream(0, "network"))
pretraining = ContrastiveUpdate(steps=120, batch_size=96, learning_rate=3e-3)
specific = pretraining.apply(untrained, train.images, augment=view, seed=0).model
doubled = replace(pretraining, batch_size=192)  # as many digits in a step as before
mixed = doubled.apply(untrained, torch.cat([train.images, textures]), augment=view, seed=0).model

print("1. How many labels does a linear head need?")
readings = {"digits": specific, "mixture": mixed, "untrained": untrained, "pixels": lambda images: images.flatten(1)}
curve = label_efficiency(readings, *data, budgets=(10, 30, 100, 1000))
print(curve)
print(
    "digits minus mixture:",
    *(f"{gap.estimate:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]" for gap in curve.gap("digits", "mixture")),
)
print(curve.crossing("digits", "mixture"))

print("\n2. Contrastive update on digits, then a linear head")
update = ContrastiveUpdate(steps=60, batch_size=128, learning_rate=1e-3)
print(update.probe(mixed, train.images, *data, augment=view, budgets=(10, 30, 100), seeds=SEEDS))


def tuned_accuracy(lambda_: float, seed: int) -> float:
    model, head = copy.deepcopy(mixed).train(), nn.Linear(64, 10)
    nn.init.zeros_(head.weight)
    few = balanced(train, 3, generator=stream(seed, "labels"))
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=3e-3)
    # The labelled images and the extra view have streams of their own, so that both runs see the same labelled images.
    labelled, extra = stream(seed, "labelled views"), stream(seed, "extra views")
    for _ in range(60):
        loss = contrastive_regularized_loss(
            model,
            head,
            view(few.images, labelled),
            few.labels,
            augment=lambda images: view(images, extra),
            lambda_=lambda_,
        )
        optimizer.zero_grad()
        loss.total.backward()
        optimizer.step()
    with torch.no_grad():
        return float((head(model.eval()(test.images)).argmax(1) == test.labels).float().mean())


print("\n3. Fine-tuning on 30 labels")
plain, regularised = ([tuned_accuracy(lambda_, seed) for seed in SEEDS] for lambda_ in (0.0, 0.1))
gain = mean_interval([ours - theirs for ours, theirs in zip(regularised, plain, strict=True)])
print(f"plain {mean_interval(plain).estimate:.3f}, regularised {mean_interval(regularised).estimate:.3f}")
print(f"gain {gain.estimate:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}], paired over {len(SEEDS)} seeds")

print("\n4. Are the features alike?")
updated = update.apply(mixed, train.images, augment=view, seed=0).model
models = {"untrained": untrained, "digits": specific, "mixture": mixed, "updated": updated}
print(cka_map(models, test.images, columns={"digits": specific, "mixture": mixed}))
