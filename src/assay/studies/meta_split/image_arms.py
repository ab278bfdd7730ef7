"""The arms on RainbowMNIST: FOMAML with and without a split under the source's variants, and Reptile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from assay.data.images import load_images
from assay.training.seeds import Seeds

from .rainbow import Rainbow
from .rainbow_learners import ConvNet, MetaTraining, accuracies
from .study import study

VARIANTS = ("huberized", "relu", "one step", "swapped rates")
TUNING_SEED = 1_000_000  # tuning seeds start here; no run reaches them
USES = ("images", "image_limit", "image_side", "blocks", "channels", "shots", "image_steps", "image_looks",
        "tasks_per_step", "test_repeats", "test_queries")  # fmt: skip


def _net(params: Any, classes: int, variant: str = "huberized") -> ConvNet:
    return ConvNet(params.image_side, classes, params.blocks, params.channels, 0.0 if variant == "relu" else 0.5)


def _meta_train(
    params: Any, seeds: Seeds, method: MetaTraining, variant: str, *, tested_on: str = "test"
) -> Iterator[dict[str, Any]]:
    """Accuracy on the 16 meta-testing tasks, adapted and not, a few times along the way. Tuning is tested on images of
    the training set that no tuning network was trained on."""
    train = load_images(params.images, "train", limit=params.image_limit)
    test = load_images(params.images, "test", limit=params.image_limit)
    if tested_on == "held-out":
        kept = len(train) * 4 // 5
        held = type(train)(train.images[kept:], train.labels[kept:], train.name, train.classes)
        train, test = type(train)(train.images[:kept], train.labels[:kept], train.name, train.classes), held
    source, unseen = (Rainbow(each, params.image_side, seeds.device) for each in (train, test))
    net = _net(params, train.classes, variant)
    weights = net.initial(seeds)
    episodes = unseen.testing(seeds, params.test_repeats, params.shots, params.test_queries)
    every = max(1, params.image_steps // params.image_looks)

    def look(step: int, loss: Any = None) -> dict[str, Any]:
        adapted, before = accuracies(net, weights, episodes, method.inner_rate, method.inner_steps)
        found = {"step": step, "accuracy": adapted.mean(1), "unadapted_accuracy": before.mean(1)}
        found["task_interval"] = 1.96 * adapted.std(1) / adapted.shape[1] ** 0.5
        return found if loss is None else {**found, "meta_loss": loss}

    yield look(0)
    batches = source.training(seeds, params.image_steps, params.tasks_per_step, params.shots, params.shots)
    losses = []
    for step, (now, loss) in enumerate(method.train(net, weights, batches), start=1):
        weights = now
        losses.append(loss)
        if step % every == 0 or step == params.image_steps:
            yield look(step, torch.stack(losses[-every:]).mean(0))


@study.arm("rainbow", over={"variant": list(VARIANTS), "split": ["train-train", "train-validation"]}, tolerance=0.05,
           uses=(*USES, "image_inner_rate", "image_outer_rate"), needs=lambda p: (f"data:{p.images}",),
           working_set=lambda p: 2.0 * 2**20)  # fmt: skip
def rainbow(params, seeds, record, *, variant, split):
    """Meta-training on 40 combinations of colour, rotation and scale, meta-testing on the other 16."""
    rates = (params.image_inner_rate, params.image_outer_rate)
    inner, outer = reversed(rates) if variant == "swapped rates" else rates
    method = MetaTraining(split, inner, outer, 1 if variant == "one step" else 5)
    for found in _meta_train(params, seeds, method, variant):
        record(**found)


def _reptile(text: str) -> MetaTraining:
    inner, epsilon = (float(word) for word in text.split())
    return MetaTraining("reptile", inner, epsilon)


@study.arm("reptile", tolerance=0.05, uses=(*USES, "reptile"), needs=lambda p: (f"data:{p.images}",),
           working_set=lambda p: 2.0 * 2**20)  # fmt: skip
def reptile(params, seeds, record):
    """Reptile on the same episodes, all samples of a task in its inner loop."""
    for found in _meta_train(params, seeds, _reptile(params.reptile), "huberized"):
        record(**found)


@study.arm("fomaml-tuned", tolerance=0.05, uses=(*USES, "fomaml"), needs=lambda p: (f"data:{p.images}",),
           working_set=lambda p: 2.0 * 2**20)  # fmt: skip
def fomaml_tuned(params, seeds, record):
    """FOMAML with a split at rates that are tuned as Reptile's are."""
    inner, outer = (float(word) for word in params.fomaml.split())
    for found in _meta_train(params, seeds, MetaTraining("train-validation", inner, outer), "huberized"):
        record(**found)


@study.arm("reptile-tuning", over={"candidate": lambda p: p.reptile_candidates}, tolerance=0.05, uses=USES,
           needs=lambda p: (f"data:{p.images}",), working_set=lambda p: 2.0 * 2**20)  # fmt: skip
def reptile_tuning(params, seeds, record, *, candidate):
    """Reptile's inner rate and ε, on seeds and images kept for tuning."""
    record(tuning_accuracy=_tuned(params, seeds, _reptile(candidate)))


@study.arm("fomaml-tuning", over={"candidate": lambda p: p.fomaml_candidates}, tolerance=0.05, uses=USES,
           needs=lambda p: (f"data:{p.images}",), working_set=lambda p: 2.0 * 2**20)  # fmt: skip
def fomaml_tuning(params, seeds, record, *, candidate):
    """FOMAML's inner and outer rate, on the same seeds and images."""
    inner, outer = (float(word) for word in candidate.split())
    record(tuning_accuracy=_tuned(params, seeds, MetaTraining("train-validation", inner, outer)))


def _tuned(params: Any, seeds: Seeds, method: MetaTraining) -> torch.Tensor:
    kept = Seeds(tuple(TUNING_SEED + seed for seed in seeds), seeds.device, seeds.dtype)
    for found in _meta_train(params, kept, method, "huberized", tested_on="held-out"):
        last = found
    accuracy: torch.Tensor = last["accuracy"]
    return accuracy
