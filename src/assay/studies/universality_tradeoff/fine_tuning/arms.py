"""Linear probing, fine-tuning and contrastively regularised fine-tuning of encoders of growing mixtures."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from statistics import fmean
from typing import Any

import torch
from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds

from ..images.arms import PIXELS, UNTRAINED, Images
from ..images.learners import features
from ..images.params import check_images
from ..params import check_rising
from .learners import FineTuning, labelled, pixel_accuracy, probed, separation, share_right

WAYS = ("linear head", "fine-tuning", "regularised")
RATES, DECAYS, STRENGTHS = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1), (0.0, 1e-1, 1.0, 3.0), (0.03, 0.1, 0.3, 1.0)
TUNING_SEED = 1_000_000  # tuning seeds start here; no run reaches them


class Params(Images):
    tuned_labels: tuple[PositiveInt, ...] = Field((20, 100), min_length=1, description="labelled target images")
    tuned_draws: int = Field(1, ge=1, description="draws of labelled images per seed")
    tuning_steps: int = Field(150, ge=1, description="steps of fine-tuning")
    plain_rate: float = Field(3e-2, gt=0, description="rate of plain fine-tuning (from the grid of ft-tuning)")
    plain_decay: float = Field(1.0, ge=0, description="its weight decay (from the same grid)")
    regularised_rate: float = Field(3e-2, gt=0, description="rate of regularised fine-tuning (from the same grid)")
    strength: float = Field(0.3, gt=0, description="λ of the regulariser (from the same grid; the source has 0.1)")

    @model_validator(mode="after")
    def _tuned_labels_rise(self) -> Params:
        check_rising(tuned_labels=self.tuned_labels)
        return self

    def tuning(self, **changes: Any) -> FineTuning:
        usual = FineTuning(
            steps=self.tuning_steps,
            batch=self.image_batch,
            smallest_crop=self.image_crop,
            temperature=self.image_temperature,
        )
        return replace(usual, **changes)


part = lab.Part(
    "fine_tuning",
    params=Params,
    presets={
        "smoke": lab.PartPreset(tuned_labels=(20,), tuned_draws=1, tuning_steps=4),
        "laptop": lab.PartPreset(fewer={"ft-tuning": 6}),
        "paper": lab.PartPreset(
            tuned_labels=(500, 2500, 5000, 10_000, 50_000),
            tuned_draws=1,
            tuning_steps=500,
            # The best of ft-tuning at these sizes, for either kind of fine-tuning.
            plain_rate=3e-3,
            plain_decay=3.0,
            regularised_rate=3e-3,
            strength=0.03,
            fewer={"fine-tuning": 4, "fine-tuning-beside": 4, "ft-tuning": 1},
        ),
    },
)
RECIPE = (*Images.model_fields, "tuning_steps")
CHOSEN = ("plain_rate", "plain_decay", "regularised_rate", "strength")
OPTIONS: dict[str, Any] = {"needs": Params.image_needs, "tolerance": 0.05, "chunk": 1}


def _ways(params: Params, start: torch.nn.Module, seed: int, labels: int) -> dict[str, tuple[float, float]]:
    """Accuracy and separation of classes by the three ways, the means over draws of labelled images."""
    target = params.image_sources[0]
    train, test = params.source(target, "train"), params.source(target, "test")
    recipes = {
        "fine-tuning": params.tuning(rate=params.plain_rate, decay=params.plain_decay),
        "regularised": params.tuning(rate=params.regularised_rate, strength=params.strength),
    }
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for draw in range(params.tuned_draws):
        own = 1000 * seed + draw
        chosen, _ = labelled(train, labels, own)
        images, answers = train.images[chosen], train.labels[chosen]
        right = probed(start, (images, answers), (test.images, test.labels))
        found["linear head"].append((right, separation(features(start, test.images), test.labels)))
        for way, recipe in recipes.items():
            network = recipe.train(start, images, answers, train.classes, own)
            right = share_right(network, test.images, test.labels)
            found[way].append((right, separation(features(network[0], test.images), test.labels)))
    return {way: (fmean(a for a, _ in each), fmean(b for _, b in each)) for way, each in found.items()}


def _mixtures(params: Params) -> tuple[str, ...]:
    check_images("tuned_labels", params.tuned_labels, params.image_sources[:1], params.image_limit)
    return params.mixtures()


def _tuned_ends(params: Params) -> tuple[str, ...]:
    """The first and the last mixture, where half of the target's images are left to try settings on."""
    check_images("tuned_labels", params.tuned_labels[:2], params.image_sources[:1], params.image_limit, share=2)
    return params.mixtures()[0], params.mixtures()[-1]


