"""Needle prompts: one fact hidden in a long text, at a known place, and a question about it."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from assay.evaluation.needle_kinds import NEEDLES, Needle
from assay.evaluation.prose import manual_text

_INTRODUCTION = "Read this long text and answer the question at its end from what it says.\n\n"
_CONTEXT = "\u2400context\u2400"
_LEAST_ROOM = 16


@dataclass(frozen=True)
class NeedlePrompt:
    """A prompt as token ids, with the positions of the needle's tokens and of its answer's. ``kind`` says for tables
    what sort of needle and text it is made of."""

    input_ids: list[int]
    needle: Needle
    needle_at: list[int]
    answer_at: list[int]
    depth: float
    chat: bool
    kind: str = ""

    def right(self, response: str) -> bool:
        """Whether a response gives the answer, whatever stands around it."""
        return self.needle.answer.lower() in response.lower()


def needle_prompt(
    tokenizer: Any,
    length: int,
    depth: float,
    *,
    seed: int = 0,
    needle: Needle | str = "ingredient",
    haystack: str | None = None,
    chat: bool = True,
) -> NeedlePrompt:
    """A prompt of exactly ``length`` tokens with a needle at ``depth`` (0 the beginning, 1 the end) of its text.

    The needle goes before the sentence that begins nearest in front of that place. ``seed`` draws the needle and where
    in the haystack the text begins; ``needle`` is one of your own, or the name of a kind. ``chat`` wraps all of it in
    the tokenizer's chat template, where there is one.
    """
    draw = random.Random(f"needle:{seed}:{length}:{depth:.6f}")
    kind = needle if isinstance(needle, str) else needle.question
    if isinstance(needle, str):
        if needle not in NEEDLES:
            raise ValueError(f"needles are {', '.join(NEEDLES)}, not {needle!r}")
        needle = NEEDLES[needle](draw)
    hidden = hide(
        tokenizer, [needle.sentence], needle.question, length, [depth], draw=draw, haystack=haystack, chat=chat
    )
    _, answer = _sentence_tokens(tokenizer, needle.sentence, needle.answer)
    places = hidden.at[0]
    return NeedlePrompt(hidden.input_ids, needle, places, [places[i] for i in answer], depth, hidden.chat, kind)


@dataclass(frozen=True)
class Hidden:
    """A prompt as token ids, and the positions of the tokens of every sentence that was hidden in it, each with the
    line breaks around it. ``tail`` are the tokens behind the text: the question and the template."""

    input_ids: list[int]
    at: list[list[int]]
    chat: bool
    tail: int


def hide(
    tokenizer: Any,
    sentences: Sequence[str],
    question: str,
    length: int,
    depths: Sequence[float],
    *,
    draw: random.Random,
    haystack: str | None = None,
    chat: bool = True,
) -> Hidden:
    """A prompt of exactly ``length`` tokens with every sentence at its depth (0 the beginning, 1 the end) of the text.

    A sentence goes before the one that begins nearest in front of its place; of two at one place the first comes
    first. ``draw`` says where in the haystack the text begins."""
    for depth in depths:
        if not 0 <= depth <= 1:
            raise ValueError(f"depth must lie between 0 and 1, not {depth}")
    chat = chat and getattr(tokenizer, "chat_template", None) is not None
    before, after = _frame(tokenizer, question, chat)
    hidden = [_sentence_tokens(tokenizer, sentence)[0] for sentence in sentences]
    room = length - len(before) - len(after) - sum(map(len, hidden))
    if room < _LEAST_ROOM:
        least = length - room + _LEAST_ROOM
        raise ValueError(f"a needle prompt of {length} tokens leaves no room for a haystack: take at least {least}")
    text = _haystack_tokens(tokenizer, haystack or manual_text())
    if not text:
        raise ValueError("the haystack is empty")
    # Prompts longer than the haystack go through it again and again; the needle stays the only one of its kind.
    text = text * (room // len(text) + 1)
    start = _sentence_start(tokenizer, text, draw.randrange(len(text) - room + 1))
    context = list(text[start : start + room])
    places = [room if depth == 1 else _sentence_start(tokenizer, context, int(room * depth)) for depth in depths]
    ids, at, done = list(before), [[0]] * len(sentences), 0
    for place, number in sorted(zip(places, range(len(sentences)), strict=True)):
        ids += context[done:place]
        at[number] = list(range(len(ids), len(ids) + len(hidden[number])))
        ids += hidden[number]
        done = place
    return Hidden([*ids, *context[done:], *after], at, chat, len(after))


def needle_grid(
    tokenizer: Any, lengths: Sequence[int], depths: Sequence[float], count: int, *, seed: int = 0, **options: Any
) -> Iterator[NeedlePrompt]:
    """``count`` prompts for every length and depth."""
    for length in lengths:
        for depth in depths:
            for number in range(count):
                yield needle_prompt(tokenizer, length, depth, seed=seed * 1000 + number, **options)


def _frame(tokenizer: Any, question: str, chat: bool) -> tuple[list[int], list[int]]:
    """The tokens before and behind the context."""
    content = f"{_INTRODUCTION}{_CONTEXT}\n\nQuestion: {question}"
    if chat:
        turns = [{"role": "user", "content": content}]
        whole = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    else:
        whole = f"{content}\nAnswer:"
    before, after = whole.split(_CONTEXT)
    ids = tokenizer(before, add_special_tokens=not chat)["input_ids"]
    return list(ids), list(tokenizer(after, add_special_tokens=False)["input_ids"])


def _sentence_tokens(tokenizer: Any, sentence: str, answer: str = "") -> tuple[list[int], list[int]]:
    """A sentence's tokens, a line of its own, and which of them hold the answer.

    Found by what the tokens up to each position decode to: a token on its own may decode without its blank."""
    ids = list(tokenizer(f"\n{sentence}\n", add_special_tokens=False)["input_ids"])
    if not answer:
        return ids, []
    ends = [len(tokenizer.decode(ids[: i + 1])) for i in range(len(ids))]
    first = tokenizer.decode(ids).find(answer)
    last = first + len(answer)
    held = [i for i, end in enumerate(ends) if end > first and (ends[i - 1] if i else 0) < last]
    if first < 0 or not held:
        raise ValueError(f"the tokenizer does not give back the answer {answer!r} of the needle")
    return ids, held


# Tokenizing a long haystack takes seconds, and every prompt of a grid needs it.
_tokenized: WeakKeyDictionary[Any, dict[str, tuple[int, ...]]] = WeakKeyDictionary()


def _haystack_tokens(tokenizer: Any, text: str) -> tuple[int, ...]:
    known = _tokenized.setdefault(tokenizer, {})
    if text not in known:
        known[text] = tuple(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
    return known[text]


def _sentence_start(tokenizer: Any, ids: Sequence[int], place: int) -> int:
    """The last position at or before ``place`` behind a full stop, or 0; in a text without any the place itself."""
    for position in range(place, 0, -1):
        if _ends_sentence(tokenizer, ids[position - 1]):
            return position
    return 0 if any(_ends_sentence(tokenizer, token) for token in ids[place:]) else place


def _ends_sentence(tokenizer: Any, token: int) -> bool:
    return bool(tokenizer.decode([token]).rstrip().endswith("."))


def rouge1(reference: str, response: str) -> float:
    """ROUGE-1 F: overlap of words, counted with multiplicity, without case and punctuation."""
    wanted, given = (Counter(re.findall(r"[a-z0-9]+", text.lower())) for text in (reference, response))
    common = sum((wanted & given).values())
    return 2 * common / (sum(wanted.values()) + sum(given.values())) if common else 0.0
