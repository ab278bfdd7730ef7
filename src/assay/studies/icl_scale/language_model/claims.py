"""The claims on a pretrained model (C6, C7). One size cannot say what size does: what is judged is its own curve."""

from __future__ import annotations

from typing import Any

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part

ONE = {"SmolLM2-135M on SST-2": lambda p: p.language_model == "smollm2" and "sst2" in p.text_sets}
CURVES = "Figure 5.1 for one small model; the source compares four sizes of Llama, and prints curves"


def _auc(m: Measurements[Params], flipped: float) -> Values:
    return m.final("auc", arm="flipped-text", data="sst2", flipped=flipped)


@part.claim(
    "C6f",
    "SmolLM2-135M-Instruct still tells positive from negative SST-2 sentences when all labels in its prompt are "
    "flipped (AUC above one half).",
    source=CURVES + ": small models are seldom worse than guessing",
    when=ONE,
)
def small_model_keeps_its_prior(m: Measurements[Params]) -> Judgement:
    return _auc(m, 1.0).named("AUC, all labels flipped").above(0.5)


@part.claim(
    "C6g",
    "SmolLM2-135M-Instruct tells positive from negative SST-2 sentences less well when all labels in its prompt are "
    "flipped.",
    source=CURVES + ", and has small models roughly flat",
    when=ONE,
)
def small_model_falls(m: Measurements[Params]) -> Judgement:
    return (_auc(m, 1.0) - _auc(m, 0.0)).named("AUC, all − no labels flipped").below(0)


@part.claims_over(
    {"C7a": {"label": "correct", "words": "the right label"}, "C7b": {"label": "wrong", "words": "a wrong label"}},
    statement="SmolLM2-135M-Instruct attends from {words} more to an SST-2 sentence than to an irrelevant one beside "
    "it, token for token.",
    source="Figure 5.3 for one small model; the source compares two sizes of Llama by norms over spans of any length",
    when=ONE,
)
def attends_to_the_relevant(m: Measurements[Params], *, label: str) -> Judgement:
    where: dict[str, Any] = {"arm": "attention-text", "data": "sst2", "label": label}
    return m.final("attention_ratio", **where).named("attention to the irrelevant/the relevant sentence").below(1)
