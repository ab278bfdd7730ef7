"""Real images: do first gradients agree on directions, do few learned features help, and are there tickets?"""

from __future__ import annotations

import math
from typing import Self

import torch
from pydantic import Field, NonNegativeInt, field_validator, model_validator

from assay import lab
from assay.data.catalog import first_available
from assay.probes.cones import cone_cover
from assay.training import Seeds

from ..fixed_features.learners import random_relu, random_tangent, ridge_head
from ..learners import hidden_layer, sampled_gradients, stepped, symmetric_start, wrong
from ..params import FirstStep
from ..problem import Sample
from ..tickets.learners import Choice, chosen_network, discovered, race
from .problem import LabelledImages, Labels, Task

TASKS: tuple[Task, ...] = ("two classes", "odd or even")
HEAD_SIZES = (16, 64, 256)
METHODS = ("gradient", "relu", "tangent")
AT_START: tuple[Choice, ...] = ("init", "init, ticket's norms", "init, ticket's norms, outputs")
RACERS: tuple[Choice, ...] = ("full", "ticket", "random", *AT_START)
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
LEVEL = 0.3


class Params(FirstStep):
    images: str = Field("auto", description="image set (auto: mnist when $ASSAY_DATA has it, else digits)")
    image_limit: int = Field(10_000, ge=200, description="training images at most")
    image_pair: tuple[NonNegativeInt, NonNegativeInt] = Field((3, 8), description="the two classes")
    image_samples: int = Field(1000, ge=100, description="training images of each seed")
    image_neurons: int = Field(64, ge=8, description="neurons m on images, of which the network has 4m")
    image_ticket: int = Field(24, ge=4, description="neurons of a ticket on images")
    image_directions: int = Field(3, ge=1, description="directions that a ticket is spread over, found by clustering")
    image_steps: int = Field(60, ge=4, description="steps of the race on images")
    image_batch: int = Field(200, ge=10, description="samples of each")

    @field_validator("images")
    @classmethod
    def _resolve_images(cls, name: str) -> str:
        # Resolved here, before anything is addressed by it: results on digits never pass for results on MNIST.
        return first_available("mnist", "digits") if name == "auto" else name

    @model_validator(mode="after")
    def _two_classes(self) -> Self:
        if self.image_pair[0] == self.image_pair[1]:
            raise ValueError(f"image_pair needs two different classes, not {self.image_pair}")
        return self


part = lab.Part(
    "images",
    params=Params,
    presets={
        "smoke": lab.PartPreset(image_samples=300, image_neurons=16, image_ticket=12, image_steps=6),
        "paper": lab.PartPreset(image_limit=60_000, image_samples=10_000, image_neurons=256, image_steps=200),
    },
)
DATA = ("images", "image_limit", "image_pair", "image_samples", "image_neurons", "threshold")


def _data(params: Params, task: Task) -> LabelledImages:
    return LabelledImages.of(params.images, task, params.image_pair, params.image_limit)


@part.arm(
    "image-gradients",
    over={"task": TASKS, "labels": ("true", "shuffled")},
    uses=(*DATA, "cone"),
    needs=lambda params: (f"data:{params.images}",),
    chunk=4,
    tolerance=0.05,
)
def image_gradients(params: Params, seeds: Seeds, record: lab.Recorder, *, task: Task, labels: Labels) -> None:
    """First gradients on images: their norms, whether two halves of the images agree on them, and how few cones hold
    them."""
    data = _data(params, task)
    sample = data.sample(seeds, "train", params.image_samples, labels)
    start = symmetric_start(seeds, params.image_neurons, data.dim, params.threshold * math.sqrt(data.dim))
    n, both = sample.labels.shape[1], 2 * params.image_neurons
    found = sampled_gradients(start, sample)[:, :both]
    first, second = (sampled_gradients(start, sample.part(*rows))[:, :both] for rows in ((0, n // 2), (n // 2, n)))
    agreement = torch.nn.functional.cosine_similarity(first, second, dim=-1)
    record(agreement=agreement.median(1).values, norm=found.norm(dim=-1).median(1).values)
    shares, counts = [], []
    for each in found:
        alive = each[each.abs().amax(1) > 0]
        sizes = torch.tensor([len(cone.members) for cone in cone_cover(alive, gamma=params.cone, most=both)])
        held = sizes.sort(descending=True).values.cumsum(0)
        shares.append(float(sizes.max()) / both)
        counts.append(int((held < 0.8 * len(alive)).sum()) + 1)
    record(largest_cone=shares, cones=counts)
    record.array("gradients", found[:, : params.image_neurons])


@part.arm(
    "image-heads",
    over={"task": TASKS, "method": METHODS},
    uses=DATA,
    needs=lambda params: (f"data:{params.images}",),
    chunk=4,
    tolerance=0.05,
)
def image_heads(params: Params, seeds: Seeds, record: lab.Recorder, *, task: Task, method: str) -> None:
    """Heads on few gradient features and on as many fixed ones, all tuned alike."""
    data = _data(params, task)
    train, test, root = data.sample(seeds, "train", params.image_samples), data.tested(seeds, 1), math.sqrt(data.dim)
    for size in HEAD_SIZES:
        if method == "gradient":
            start = symmetric_start(seeds, size // 4, data.dim, params.threshold * root)
            features = hidden_layer(stepped(start, sampled_gradients(start, train), knot=root / 2))
        elif method == "relu":
            features = random_relu(seeds, "random features", size, data.dim, 0.0, root)
        else:
            features = random_tangent(seeds, "random features", size, data.dim, root)
        fitted = ridge_head(features, train, test.inputs)
        accuracy = 1 - wrong(fitted.outputs, test.labels)
        record(at={"size": size}, trials=test.labels.shape[1], test_accuracy=accuracy)


@part.arm(
    "image-tickets",
    over={"who": RACERS},
    uses=(*DATA, "image_ticket", "image_directions", "image_steps", "image_batch"),
    needs=lambda params: (f"data:{params.images}",),
    chunk=4,
    tolerance=0.2,
)
def image_tickets(params: Params, seeds: Seeds, record: lab.Recorder, *, who: Choice) -> None:
    """The race of tickets on odd and even images; the directions of the ticket are found by clustering."""
    data = _data(params, "odd or even")
    train, root = data.sample(seeds, "train", params.image_samples), math.sqrt(data.dim)
    start = symmetric_start(seeds, params.image_neurons, data.dim, params.threshold * root)
    net = stepped(start, sampled_gradients(start, train), knot=root / 2)
    directions = discovered(net, params.image_directions, cosine=0.7)
    net = chosen_network(seeds, who, start, net, train, directions, params.image_ticket)
    count = train.labels.shape[1]
    order = list(seeds.batches("batches", count, min(params.image_batch, count), params.image_steps))
    rows = torch.arange(len(seeds)).unsqueeze(1)

    def batch(step: int) -> Sample:
        index = order[step - 1]
        return Sample(train.inputs[rows, index], train.labels[rows, index], train.components[rows, index.cpu()])

    moments = [*range(min(12, params.image_steps)), *range(12, params.image_steps, 3), params.image_steps]
    found = race(net, batch, data.tested(seeds, 0), data.tested(seeds, 1), rates=RATES, steps=moments, level=LEVEL)
    record.curve(found.steps, loss=found.losses)
    record(steps=found.first + (0 if who in AT_START else 1), rate=found.rates, reached=found.reached)
    record(trials=data.tested(seeds, 1).labels.shape[1], error=found.error)
