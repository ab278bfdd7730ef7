"""A pretrained language model on text: demonstrations with flipped labels, and attention to an irrelevant sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from assay.data import load_text
from assay.methods.flipped_labels import FlippedLabels, FlipReport
from assay.networks.pretrained import Loaded, load_model
from assay.probes import attention_spans, distracted_prompts


@dataclass(frozen=True)
class Texts:
    """How a set of texts is asked about: a word per label, the template, and the lengths in words that are used."""

    labels: tuple[str, ...]
    template: str
    words: tuple[int, int]


TEXTS = {
    "sst2": Texts(("negative", "positive"), "sentence: {text}\nThe answer is {label}.", (6, 20)),
    "ag_news": Texts(("world", "sports", "business", "technology"), "article: {text}\nThe topic is {label}.", (12, 30)),
}


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
    return test.run(loaded.model, loaded.tokenizer, load_text(data), load_text(data, "test"), progress=False)


def attention_ratios(loaded: Loaded, data: str, seed: int, *, texts: int) -> dict[str, float]:
    """The last token's attention to an irrelevant sentence over that to the text, per token and the median over texts,
    where the label is right and where it is wrong."""
    asked = TEXTS[data]
    template = asked.template.removesuffix(".")
    prompts = distracted_prompts(
        load_text(data, "test"), asked.labels, count=texts, seed=seed, template=template, words=asked.words
    )
    report = attention_spans(loaded.model, loaded.tokenizer, prompts, progress=False)
    return {
        label: math.exp(median(report.log_ratios("irrelevant", "relevant", condition=label)))
        for label in ("correct", "wrong")
    }
