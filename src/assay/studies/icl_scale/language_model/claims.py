"""The claims on a pretrained model (C6, C7). One size cannot say what size does: what is judged is its own curve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part


def _asked(data: str, name: str) -> dict[str, Callable[[Params], bool]]:
    return {f"SmolLM2-135M on {name}": lambda p: p.language_model == "smollm2" and data in p.text_sets}


SST2, NEWS = _asked("sst2", "SST-2"), _asked("ag_news", "AG News")
CURVES = "Figure 5.1 for one small model; the source compares four sizes of Llama, and prints curves"
SPANS = "Figure 5.3 for one small model; the source compares two sizes of Llama by norms over spans of any length"


def _auc(m: Measurements[Params], data: str, flipped: float) -> Values:
    return m.final("auc", arm="flipped-text", data=data, flipped=flipped)


@part.claims_over(
    {
        "C6f": {"data": "sst2", "words": "positive from negative SST-2 sentences", "when": SST2},
        "C6h": {"data": "ag_news", "words": "the four topics of AG News articles apart", "when": NEWS},
    },
    statement="SmolLM2-135M-Instruct still tells {words} when all labels in its prompt are flipped (AUC above one "
    "half).",
    source=CURVES + ": small models are seldom worse than guessing",
)
def small_model_keeps_its_prior(m: Measurements[Params], *, data: str) -> Judgement:
    return _auc(m, data, 1.0).named("AUC, all labels flipped").above(0.5)


@part.claims_over(
    {
        "C6g": {"data": "sst2", "words": "positive from negative SST-2 sentences", "when": SST2},
        "C6i": {"data": "ag_news", "words": "the four topics of AG News articles apart", "when": NEWS},
    },
    statement="SmolLM2-135M-Instruct tells {words} less well when all labels in its prompt are flipped.",
    source=CURVES + ", and has small models roughly flat",
)
def small_model_falls(m: Measurements[Params], *, data: str) -> Judgement:
    return (_auc(m, data, 1.0) - _auc(m, data, 0.0)).named("AUC, all − no labels flipped").below(0)


@part.claims_over(
    {
        "C7a": {"data": "sst2", "label": "correct", "at": "the right label", "text": "SST-2 sentence", "when": SST2},
        "C7b": {"data": "sst2", "label": "wrong", "at": "a wrong label", "text": "SST-2 sentence", "when": SST2},
        "C7e": {"data": "ag_news", "label": "correct", "at": "the right label", "text": "AG News text", "when": NEWS},
        "C7f": {"data": "ag_news", "label": "wrong", "at": "a wrong label", "text": "AG News text", "when": NEWS},
    },
    statement="SmolLM2-135M-Instruct attends from {at} more to an {text} than to an irrelevant one beside it, token "
    "for token.",
    source=SPANS,
)
def attends_to_the_relevant(m: Measurements[Params], *, data: str, label: str) -> Judgement:
    where: dict[str, Any] = {"arm": "attention-text", "data": data, "label": label}
    return m.final("attention_ratio", **where).named("attention to the irrelevant/the relevant sentence").below(1)
