"""Texts ranked by a question, without a language model: by counted words, and by a sentence encoder's vectors."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from assay.networks.pretrained import Loaded


def words_of(text: str) -> list[str]:
    """The words of a text in any alphabet, without case; a name with underscores is one."""
    return re.findall(r"\w+", text.lower())


def bm25(
    question: str,
    texts: Sequence[str],
    *,
    k: float = 1.5,
    b: float = 0.75,
    words: Callable[[str], list[str]] = words_of,
) -> list[float]:
    """Okapi BM25 of every text for a question, after Robertson and Walker: counted words, rare ones more.

    ``k`` says how much a word gains by being said again (1.5 in the package rank_bm25, 1.2 in most search engines) and
    ``b`` how far a long text is held against its words. The weight of a word is that of Lucene, which is never
    negative. A word that is asked for twice counts once.
    """
    counts = [Counter(words(text)) for text in texts]
    mean = sum(map(Counter.total, counts)) / len(counts)
    # In the question's order: a set's would be another in every process, and so would the last bit of a sum.
    held = {word: sum(word in count for count in counts) for word in dict.fromkeys(words(question))}
    weights = {word: math.log(1 + (len(counts) - n + 0.5) / (n + 0.5)) for word, n in held.items()}

    def score(count: Counter[str]) -> float:
        size = k * (1 - b + b * count.total() / mean) if mean else k
        return sum(weight * count[word] * (k + 1) / (count[word] + size) for word, weight in weights.items())

    return [score(count) for count in counts]


@torch.no_grad()
def unit_vectors(encoder: Loaded, texts: Sequence[str], *, batch: int = 32, longest: int = 256) -> Tensor:
    """A sentence encoder's unit vectors (texts, width): the mean over the tokens of each text, as such encoders are
    trained, of its first ``longest`` tokens."""
    found = []
    for start in range(0, len(texts), batch):
        made = encoder.tokenizer(
            list(texts[start : start + batch]), padding=True, truncation=True, max_length=longest, return_tensors="pt"
        )
        # All texts are first sentences, which is what encoders take where they are told nothing; some take no more.
        given = {name: made[name].to(encoder.model.device) for name in ("input_ids", "attention_mask")}
        hidden = encoder.model(**given).last_hidden_state
        mask = given["attention_mask"][..., None].to(hidden.dtype)
        found.append(((hidden * mask).sum(dim=1) / mask.sum(dim=1)).float().cpu())
    return torch.nn.functional.normalize(torch.cat(found), dim=-1)
