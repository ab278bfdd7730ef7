"""What a user hands over, checked where it comes in: text, a flag or NaN fails at once and by name, not later as an
error of the arithmetic, or as no error at all (NaN passes every comparison that asks for what is wrong).

A dataclass of settings says its limits beside its fields and is checked in one line:

    rate: float = field(default=0.1, metadata=limits(above=0))

    def __post_init__(self) -> None:
        check_fields(self)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from torch import Tensor


@dataclass(frozen=True)
class _Limits:
    """An interval; ``infinite`` allows ±∞."""

    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None
    infinite: bool = False

    def broken(self, value: Any) -> str | None:
        """What the value must be and is not."""
        if not self.infinite and math.isinf(value):
            return "be finite"
        low = self.above if self.least is None else self.least
        high = self.below if self.most is None else self.most
        inside = (
            (self.above is None or value > self.above)
            and (self.least is None or value >= self.least)
            and (self.below is None or value < self.below)
            and (self.most is None or value <= self.most)
        )
        if inside:
            return None
        if low is None:
            return f"be at most {high:g}" if self.below is None else f"be below {high:g}"
        if high is None:
            return f"be at least {low:g}" if self.above is None else f"be above {low:g}" if low else "be positive"
        return f"lie in {'(' if self.least is None else '['}{low:g}, {high:g}{')' if self.most is None else ']'}"


def limits(**given: Any) -> dict[str, Any]:
    """Metadata of a field whose numbers lie ``above`` or at ``least`` and ``below`` or at ``most`` these;
    ``infinite=True`` allows ±∞."""
    return {"limits": _Limits(**given)}


def number(name: str, value: Any, **given: Any) -> None:
    """Refuse what is not a finite number within the limits. NumPy's numbers and tensors of one element, such as a
    temperature that is learned, are numbers too."""
    tensor = isinstance(value, (Tensor, np.ndarray)) and math.prod(value.shape) == 1
    inside = value.item() if tensor else value
    none = isinstance(inside, bool) or not isinstance(inside, Real) or math.isnan(inside)
    if wrong := "be a number" if none else _Limits(**given).broken(inside):
        raise ValueError(f"{name} must {wrong}, not {value!r}")


def whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """``value`` as Python's integer, which NumPy's become; what is none, or lies outside, is refused."""
    none = isinstance(value, bool) or not isinstance(value, Integral)
    if wrong := "be an integer" if none else _Limits(least=least, most=most).broken(value):
        raise ValueError(f"{name} must {wrong}, not {value!r}")
    return int(value)


def seed_list(seeds: Any, seed: Any = None) -> tuple[int, ...]:
    """Different integers. A number n of seeds stands for 0 to n − 1; ``seed`` is one alone, in place of ``seeds``."""
    if (seeds is None) == (seed is None):
        raise ValueError("give seed= for one, or seeds= for several: a number of them, or different integers")
    if seeds is None:
        return (whole("seed", seed, 0),)
    several = isinstance(seeds, Iterable) and not isinstance(seeds, str)
    found = tuple(whole("each of seeds", each, 0) for each in (seeds if several else range(whole("seeds", seeds, 1))))
    if not found or len(set(found)) != len(found):
        raise ValueError(f"seeds must be a number of them, or different integers, not {seeds!r}")
    return found


def one_of(name: str, value: Any, allowed: Iterable[Any], otherwise: str = "") -> None:
    """Refuse a word that is none of those that are allowed; ``otherwise`` is what may stand in place of a word."""
    words = list(allowed)
    if value not in words:
        raise ValueError(f"{name} must be one of {', '.join(map(str, words))}{otherwise}, not {value!r}")


def all_finite(what: str, *values: Tensor) -> None:
    """Refuse tensors with an entry that is infinite or NaN."""
    if count := sum(int((~value.isfinite()).sum()) for value in values):
        raise ValueError(f"{what} must be finite, and {count} of their entries are not")


def check_fields(settings: Any) -> None:
    """Check every field of a dataclass by its type and its limits: numbers are numbers, integers Python's, and a word
    is one of its ``Literal``. None, flags and what is neither number nor word are left alone."""
    kind: Any = type(settings)
    for name, (kinds, words, within) in _rules(kind).items():
        value = getattr(settings, name)
        if (value is None and NoneType in kinds) or (isinstance(value, str) and value in words):
            continue
        if words and isinstance(value, str):
            one_of(name, value, words, " or an integer" if int in kinds else "")
        elif float in kinds and isinstance(value, float):
            number(name, value, **vars(within))
        elif int in kinds:
            object.__setattr__(settings, name, whole(name, value, within.least, within.most))  # type: ignore[arg-type]
        elif float in kinds:
            number(name, value, **vars(within))
        elif words:
            one_of(name, value, words)


@cache
def _rules(kind: Any) -> dict[str, tuple[tuple[Any, ...], tuple[Any, ...], _Limits]]:
    """By field: the types it may have, the words it may be, and its limits."""
    hints = get_type_hints(kind)
    rules = {}
    for each in fields(kind):
        hint = hints[each.name]
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        words = tuple(word for member in kinds if get_origin(member) is Literal for word in get_args(member))
        rules[each.name] = (kinds, words, each.metadata.get("limits", _Limits()))
    return rules
