"""Prompts for the attention-span probe: a sentence with its label, right or wrong, and a sentence that does not
matter."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from assay.methods._checks import whole
from assay.methods.flipped_labels.prompts import labelled_texts, template_parts
from assay.probes.attention_span import SpanPrompt

#: Statements in the manner of arithmetic problems, of 5 to 22 words, with nothing good or bad in them.
IRRELEVANT = (
    "The neighbour owns four chairs.",
    "The shoe size of the baker is 42.",
    "There are nine windows in the house.",
    "The clock in the hall shows half past three.",
    "A box on the second shelf holds sixteen pencils.",
    "The ticket of her cousin has the number 318 on it.",
    "His uncle lives on the third floor and has two brothers.",
    "The train to the coast has seven cars and leaves at noon.",
    "The distance between the school and the library is about two kilometres by road.",
    "Every Tuesday the postman brings five letters and one parcel to the office next door.",
    "The garden behind the shop is twelve metres long, and its fence was painted in 2009.",
    "The teacher wrote eight numbers on the board, and the third one of them was a seventeen.",
    "A farmer in the next village keeps thirty sheep, and his sister has a bicycle with twenty gears.",
    "The recipe of the aunt asks for three eggs, and the oven in her kitchen stands beside the door.",
    "The older of the two brothers is 1.80 metres tall, and the phone number of his office ends with a four.",
    "When the museum opened there were fifty people in the line, and the ticket desk was on the left side of the hall.",
)


def distracted_prompts(
    data: Any,
    labels: Sequence[str],
    *,
    count: int = 100,
    seed: int = 0,
    template: str = "sentence: {text}\nThe answer is {label}",
    irrelevant: Sequence[str] = IRRELEVANT,
    words: tuple[int, int] | None = None,
) -> list[SpanPrompt]:
    """For each of ``count`` texts four prompts that end in a label: the right one (condition ``correct``) and the next
    one (``wrong``), with the ``irrelevant`` sentence behind the text and before it, since what stands nearer is looked
    at more. The sentence is, among those of nearest length in words, drawn. Spans are ``relevant`` and ``irrelevant``.
    """
    texts, given = labelled_texts(data, "data")
    values = sorted(set(given))
    if len(values) != len(labels):
        raise ValueError(f"the data have the labels {values}, and there are {len(labels)} words for them")
    low, high = words or (1, 10**9)
    kept = [at for at, text in enumerate(texts) if low <= len(text.split()) <= high]
    if len(kept) < whole("count", count, 1):
        raise ValueError(f"{count} texts are to be drawn, and there are only {len(kept)} of {low} to {high} words")
    if not irrelevant:
        raise ValueError("there is no irrelevant sentence to draw from")
    before, between, blank, _ = template_parts(template)
    stream = random.Random(f"distracted-prompts:{seed}")
    made = []
    for item, at in enumerate(stream.sample(kept, count)):
        text, right = texts[at].strip(), values.index(given[at])
        other = _of_length(stream, irrelevant, len(text.split()))
        for condition, label in (("correct", right), ("wrong", (right + 1) % len(labels))):
            ending = f"{between}{blank}{labels[label]}"
            for first, second, names in ((text, other, _NAMES), (other, text, _NAMES[::-1])):
                start = len(before)
                places = ((start, start + len(first)), (start + len(first) + 1, start + len(first) + 1 + len(second)))
                spans = dict(zip(names, places, strict=True))
                whole_text = f"{before}{first} {second}{ending}"
                made.append(SpanPrompt(whole_text, {name: spans[name] for name in _NAMES}, condition, item))
    return made


_NAMES = ("relevant", "irrelevant")


def _of_length(stream: random.Random, sentences: Sequence[str], words: int) -> str:
    """One of the three sentences whose length is nearest."""
    near = sorted(sentences, key=lambda each: (abs(len(each.split()) - words), each))[:3]
    return stream.choice(near)
