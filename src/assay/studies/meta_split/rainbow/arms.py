"""RainbowMNIST: FOMAML with and without a split on real networks, in the source's variants, and Reptile beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from assay import lab
from assay.data.catalog import first_available
from assay.data.images import load_images
from assay.training import Seeds

from ..learners import SPLITS, TV
from ..params import record_shares
from .learners import ConvNet, MetaTraining, Schedule, meta_train
from .problem import Rainbow

VARIANTS = ("huberized", "relu", "one step", "swapped rates")  # the rows of Tables 1 to 3
LARGER: dict[str, dict[str, Any]] = {"six-blocks": dict(blocks=6), "five-shots": dict(shots=5)}  # of Tables 5 and 6
TUNING_SEED = 1_000_000  # tuning seeds start here; no run reaches them


class Params(lab.Params):
    images: str = Field("auto", description="image set (auto: mnist, else fashion_mnist, where found, else digits)")
    image_limit: int = Field(60_000, ge=100, description="training images at most")
    image_side: int = Field(28, ge=4, description="side of a RainbowMNIST image")
    blocks: int = Field(4, ge=1, description="blocks of the convolutional network")
    channels: int = Field(32, ge=1, description="its channels")
    shots: int = Field(1, ge=1, description="support samples per class; as many query samples")
    image_steps: int = Field(2000, ge=2, description="outer steps on RainbowMNIST")
    image_looks: int = Field(4, ge=1, description="times that it is tested on the way")
    tasks_per_step: int = Field(4, ge=1, description="tasks in one of these steps")
    image_inner_rate: float = Field(0.1, gt=0, description="inner rate on RainbowMNIST")
    image_outer_rate: float = Field(0.01, gt=0, description="Adam's outer rate on RainbowMNIST")
    reptile: str = Field("0.3 1.0", description="Reptile's inner rate and ε, tuned")
    reptile_candidates: tuple[str, ...] = Field(
        ("0.1 0.1", "0.1 0.3", "0.1 1.0", "0.3 0.3", "0.3 1.0", "1.0 1.0"),
        min_length=1,
        description="choices it was tuned over",
    )
    fomaml: str = Field("0.03 0.03", description="FOMAML's inner and outer rate, tuned as Reptile's are")
    fomaml_candidates: tuple[str, ...] = Field(
        (
            *("0.01 0.01", "0.03 0.003", "0.03 0.01", "0.03 0.03", "0.1 0.003", "0.1 0.01", "0.1 0.03"),
            *("0.3 0.003", "0.3 0.01"),
        ),
        min_length=1,
        description="choices they were tuned over",
    )
    test_repeats: int = Field(4, ge=1, description="episodes per meta-testing task")
    test_queries: int = Field(10, ge=1, description="test images per class in an episode")

    @field_validator("images")
    @classmethod
    def _resolve_images(cls, name: str) -> str:
        # Resolved here, before anything is addressed by it: results on digits never pass for results on MNIST.
        return first_available("mnist", "fashion_mnist", "digits") if name == "auto" else name

    @field_validator("reptile", "reptile_candidates", "fomaml", "fomaml_candidates")
    @classmethod
    def _two_numbers(cls, value: Any) -> Any:
        for text in (value,) if isinstance(value, str) else value:
            try:
                inner, outer = _rates(text)
            except ValueError:
                inner = outer = 0.0
            if not 0 < inner < math.inf or not 0 < outer <= 1:
                raise ValueError(f"'{text}' is not an inner rate and an outer rate or ε in (0, 1]")
        return value

    @model_validator(mode="after")
    def _chosen_was_tuned(self) -> Self:
        for name in ("reptile", "fomaml"):
            chosen = getattr(self, name)
            if chosen not in getattr(self, f"{name}_candidates"):
                raise ValueError(f"{name} '{chosen}' is not among the {name}_candidates it was tuned over")
        return self

    def network(self, classes: int, variant: str = "huberized") -> ConvNet:
        return ConvNet(self.image_side, classes, self.blocks, self.channels, 0.0 if variant == "relu" else 0.5)

    @property
    def schedule(self) -> Schedule:
        return Schedule(
            steps=self.image_steps,
            looks=self.image_looks,
            tasks=self.tasks_per_step,
            shots=self.shots,
            repeats=self.test_repeats,
            queries=self.test_queries,
        )


def _rates(text: str) -> tuple[float, float]:
    inner, outer = (float(word) for word in text.split())
    return inner, outer


part = lab.Part(
    "rainbow",
    params=Params,
    settings=LARGER,
    presets={
        "smoke": lab.PartPreset(
            settings={"six-blocks": dict(blocks=3)},
            images="digits",
            image_side=8,
            blocks=2,
            channels=4,
            image_steps=4,
            image_looks=1,
            tasks_per_step=2,
            test_repeats=1,
            test_queries=2,
            reptile_candidates=("0.1 1.0", "0.3 1.0"),
            fomaml_candidates=("0.03 0.03", "0.1 0.01"),
        ),
        "laptop": lab.PartPreset(
            settings={"six-blocks": dict(image_side=16)},
            image_limit=10_000,
            image_side=14,
            blocks=2,
            channels=8,
            image_steps=200,
            image_looks=2,
            test_repeats=2,
            test_queries=5,
            reptile_candidates=("0.1 1.0", "0.3 1.0", "1.0 1.0"),
            fomaml_candidates=("0.03 0.01", "0.03 0.03", "0.1 0.01", "0.1 0.03"),
            fewer={"rainbow": 5, "reptile": 4, "fomaml-tuned": 4, "reptile-tuning": 5, "fomaml-tuning": 5},
        ),
        "paper": lab.PartPreset(
            arms=("rainbow-larger",),
            images="mnist",
            fomaml="0.1 0.003",
            fewer={
                "rainbow": 5,
                "rainbow-larger": 3,
                "reptile": 5,
                "fomaml-tuned": 5,
                "reptile-tuning": 3,
                "fomaml-tuning": 3,
            },
        ),
    },
)

_IMAGES = ("images", "image_limit", "image_side", "blocks", "channels")
_EPISODES = ("shots", "image_steps", "image_looks", "tasks_per_step", "test_repeats", "test_queries")
_OPTIONS: dict[str, Any] = {
    "tolerance": 0.05,
    "needs": lambda p: (f"data:{p.images}",),
    "working_set": lambda p: 2.0 * 2**20,
}


def _meta_train(
    params: Params, seeds: Seeds, method: MetaTraining, variant: str = "huberized", *, tested_on: str = "test"
) -> Iterator[dict[str, Any]]:
    """Tuning is tested on images of the training set that no tuning network was trained on (``held-out``)."""
    train = load_images(params.images, "train", limit=params.image_limit)
    test = load_images(params.images, "test", limit=params.image_limit)
    if tested_on == "held-out":
        kept = len(train) * 4 // 5
        halves = slice(kept), slice(kept, None)
        train, test = (replace(train, images=train.images[half], labels=train.labels[half]) for half in halves)
    source, unseen = (Rainbow(each, params.image_side, seeds.device) for each in (train, test))
    return meta_train(params.network(train.classes, variant), method, source, unseen, seeds, params.schedule)


def _record(record: lab.Recorder, looks: Iterator[dict[str, Any]]) -> None:
    for found in looks:
        step, answers = found.pop("step"), found.pop("answers")
        record_shares(record, found, dict.fromkeys(("accuracy", "unadapted_accuracy"), answers), step=step)


@part.arm(
    "rainbow",
    over={"variant": list(VARIANTS), "split": list(SPLITS)},
    uses=(*_IMAGES, *_EPISODES, "image_inner_rate", "image_outer_rate"),
    **_OPTIONS,
)
def rainbow(params: Params, seeds: Seeds, record: lab.Recorder, *, variant: str, split: str) -> None:
    """Meta-training on 40 combinations of colour, rotation and scale, meta-testing on the other 16."""
    inner, outer = params.image_inner_rate, params.image_outer_rate
    if variant == "swapped rates":
        inner, outer = outer, inner
    method = MetaTraining(split, inner, outer, 1 if variant == "one step" else 5)
    _record(record, _meta_train(params, seeds, method, variant))


@part.arm(
    "rainbow-larger",
    over={"setting": list(LARGER), "split": list(SPLITS)},
    uses=(*_IMAGES, *_EPISODES, "image_inner_rate", "image_outer_rate"),
    optional=True,
    **_OPTIONS,
)
def rainbow_larger(params: Params, seeds: Seeds, record: lab.Recorder, *, setting: str, split: str) -> None:
    """The same with a deeper network and with more samples per class."""
    method = MetaTraining(split, params.image_inner_rate, params.image_outer_rate)
    _record(record, _meta_train(params, seeds, method))


@part.arm("reptile", uses=(*_IMAGES, *_EPISODES, "reptile"), **_OPTIONS)
def reptile(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """Reptile on the same episodes, all samples of a task in its inner loop."""
    _record(record, _meta_train(params, seeds, MetaTraining("reptile", *_rates(params.reptile))))


@part.arm("fomaml-tuned", uses=(*_IMAGES, *_EPISODES, "fomaml"), **_OPTIONS)
def fomaml_tuned(params: Params, seeds: Seeds, record: lab.Recorder) -> None:
    """FOMAML with a split at rates that are tuned as Reptile's are."""
    _record(record, _meta_train(params, seeds, MetaTraining(TV, *_rates(params.fomaml))))


