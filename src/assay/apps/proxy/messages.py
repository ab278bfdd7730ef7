"""The texts of a request: which must stay as they are, which may be shortened, and what is asked."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.apps.proxy.settings import Settings

#: Tokens of a text and the character that each of them begins at.
Offsets = Callable[[str], list[int]]
_SHORT = 32


@dataclass
class Slot:
    """One text of a request, and how to put another in its place."""

    text: str
    put: Callable[[str], None]
    role: str
    begin: int = 0
    end: int = 0


@dataclass
class Request:
    """A copy of a request's body with its texts. ``long`` are the stretches that may be shortened."""

    body: dict[str, Any]
    question: str
    long: list[Slot] = field(default_factory=list)
    tokens: int = 0


def texts_of(body: Mapping[str, Any], chat: bool) -> tuple[dict[str, Any], list[Slot]] | None:
    """A copy of the body and its texts in their order; None where it has none, or is not what it should be."""
    made = copy.deepcopy(dict(body))
    slots: list[Slot] = []
    if not chat:
        prompt = made.get("prompt")
        if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
            slots.append(Slot(prompt[0], _setter(prompt, 0), "prompt"))
        elif isinstance(prompt, str):
            slots.append(Slot(prompt, _setter(made, "prompt"), "prompt"))
        return (made, slots) if slots else None
    messages = made.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        return None
    for message in messages:
        role, content = str(message.get("role", "")), message.get("content")
        if isinstance(content, str):
            slots.append(Slot(content, _setter(message, "content"), role))
        elif isinstance(content, list):
            parts = [part for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
            slots += [Slot(part["text"], _setter(part, "text"), role) for part in parts]
    return (made, slots) if slots else None


def _setter(place: Any, key: Any) -> Callable[[str], None]:
    def put(text: str) -> None:
        place[key] = text

    return put


def request_of(
    body: Mapping[str, Any], chat: bool, settings: Settings, offsets: Offsets, whole_turn: int | None = None
) -> Request | None:
    """What may be shortened: everything but system messages and the last user turn. Of a last turn or a prompt of more
    than ``whole_turn`` tokens (the settings' unless given) the beginning and the end stay, and what is between them may
    be shortened. None for no request."""
    found = texts_of(body, chat)
    if found is None:
        return None
    made, slots = found
    whole = settings.whole_turn if whole_turn is None else whole_turn
    places = [offsets(slot.text) for slot in slots]
    asking = [number for number, slot in enumerate(slots) if slot.role in ("user", "prompt")]
    last = asking[-1] if asking else None
    request = Request(made, "", tokens=sum(map(len, places)))
    for number, (slot, begins) in enumerate(zip(slots, places, strict=True)):
        slot.begin, slot.end = 0, len(slot.text)
        if number == last:
            request.question = slot.text
            if len(begins) > min(whole, 2 * settings.question):
                # Every chunk is read with the question behind it: of a turn that is long and whole it is the end, too.
                slot.end = _sentence(slot.text, begins[-settings.question])
                request.question = slot.text[slot.end :]
            if len(begins) <= whole:
                continue
            slot.begin = begins[settings.before]
            if not slot.text[slot.begin : slot.end].strip():
                continue
        elif slot.role in ("system", "developer") or len(begins) <= _SHORT:
            continue
        request.long.append(slot)
    return request


def _sentence(text: str, place: int) -> int:
    """The beginning of a line or sentence not far before a place, so that a question begins at its beginning."""
    near = text[max(0, place - 300) : place]
    for mark in ("\n\n", "\n", ". ", "? "):
        if (found := near.rfind(mark)) >= 0:
            return place - len(near) + found + len(mark)
    return place
