"""Needle prompts that choose a filter layer, and others that judge the choice: different texts, different wordings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.evaluation.needle_kinds import NEEDLES, Needle
from assay.evaluation.needles import NeedlePrompt, needle_prompt
from assay.evaluation.prose import halves, haystacks
from assay.methods._checks import whole

#: Kinds of needles that choose, and kinds that judge.
CHOOSING = ("ingredient", "passcode", "activity")
JUDGING = ("meeting", "owner", "price")


@dataclass(frozen=True)
class Calibration:
    """Prompts that choose, and prompts that have no part in the choice and say how far it can be trusted."""

    choosing: list[NeedlePrompt]
    judging: list[NeedlePrompt]


def split(prompts: Iterable[NeedlePrompt]) -> Calibration:
    """A user's own prompts: every second one judges, so that both sides see all depths of an ordered grid."""
    own = list(prompts)
    whole("the number of prompts", len(own), 4)  # half of them choose, half judge, and an interval needs two
    check_prompts(own)
    return Calibration(own[0::2], own[1::2])


def check_prompts(prompts: Sequence[Any]) -> None:
    """Refuse what is no needle prompt, and a prompt without its needle."""
    for number, one in enumerate(prompts):
        if not isinstance(one, NeedlePrompt):
            raise ValueError(
                "prompts of your own are needle prompts, as assay.evaluation.needle_prompt makes them, and not "
                f"{type(one).__name__}"
            )
        length = len(one.input_ids)
        if not one.needle_at or not 0 <= min(one.needle_at) <= max(one.needle_at) < length:
            raise ValueError(
                f"prompt {number} hides no needle: needle_at must hold positions among its {length} tokens"
            )


def listed(what: str, given: Any, alone: type | tuple[type, ...]) -> list[Any]:
    """What may be several: one alone stands for a list of one, and none is refused."""
    found = [given] if isinstance(given, alone) else list(given)
    if not found:
        raise ValueError(f"a layer is measured with at least one {what}")
    return found


def calibration(
    tokenizer: Any,
    length: int,
    prompts: int,
    *,
    texts: Mapping[str, str] | None = None,
    needles: str | Needle | Sequence[str | Needle] | None = None,
    seed: int = 0,
) -> Calibration:
    """Half of ``prompts`` choose, half judge. Every text is cut in two, so that the two sides share no sentence; of the
    needles, the first half of your own or ``CHOOSING`` choose, and the others judge. A single needle, or kind of
    needles, does both. Texts, needles and depths go round, each at its own pace."""
    whole("prompts", prompts, 4)
    if texts is not None and not isinstance(texts, Mapping):
        raise ValueError(f"texts are given by their names, as in {{'minutes': text}}, not as {type(texts).__name__}")
    cut = {name: halves(text) for name, text in (haystacks() if texts is None else texts).items()}
    if not cut:
        raise ValueError("a layer is measured on at least one text")
    if needles is None:
        sides: tuple[Sequence[str | Needle], ...] = CHOOSING, JUDGING
    else:
        own = listed("needle", needles, (str, Needle))
        middle = (len(own) + 1) // 2
        sides = own[:middle], own[middle:] or own[:middle]
    made: list[list[NeedlePrompt]] = []
    for side, (kinds, count) in enumerate(zip(sides, ((prompts + 1) // 2, prompts // 2), strict=True)):
        made.append([])
        for number in range(count):
            name = list(cut)[number % len(cut)]
            needle = kinds[(number // len(cut) + number % len(cut)) % len(kinds)]
            # Depths in an order that spreads the first few prompts as well as all of them.
            depth = (number * 0.618034 + 0.5) % 1
            one = needle_prompt(
                tokenizer,
                length,
                depth,
                seed=seed * 1000 + 2 * number + side,
                needle=needle,
                haystack=cut[name][side],
            )
            what = needle if isinstance(needle, str) and needle in NEEDLES else f"'{one.needle.sentence}'"
            made[side].append(replace(one, kind=f"{what} in {name}"))
    return Calibration(made[0], made[1])
