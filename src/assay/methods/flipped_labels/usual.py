"""What is usual for well-known sets of texts: words for their labels, a template, and how long the texts may be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Usual:
    """``labels`` in the order of the data's integers, one token each in the usual vocabularies; ``words`` keeps sixteen
    demonstrations within a thousand tokens."""

    labels: tuple[str, ...]
    template: str = "sentence: {text}\nThe answer is {label}."
    words: tuple[int, int] | None = None


USUAL = {
    "sst2": Usual(("negative", "positive"), words=(6, 20)),
    "ag_news": Usual(
        ("world", "sports", "business", "technology"), "article: {text}\nThe topic is {label}.", words=(10, 25)
    ),
}