@part.arm("fine-tuning", over={"encoder": _mixtures}, uses=(*RECIPE, "tuned_labels", "tuned_draws", *CHOSEN), **OPTIONS)
def fine_tuning(params: Params, seeds: Seeds, record: lab.Recorder, *, encoder: str) -> None:
    """Three ways on the same labelled images, for every number of labels."""
    starts = [params.pretrained(encoder, seed, seeds.device) for seed in seeds]
    answers = params.tuned_draws * len(params.source(params.image_sources[0], "test"))
    for labels in params.tuned_labels:
        found = [_ways(params, start, seed, labels) for start, seed in zip(starts, seeds, strict=True)]
        for way in WAYS:
            accuracy, apart = zip(*(each[way] for each in found), strict=True)
            where: dict[str, str | int] = {"way": way, "labels": labels}
            record(at=where, trials=answers, accuracy=list(accuracy))
            record(at=where, separation=list(apart))


def _beside(params: Params) -> tuple[str, ...]:
    check_images("tuned_labels", params.tuned_labels, params.image_sources[:1], params.image_limit)
    return UNTRAINED, PIXELS


@part.arm(
    "fine-tuning-beside",
    over={"encoder": _beside},
    uses=(*RECIPE, "tuned_labels", "tuned_draws", *CHOSEN),
    **OPTIONS,
)
def beside(params: Params, seeds: Seeds, record: lab.Recorder, *, encoder: str) -> None:
    """What no pretraining made, on the labelled images of the other arm: the three ways from the untrained encoder, and
    a linear head on raw pixels."""
    target, start = params.image_sources[0], params.recipe().start
    train, test = params.source(target, "train"), params.source(target, "test")
    answers = params.tuned_draws * len(test)
    for labels in params.tuned_labels:
        if encoder == UNTRAINED:
            starts = [start(params.image_side, seed, seeds.device).eval() for seed in seeds]
            found = [_ways(params, each, seed, labels) for each, seed in zip(starts, seeds, strict=True)]
            for way in WAYS:
                accuracy, apart = zip(*(each[way] for each in found), strict=True)
                where: dict[str, str | int] = {"way": way, "labels": labels}
                record(at=where, trials=answers, accuracy=list(accuracy))
                record(at=where, separation=list(apart))
        else:
            right = [pixel_accuracy(train, test, labels, seed, params.tuned_draws) for seed in seeds]
            record(at={"way": WAYS[0], "labels": labels}, trials=answers, accuracy=right)


@part.arm(
    "ft-tuning",
    over={"encoder": _tuned_ends, "way": list(WAYS[1:]), "rate": list(RATES)},
    uses=(*RECIPE, "tuned_labels"),
    optional=True,
    **OPTIONS,
)
def ft_tuning(params: Params, seeds: Seeds, record: lab.Recorder, *, encoder: str, way: str, rate: float) -> None:
    """Four settings at each of six rates for one kind of fine-tuning, on tuning seeds and target images kept from
    training, at the two smallest numbers of labels."""
    train = params.source(params.image_sources[0], "train")
    second, values = ("decay", DECAYS) if way == "fine-tuning" else ("strength", STRENGTHS)
    tried = [{"rate": rate, second: value} for value in values]
    own = [TUNING_SEED + seed for seed in seeds]
    starts = [params.pretrained(encoder, seed, seeds.device) for seed in own]
    for labels, changes in product(params.tuned_labels[:2], tried):
        found, answers = [], []
        for seed, start in zip(own, starts, strict=True):
            chosen, held = labelled(train, labels, seed)
            recipe = params.tuning(**changes)
            network = recipe.train(start, train.images[chosen], train.labels[chosen], train.classes, seed)
            found.append(share_right(network, train.images[held], train.labels[held]))
            answers.append(len(held))
        words = ", ".join(f"{name} {value:g}" for name, value in changes.items())
        record(at={"labels": labels, "setting_tried": words}, trials=answers, validation_accuracy=found)
