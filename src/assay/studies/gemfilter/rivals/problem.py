"""Facts that are asked for in their own words, and facts that are asked for in others."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from assay.evaluation.needle_kinds import NEEDLES, Needle

_CITIES = ("Lisbon", "Oslo", "Nairobi", "Kyoto", "Quito", "Vienna", "Dublin", "Havana", "Riga", "Lagos")
_PEOPLE = ("Adela", "Bruno", "Clara", "Dmitri", "Esther", "Farid", "Greta", "Hugo")
_HERBS = ("mint", "ginger", "basil", "rosemary", "saffron", "cinnamon")
_ANIMALS = ("horse", "rabbit", "elephant", "duck", "tiger", "whale")
_HIDEOUTS = ("lighthouse", "bakery", "chapel", "windmill", "castle", "barn")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")

#: Sentence and question about one fact, with no word of weight in common.
_PARAPHRASES = (
    (
        "The physician prescribed {} tea against the fever.",
        "What herb did the doctor recommend to the sick man?",
        _HERBS,
    ),
    ("Its crew sailed for {} at dawn.", "Where did the ship go early in the morning?", _CITIES),
    ("The burglar hid those jewels below an old {}.", "In which building did the thief conceal his loot?", _HIDEOUTS),
    ("{} won our race by half a second.", "Who came first in the running competition?", _PEOPLE),
    ("The infant loved a wooden {} most.", "Which toy animal was the baby's favourite?", _ANIMALS),
    ("My automobile broke down near {}.", "In what city did the car stop working?", _CITIES),
    ("Their wedding was postponed until {}.", "On what day will the couple get married?", _DAYS),
    ("The chef seasoned every stew with {}.", "What spice does the cook put into his soup?", _HERBS),
)


def worded(draw: random.Random) -> Needle:
    """A fact that its question asks for in its own words."""
    return NEEDLES[draw.choice(("ingredient", "passcode", "activity"))](draw)


def paraphrased(draw: random.Random) -> Needle:
    """A fact whose question has other words for everything: only their meaning ties the two."""
    sentence, question, words = draw.choice(_PARAPHRASES)
    answer = draw.choice(words)
    return Needle(sentence.format(answer), question, answer)


WORDINGS: dict[str, Callable[[random.Random], Needle]] = {"same words": worded, "other words": paraphrased}


def words_of(text: str) -> list[str]:
    """The words of a text without case and punctuation."""
    return re.findall(r"[a-z0-9]+", text.lower())
