"""Text sets by name, and a few made-up sentences for a try without any data."""

from __future__ import annotations

import torch

from assay.data.text import TextSet, load_text

MADE = "sentences"
_SUBJECTS = (
    "the film",
    "the plot",
    "the acting",
    "the music",
    "the ending",
    "the dialogue",
    "the cast",
    "the last hour",
)
_VERDICTS = (
    ("was dull and far too long", "was a waste of time", "never comes to life", "was painfully bad"),
    ("was a joy from start to finish", "was warm and very funny", "was simply wonderful", "moved me to tears"),
)


def load_texts(name: str, split: str) -> TextSet:
    """A text set with its labels; training and test sentences that are made up differ in their subjects."""
    if name != MADE:
        return load_text(name, split)
    subjects = _SUBJECTS[:5] if split == "train" else _SUBJECTS[5:]
    made = [(f"{who} {said}", label) for label, words in enumerate(_VERDICTS) for said in words for who in subjects]
    return TextSet(tuple(text for text, _ in made), torch.tensor([label for _, label in made]), name, 2)
