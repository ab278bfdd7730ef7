"""How numbers, spans of time and names are written in a report."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from typing import Any

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_PLAIN = (1e-3, 1e6)  # magnitudes that are written without a power of ten


def number(value: float, digits: int = 4) -> str:
    """``value`` with ``digits`` significant digits and a true minus sign: 0.9931, −12.5, 3.2×10⁻⁷."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0 or _PLAIN[0] <= abs(value) < _PLAIN[1]:
        return _minus(_trimmed(f"{value:.{max(0, digits - 1 - _order(value))}f}"))
    mantissa, _, power = f"{value:.{max(0, digits - 2)}e}".partition("e")
    factor = "" if (factor := _trimmed(mantissa)) == "1" else f"{factor}×"
    return _minus(f"{factor}10{str(int(power)).translate(_SUPERSCRIPTS)}")


def measured(estimate: float, low: float, high: float) -> str:
    """An estimate with its interval: equal decimals, two of them in the width, so that the ends can be told apart."""
    numbers, width = (estimate, low, high), high - low
    largest = max(abs(item) for item in numbers)
    if not all(map(math.isfinite, numbers)) or width <= 0 or not _PLAIN[0] <= largest < _PLAIN[1]:
        texts = [number(item) for item in numbers]
    else:
        decimals = min(8, max(0, 1 - _order(width)))
        texts = [_fixed(item, decimals) for item in numbers]
        if len(set(texts)) == 1:  # alike to eight decimals, of which none says anything
            texts = [number(item) for item in numbers]
    return f"{texts[0]}  [{texts[1]}, {texts[2]}]"


def column(values: Sequence[Any], *, as_printed: bool = False) -> list[str]:
    """The cells of one table column. Floats share their number of decimals, so that they can be compared;
    ``as_printed`` leaves each with the digits it came with, since a padded zero would claim precision."""
    if as_printed:
        return [number(item, 12) if isinstance(item, float) else _cell(item, None) for item in values]
    decimals = _decimals([item for item in values if isinstance(item, float) and math.isfinite(item)])
    return [_cell(item, decimals) for item in values]


def value(thing: Any) -> str:
    """A parameter's value, a noted choice or a grid point in words."""
    if isinstance(thing, dict):
        return ", ".join(f"{key} = {value(item)}" for key, item in thing.items())
    if isinstance(thing, (list, tuple)):
        return ", ".join(value(item) for item in thing)
    return _cell(thing, None)


def duration(seconds: float) -> str:
    if seconds < 0.1:
        return "under 0.1 s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def date(iso: str) -> str:
    moment = datetime.datetime.fromisoformat(iso).astimezone(datetime.UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def slug(name: str) -> str:
    """A name that is safe as a file name and as the address of a part of a page."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "unnamed"


def title(name: str) -> str:
    """``test-accuracy`` as a heading: Test accuracy."""
    words = re.sub(r"[-_]+", " ", name).strip()
    return words[:1].upper() + words[1:]


def _cell(thing: Any, decimals: int | None) -> str:
    if thing is None:
        return ""
    if isinstance(thing, bool):
        return "yes" if thing else "no"
    if isinstance(thing, int):
        return _minus(str(thing))
    if isinstance(thing, float):
        if decimals is None or not math.isfinite(thing):
            return number(thing)
        return _fixed(thing, decimals)
    return str(thing)


def _decimals(floats: Sequence[float]) -> int | None:
    """None where one number of decimals would hide small values or drag zeros behind large ones."""
    sizes = [abs(item) for item in floats if item]
    if not sizes or not _PLAIN[0] <= max(sizes) < _PLAIN[1] or min(sizes) < _PLAIN[0]:
        return None
    order = _order(max(sizes))
    decimals = 3 - order if order < 0 else max(1, 4 - order)
    # Zeros that the whole column would end in say nothing (0.1000, 0.2000).
    while decimals and all(f"{item:.{decimals}f}".endswith("0") for item in floats):
        decimals -= 1
    return decimals


def _fixed(value: float, decimals: int) -> str:
    text = f"{value:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else _minus(text)


def _order(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _minus(text: str) -> str:
    return text.replace("-", "−")
