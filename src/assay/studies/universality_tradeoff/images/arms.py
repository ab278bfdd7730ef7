"""Small encoders pretrained on growing mixtures of image sets, read by linear heads on few and on many labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from pydantic import Field, NonNegativeFloat, PositiveInt, field_validator, model_validator
from torch import nn

from assay import lab
from assay.data import catalog
from assay.data.images import ImageSet
from assay.methods.contrastive_update import ContrastiveUpdate
from assay.training import Seeds

from ..params import check_rising
from .learners import Network, Pretraining, accuracies, features, pretrained, target_view
from .params import check_images
from .problem import MADE, load_source, mixtures

UNTRAINED, PIXELS = "untrained", "raw pixels"


class Images(lab.Params):
    """The image sets and the pretraining that all parts with images share."""

    image_sources: tuple[str, ...] = Field(
        ("digits", "stripes", "blobs", "codes"),
        min_length=2,
        description="image sets, the target's first; stripes, blobs and codes are made up, others are read by name",
    )
    image_side: int = Field(8, ge=4, description="pixels to which all images are brought, grey")
    image_limit: int = Field(1300, ge=100, description="unlabelled images per set at most")
    image_test: int = Field(500, ge=50, description="test images per set at most")
    image_network: Network = Field("cnn", description="encoder: mlp, cnn or resnet")
    image_width: int = Field(16, ge=1, description="its width")
    image_outputs: int = Field(8, ge=2, description="its outputs: room for some features and not for all")
    image_steps: int = Field(300, ge=1, description="steps of pretraining")
    image_batch: int = Field(32, ge=2, description="images of each set in every step")
    image_rate: float = Field(2e-3, gt=0, description="AdamW's first rate, which falls along a cosine")
    image_decay: float = Field(1e-4, ge=0, description="its weight decay")
    image_temperature: float = Field(0.2, gt=0, description="temperature τ of the contrast")
    image_crop: float = Field(0.3, gt=0, le=1, description="smallest area of a view's crop")

    @field_validator("image_sources")
    @classmethod
    def _known_sources(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in MADE:
                catalog.known(name, "images")
        if len(set(names)) != len(names):
            raise ValueError("image_sources must be different sets")
        return names

    def image_needs(self) -> tuple[str, ...]:
        return tuple(f"data:{name}" for name in self.image_sources if name not in MADE)

    def mixtures(self) -> tuple[str, ...]:
        return mixtures(self.image_sources)

    def recipe(self, **changes: Any) -> Pretraining:
        usual = Pretraining(
            network=self.image_network,
            width=self.image_width,
            outputs=self.image_outputs,
            steps=self.image_steps,
            batch=self.image_batch,
            rate=self.image_rate,
            decay=self.image_decay,
            temperature=self.image_temperature,
            smallest_crop=self.image_crop,
        )
        return replace(usual, **changes)

    def source(self, name: str, split: str) -> ImageSet:
        limit = self.image_limit if split == "train" else self.image_test
        return load_source(name, split, side=self.image_side, limit=limit)

    def pretrained(self, encoder: str, seed: int, device: str) -> nn.Module:
        """The encoder of a mixture, which nobody may change: several arms start from it."""
        return pretrained(self.recipe(), encoder, self.image_side, self.image_limit, seed, device)


class Params(Images):
    image_labels: tuple[PositiveInt, ...] = Field(
        (20, 100, 1000), min_length=2, description="labels of the linear heads, fewest and most among them"
    )
    image_draws: int = Field(10, ge=1, description="draws of labelled images per seed")
    image_update_steps: int = Field(100, ge=1, description="steps of the contrastive update on target images")
    image_update_rate: float = Field(5e-4, gt=0, description="its rate")
    image_decays: tuple[NonNegativeFloat, ...] = Field(
        (0.0, 0.3, 1.0), min_length=2, description="weight decays of encoders of the target alone"
    )

    @model_validator(mode="after")
    def _labels_and_decays(self) -> Params:
        check_rising(image_labels=self.image_labels, image_decays=self.image_decays)
        return self


part = lab.Part(
    "images",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            image_sources=("digits", "stripes", "codes"),
            image_limit=200,
            image_test=100,
            image_width=4,
            image_steps=8,
            image_batch=16,
            image_labels=(20, 100),
            image_draws=1,
            image_update_steps=4,
            image_decays=(0.0, 0.5),
        ),
        "laptop": lab.PartPreset(fewer={"moco": 4, "image-decay": 4}),
        "paper": lab.PartPreset(
            image_sources=("mnist", "fashion_mnist", "cifar10"),
            image_side=28,
            image_limit=50_000,
            image_test=10_000,
            image_network="resnet",
            image_width=16,
            image_outputs=32,
            image_steps=2000,
            image_batch=128,
            image_labels=(20, 100, 500, 2500, 10_000),
            image_update_steps=500,
            fewer={"images": 4, "moco": 4, "image-decay": 4},
        ),
    },
)
RECIPE = tuple(Images.model_fields)
HEADS = (*RECIPE, "image_labels", "image_draws")
OPTIONS: dict[str, Any] = {"needs": Params.image_needs, "tolerance": 0.05, "chunk": 1}


def _encoders(params: Params) -> tuple[str, ...]:
    """Growing mixtures, the other sets alone, and what no pretraining made."""
    check_images("image_labels", params.image_labels, params.image_sources, params.image_limit)
    return (*params.mixtures(), *params.image_sources[1:], UNTRAINED, PIXELS)


def _ends(params: Params) -> tuple[str, ...]:
    check_images("image_labels", params.image_labels, params.image_sources, params.image_limit)
    return params.mixtures()[0], params.mixtures()[-1]


def _decays(params: Params) -> tuple[float, ...]:
    check_images("image_labels", params.image_labels, params.image_sources[:1], params.image_limit)
    return params.image_decays


def read_heads(
    params: Params,
    encoders: Sequence[nn.Module],
    seeds: Seeds,
    record: lab.Recorder,
    tasks: tuple[str, ...],
    metric: str = "accuracy",
) -> None:
    """Accuracies of linear heads on these tasks, at every number of labels, for every seed's encoder."""
    for task in tasks:
        train, test = params.source(task, "train"), params.source(task, "test")
        found = [
            accuracies(encoder, train, test, params.image_labels, seed, params.image_draws)
            for encoder, seed in zip(encoders, seeds, strict=True)
        ]
        for labels, values in zip(params.image_labels, zip(*found, strict=True), strict=True):
            measured: dict[str, Any] = {metric: list(values)}
            record(at={"task": task, "labels": labels}, **measured)


