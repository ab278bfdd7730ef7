"""A pretrained language model with flipped labels and an irrelevant sentence; only where it is asked for."""

from __future__ import annotations

import torch
from pydantic import Field, field_validator

from assay import lab
from assay.training import Seeds

from .learners import TEXTS, attention_ratios, flipped_labels, loaded_model


class Params(lab.Params):
    language_model: str = Field("smollm2", description="a hub name, a folder, a GGUF file, or smollm2")
    text_sets: tuple[str, ...] = Field(
        ("sst2",), min_length=1, description="text sets: sst2, ag_news, or a few made-up sentences"
    )
    demonstrations: int = Field(16, ge=1, description="labelled texts in a prompt")
    text_queries: int = Field(40, ge=4, description="texts that are asked about, per seed and share of flips")
    attention_texts: int = Field(20, ge=1, description="texts per seed whose attention is read, in four prompts each")

    @field_validator("text_sets")
    @classmethod
    def _known_texts(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [name for name in names if name not in TEXTS]:
            raise ValueError(f"there are no label words for '{unknown[0]}' (allowed: {', '.join(TEXTS)})")
        return names

    def text_requirements(self) -> tuple[str, ...]:
        return ("extra:llm", f"model:{self.language_model}", *(f"data:{n}" for n in self.text_sets if n != "sentences"))


part = lab.Part(
    "language_model",
    params=Params,
    presets={
        "smoke": lab.PartPreset(text_sets=("sentences",), demonstrations=2, text_queries=4, attention_texts=2),
        "laptop": lab.PartPreset(text_sets=("sst2", "ag_news")),
        "paper": lab.PartPreset(text_sets=("sst2", "ag_news"), text_queries=400, attention_texts=100),
    },
)


@part.arm(
    "flipped-text",
    over={"data": lambda p: p.text_sets},
    uses=("language_model", "text_sets", "demonstrations", "text_queries"),
    needs=Params.text_requirements,
    optional=True,
    chunk=1,
    tolerance=0.02,
)
def flipped_text(params: Params, seeds: Seeds, record: lab.Recorder, *, data: str) -> None:
    """A language model's answers when a share of the demonstrations has the wrong label, where asked for."""
    loaded = loaded_model(params.language_model, seeds.device)
    sizes = {"demonstrations": params.demonstrations, "queries": params.text_queries}
    report = flipped_labels(loaded, data, list(seeds), **sizes)
    auc, balanced, raw = (report.values(metric) for metric in ("auc", "balanced", "raw"))
    for at, flipped in enumerate(report.fractions):
        record(at={"flipped": flipped}, auc=auc[:, at])
        record(
            at={"flipped": flipped}, trials=params.text_queries, balanced_accuracy=balanced[:, at], accuracy=raw[:, at]
        )
        record(at={"flipped": flipped}, last_label_share=report.preference()[:, at, -1])


@part.arm(
    "attention-text",
    over={"data": lambda p: p.text_sets},
    uses=("language_model", "text_sets", "attention_texts"),
    needs=Params.text_requirements,
    optional=True,
    chunk=1,
    tolerance=0.02,
)
def attention_text(params: Params, seeds: Seeds, record: lab.Recorder, *, data: str) -> None:
    """A language model's attention to an irrelevant sentence beside the text, where asked for."""
    loaded = loaded_model(params.language_model, seeds.device)
    found = [attention_ratios(loaded, data, seed, count=params.attention_texts) for seed in seeds]
    for label in found[0]:
        record(at={"label": label}, attention_ratio=torch.tensor([each[label] for each in found]))