@part.arm("reptile-tuning", over={"candidate": lambda p: p.reptile_candidates}, uses=(*_IMAGES, *_EPISODES), **_OPTIONS)
def reptile_tuning(params: Params, seeds: Seeds, record: lab.Recorder, *, candidate: str) -> None:
    """Reptile's inner rate and ε, on seeds and images kept for tuning."""
    _record_tuning(params, seeds, record, MetaTraining("reptile", *_rates(candidate)))


@part.arm("fomaml-tuning", over={"candidate": lambda p: p.fomaml_candidates}, uses=(*_IMAGES, *_EPISODES), **_OPTIONS)
def fomaml_tuning(params: Params, seeds: Seeds, record: lab.Recorder, *, candidate: str) -> None:
    """FOMAML's inner and outer rate, on the same seeds and images."""
    _record_tuning(params, seeds, record, MetaTraining(TV, *_rates(candidate)))


def _record_tuning(params: Params, seeds: Seeds, record: lab.Recorder, method: MetaTraining) -> None:
    kept = Seeds(tuple(TUNING_SEED + seed for seed in seeds), seeds.device, seeds.dtype)
    *_, last = _meta_train(params, kept, method, tested_on="held-out")
    record(trials=last["answers"], tuning_accuracy=last["accuracy"])