def _pretrained(params: Params, encoder: str, seeds: Seeds, **changes: Any) -> list[nn.Module]:
    """Every seed's encoder of a mixture with another recipe."""
    sets = {name: params.source(name, "train").images for name in encoder.split("+")}
    recipe = params.recipe(**changes)
    return [recipe.train(sets, seed, seeds.device) for seed in seeds]


def _keep_features(params: Params, encoders: Sequence[nn.Module], record: lab.Recorder) -> None:
    """Features of target test images, for similarities."""
    test = params.source(params.image_sources[0], "test").images[:1000]
    record.array("features", torch.stack([features(encoder, test) for encoder in encoders]))


@part.arm("images", over={"encoder": _encoders}, uses=(*HEADS, "image_update_steps", "image_update_rate"), **OPTIONS)
def images(params: Params, seeds: Seeds, record: lab.Recorder, *, encoder: str) -> None:
    """Pretrain on a mixture from scratch, read every task; then a contrastive update on unlabelled target images, and
    read the target again. Raw pixels and the untrained encoder stand beside it."""
    if encoder == PIXELS:
        networks: list[nn.Module] = [nn.Flatten() for _ in seeds]
    elif encoder == UNTRAINED:
        networks = [params.recipe().start(params.image_side, seed, seeds.device).eval() for seed in seeds]
    else:
        networks = [params.pretrained(encoder, seed, seeds.device) for seed in seeds]
    read_heads(params, networks, seeds, record, params.image_sources)
    _keep_features(params, networks, record)
    if encoder in params.mixtures():
        read_heads(
            params, _updated(params, networks, seeds), seeds, record, params.image_sources[:1], "updated_accuracy"
        )


def _updated(params: Params, networks: Sequence[nn.Module], seeds: Seeds) -> list[nn.Module]:
    """The encoders after a contrastive update on the target's images."""
    update = ContrastiveUpdate(
        steps=params.image_update_steps,
        batch_size=64,
        learning_rate=params.image_update_rate,
        loss="simclr",
        temperature=params.image_temperature,
    )
    unlabelled, views = params.source(params.image_sources[0], "train").images, target_view(params.image_crop)
    pairs = zip(networks, seeds, strict=True)
    return [update.apply(network, unlabelled, augment=views, seed=seed).model for network, seed in pairs]


@part.arm("moco", over={"encoder": _ends}, uses=HEADS, **OPTIONS)
def moco(params: Params, seeds: Seeds, record: lab.Recorder, *, encoder: str) -> None:
    """The target's set alone and all sets together, with keys of a slow copy and a queue of negatives."""
    read_heads(params, _pretrained(params, encoder, seeds, loss="moco"), seeds, record, params.image_sources)


@part.arm("image-decay", over={"decay": _decays}, uses=HEADS, **OPTIONS)
def image_decay(params: Params, seeds: Seeds, record: lab.Recorder, *, decay: float) -> None:
    """Encoders of the target alone, with more and more weight decay."""
    target = params.image_sources[0]
    networks = _pretrained(params, target, seeds, decay=decay)
    read_heads(params, networks, seeds, record, (target,))
    _keep_features(params, networks, record)
