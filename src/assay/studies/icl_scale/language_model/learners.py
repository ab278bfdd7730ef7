"""A pretrained language model on text: demonstrations with flipped labels, and attention to an irrelevant sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import median
from typing import Any

from assay.data import load_text
from assay.methods.flipped_labels import FlippedLabels, FlipReport
from assay.methods.flipped_labels.usual import USUAL, Usual
from assay.networks.pretrained import Loaded, load_model
from assay.probes import attention_spans, distracted_prompts

TEXTS = {**USUAL, "sentences": Usual(("negative", "positive"), words=(4, 20))}
_SUBJECTS = (
    "the film",
    "the plot",
    "the acting",
    "the music",
    "the ending",
    "the dialogue",
    "the first half",
    "the cast",
)
_VERDICTS = (
    ("was dull and far too long", "was a waste of time", "never comes to life", "was painfully bad"),
    ("was a joy from start to finish", "was warm and very funny", "was simply wonderful", "moved me to tears"),
)


def texts(name: str, split: str) -> Any:
    """A text set with its labels. ``sentences`` are made up here, for a try without any data; training and test differ
    in their subjects."""
    if name != "sentences":
        return load_text(name, split)
    subjects = _SUBJECTS[:5] if split == "train" else _SUBJECTS[5:]
    made = [(f"{who} {said}", label) for label, words in enumerate(_VERDICTS) for said in words for who in subjects]
    return [text for text, _ in made], [label for _, label in made]


@lru_cache(maxsize=1)
def loaded_model(name: str, device: str) -> Loaded:
    """The model, read once per process and not once per unit."""
    return load_model(name, device=device)


def flipped_labels(loaded: Loaded, data: str, seeds: Sequence[int], *, demonstrations: int, queries: int) -> FlipReport:
    """The test with flipped labels, one draw of demonstrations and queries per seed."""
    asked = TEXTS[data]
    test = FlippedLabels(
        asked.labels,
        template=asked.template,
        demonstrations=demonstrations,
        queries=queries,
        seeds=list(seeds),
        words=asked.words,
    )
    return test.run(loaded.model, loaded.tokenizer, texts(data, "train"), texts(data, "test"), progress=False)


def attention_ratios(loaded: Loaded, data: str, seed: int, *, count: int) -> dict[str, float]:
    """The last token's attention to an irrelevant sentence over that to the text, per token and the median over texts,
    where the label is right and where it is wrong."""
    asked = TEXTS[data]
    template = asked.template.removesuffix(".")
    prompts = distracted_prompts(
        texts(data, "test"), asked.labels, count=count, seed=seed, template=template, words=asked.words
    )
    report = attention_spans(loaded.model, loaded.tokenizer, prompts, progress=False)
    return {
        label: math.exp(median(report.log_ratios("irrelevant", "relevant", condition=label)))
        for label in ("correct", "wrong")
    }
