"""Facts to hide in a long text: a sentence, a question about it, and the answer that the sentence holds."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

PLACES = [
    "Lisbon",
    "Oslo",
    "Nairobi",
    "Kyoto",
    "Quito",
    "Vienna",
    "Dublin",
    "Havana",
    "Riga",
    "Lagos",
    "Toronto",
    "Athens",
    "Santiago",
    "Helsinki",
    "Cairo",
    "Geneva",
    "Jakarta",
    "Warsaw",
    "Denver",
    "Tunis",
]
THINGS = [
    "saffron",
    "cinnamon",
    "ginger",
    "honey",
    "mustard",
    "vanilla",
    "pepper",
    "garlic",
    "mint",
    "basil",
    "lemon",
    "olive",
    "walnut",
    "almond",
    "cherry",
    "pumpkin",
    "coconut",
    "butter",
    "vinegar",
    "chocolate",
    "rosemary",
    "onion",
    "carrot",
    "plum",
]
_NAMES = [
    "Adela",
    "Bruno",
    "Clara",
    "Dmitri",
    "Esther",
    "Farid",
    "Greta",
    "Hugo",
    "Ingrid",
    "Joaquin",
    "Katya",
    "Lorenzo",
    "Miriam",
    "Nestor",
]
_ACTIVITIES = (
    "paint tall ships",
    "bake rye bread",
    "repair old clocks",
    "write letters to strangers",
    "practise the cello",
    "sort dried mushrooms",
    "build paper kites",
    "read train timetables",
)
_DAYS = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
]
_SPOTS = [
    "lighthouse",
    "station",
    "bakery",
    "library",
    "harbour",
    "chapel",
    "windmill",
    "fountain",
]
_INSTRUMENTS = [
    "violin",
    "telescope",
    "typewriter",
    "compass",
    "sewing-machine",
    "barometer",
]


@dataclass(frozen=True)
class Needle:
    """A sentence to hide, the question about it and the answer that it holds."""

    sentence: str
    question: str
    answer: str

    @classmethod
    def of(cls, text: str) -> Needle:
        """From "sentence|question|answer", as it is written in a shell."""
        parts = [part.strip() for part in text.split("|")]
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"a needle of your own is written 'sentence|question|answer', not {text!r}")
        if parts[2] not in parts[0]:
            raise ValueError(f"the needle's sentence does not hold its answer {parts[2]!r}")
        return cls(*parts)


#: The needle of the text, which is scored by word overlap with the whole sentence.
SANDWICH = Needle(
    "The best thing to do in San Francisco is eat a sandwich and sit in Dolores Park on a sunny day.",
    "What is the best thing to do in San Francisco?",
    "eat a sandwich and sit in Dolores Park on a sunny day",
)


def secret_ingredient(draw: random.Random) -> Needle:
    """A fact that no model knows and that can be marked right or wrong: one of 24 words, tied to one of 20 places."""
    place, thing = draw.choice(PLACES), draw.choice(THINGS)
    return Needle(
        f"The secret ingredient of the soup served in {place} is {thing}.",
        f"What is the secret ingredient of the soup served in {place}?",
        thing,
    )


def passcode(draw: random.Random) -> Needle:
    """A harder one: a random number of five digits, each of which must be kept."""
    place, number = draw.choice(PLACES), str(draw.randint(10_000, 99_999))
    return Needle(
        f"The secret passcode of the {place} office is {number}.",
        f"What is the secret passcode of the {place} office?",
        number,
    )


def activity(draw: random.Random) -> Needle:
    """What somebody likes to do: an answer of several words."""
    name, place, habit = draw.choice(_NAMES), draw.choice(PLACES), draw.choice(_ACTIVITIES)
    return Needle(
        f"Whenever it rains, {name} from {place} likes to {habit}.",
        f"What does {name} from {place} like to do whenever it rains?",
        habit,
    )


def meeting(draw: random.Random) -> Needle:
    """When and where: two facts side by side."""
    place, day, spot = draw.choice(PLACES), draw.choice(_DAYS), draw.choice(_SPOTS)
    return Needle(
        f"The gardeners of {place} will come together again on {day} at the {spot}.",
        f"When and where do the gardeners of {place} meet next?",
        f"{day} at the {spot}",
    )


def owner(draw: random.Random) -> Needle:
    """Whose it was: the question's verb is not the sentence's."""
    thing, place, name = draw.choice(_INSTRUMENTS), draw.choice(PLACES), draw.choice(_NAMES)
    return Needle(
        f"The old {thing} in the museum of {place} once belonged to {name}.",
        f"Who used to own the old {thing} in the museum of {place}?",
        name,
    )


def price(draw: random.Random) -> Needle:
    """A number of three digits."""
    place, number = draw.choice(PLACES), str(draw.randint(100, 999))
    return Needle(
        f"A ticket for the night train to {place} costs {number} crowns.",
        f"How many crowns does one pay for the night train to {place}?",
        number,
    )


#: Kinds of needles by name: each draws one.
NEEDLES: dict[str, Callable[[random.Random], Needle]] = {
    "ingredient": secret_ingredient,
    "passcode": passcode,
    "sandwich": lambda _: SANDWICH,
    "activity": activity,
    "meeting": meeting,
    "owner": owner,
    "price": price,
}
