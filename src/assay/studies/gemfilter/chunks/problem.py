"""Facts in a long text that are asked for one by one, or that only together answer: at hand, or chunks apart."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from assay.evaluation.needle_kinds import NEEDLES, PLACES, THINGS
from assay.evaluation.needles import hide
from assay.evaluation.prose import folder_text, library_text, manual_text

_NAMES = ("Adela", "Bruno", "Clara", "Dmitri", "Esther", "Farid", "Greta", "Hugo", "Ingrid", "Joaquin")
_RELICS = ("violin", "telescope", "typewriter", "compass", "barometer", "globe")
_HOMES = ("lighthouse", "bakery", "library", "chapel", "windmill", "castle")
_NUMBERS = ("zero", "one", "two", "three", "four", "five")
#: Things of a list that is asked for.
LISTED = 8
#: Prose by name; any other name is a folder, or a file, of the user's.
HAYSTACKS: dict[str, Callable[[], str]] = {"manual": manual_text, "library": library_text}


@dataclass(frozen=True)
class Task:
    """Sentences to hide, at depths from a first one on, a question, and what a right answer says: of each of
    ``answers`` one form, and ``wrong`` not before."""

    sentences: tuple[str, ...]
    offsets: tuple[float, ...]
    question: str
    answers: tuple[tuple[str, ...], ...]
    wrong: str = ""

    def right(self, response: str) -> bool:
        said = response.lower()
        places = [
            min((said.find(form.lower()) for form in forms if form.lower() in said), default=-1)
            for forms in self.answers
        ]
        if min(places) < 0:
            return False
        return self.wrong.lower() not in said[: places[0]] if self.wrong else True

    def named(self, response: str) -> float:
        """The share of the answers that are said, in any order."""
        said = response.lower()
        return sum(any(form.lower() in said for form in forms) for forms in self.answers) / len(self.answers)


@dataclass(frozen=True)
class Asked:
    """A prompt with the positions of each hidden sentence, and the tokens behind the text."""

    ids: list[int]
    at: list[list[int]]
    tail: int
    task: Task

    @property
    def wanted(self) -> list[int]:
        return [place for sentence in self.at for place in sentence]


def one_fact(draw: random.Random, kind: str) -> Task:
    """One of the needles, by the name of its kind."""
    needle = NEEDLES[kind](draw)
    return Task((needle.sentence,), (0.0,), needle.question, ((needle.answer,),))


def two_hops(draw: random.Random, apart: float) -> Task:
    """Who has it, and where that person lives: the question does not name the second fact."""
    place, relic, name, home = (draw.choice(some) for some in (PLACES, _RELICS, _NAMES, _HOMES))
    return Task(
        (f"The old {relic} of {place} was bought by {name}.", f"{name} has lived in the {home} for years."),
        (0.0, apart),
        f"In which building does the person live who bought the old {relic} of {place}?",
        ((home,),),
    )


def four_facts(draw: random.Random) -> Task:
    """Four needles of one kind, a quarter of the text apart, and a question about all of them."""
    places, things = draw.sample(PLACES, 4), draw.sample(THINGS, 4)
    return Task(
        tuple(f"The secret ingredient of the soup served in {p} is {t}." for p, t in zip(places, things, strict=True)),
        (0.0, 0.25, 0.5, 0.75),
        f"What are the secret ingredients of the soups served in {', '.join(places[:3])} and {places[3]}?",
        tuple((thing,) for thing in things),
    )


def number(draw: random.Random) -> Task:
    """How many: every mention counts."""
    place, count = draw.choice(PLACES), draw.randint(2, 5)
    names = draw.sample(_NAMES, count)
    return Task(
        tuple(f"{name} was made a citizen of {place}." for name in names),
        tuple(i / count for i in range(count)),
        f"How many people were made citizens of {place}?",
        ((str(count), _NUMBERS[count]),),
    )


def order(draw: random.Random) -> Task:
    """Which came first: only the order in the text says it."""
    place, (first, second) = draw.choice(PLACES), draw.sample(_NAMES, 2)
    return Task(
        (f"Then {first} reached the gate of {place}.", f"Then {second} reached the gate of {place}."),
        (0.0, 0.5),
        f"In the order of the text, who was the first to reach the gate of {place}?",
        ((first,),),
        second,
    )


def listed(draw: random.Random) -> Task:
    """Eight things that one subject has to do with, an eighth of the text apart, and a question about all of them: as a
    summary's, its evidence is everywhere."""
    place, things = draw.choice(PLACES), draw.sample(THINGS, LISTED)
    return Task(
        tuple(f"At the market of {place} they sold {thing}." for thing in things),
        tuple(i / LISTED for i in range(LISTED)),
        f"List everything that was sold at the market of {place}.",
        tuple((thing,) for thing in things),
    )


#: Questions whose evidence stands in several places, beside one that needs a single fact.
FAR: dict[str, Callable[[random.Random], Task]] = {
    "one fact": lambda draw: one_fact(draw, "ingredient"),
    "two hops, side by side": lambda draw: two_hops(draw, 0.0),
    "two hops, far apart": lambda draw: two_hops(draw, 0.5),
    "four facts": four_facts,
    "number": number,
    "order": order,
}


def haystack_of(name: str) -> str:
    return HAYSTACKS[name]() if name in HAYSTACKS else folder_text(name)


def asked(
    tokenizer: Any, task: Task, length: int, depth: float, *, seed: int, haystack: str, question: str | None = None
) -> Asked:
    """The task's facts in a text of the named kind, the first of them at ``depth``, the others further on and round the
    end to its beginning. ``question`` asks something else in its place. The text is the seed's."""
    depths = [min(depth + offset, 1.0) if len(task.offsets) == 1 else (depth + offset) % 1 for offset in task.offsets]
    if task.wrong:
        depths.sort()  # an order that is asked for is the text's
    draw = random.Random(f"text:{seed}:{length}:{depth:.6f}")
    text = haystack_of(haystack)
    said = task.question if question is None else question
    made = hide(tokenizer, task.sentences, said, length, depths, draw=draw, haystack=text)
    return Asked(made.input_ids, made.at, made.tail, task)


def moved_to(prompt: Asked, start: int) -> Asked:
    """The same prompt with its one hidden sentence at another place."""
    (places,) = prompt.at
    sentence = [prompt.ids[place] for place in places]
    rest = prompt.ids[: places[0]] + prompt.ids[places[-1] + 1 :]
    ids = rest[:start] + sentence + rest[start:]
    return Asked(ids, [list(range(start, start + len(sentence)))], prompt.tail, prompt.task)


def permuted(ids: Sequence[int], starts: Sequence[int], size: int, order: Sequence[int]) -> tuple[list[int], list[int]]:
    """A prompt whose pieces of ``size`` tokens from each of ``starts`` stand in another order, and for every position
    of the new prompt its position in the old one. What lies behind the last piece stays."""
    places = [starts[piece] + i for piece in order for i in range(size)]
    places += range(starts[-1] + size, len(ids))
    return [ids[place] for place in places], places
