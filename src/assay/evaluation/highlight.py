"""A page on which a person sees which part of a prompt was kept."""

from __future__ import annotations

from html import escape
from typing import Any

from assay.evaluation.contract import Kept

_STYLE = """
body { font: 16px/1.6 system-ui, sans-serif; color: #1c2430; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } .facts { color: #4d5866; } .answer { background: #e9f2fa; padding: .6rem 1rem; }
.prompt { white-space: pre-wrap; overflow-wrap: anywhere; color: #6b7683; }
mark { background: #ffe08a; color: #1c2430; } .cut { color: #4d5866; font-style: italic; }
"""
# Longer stretches without a kept token are shortened to their ends.
_CONTEXT = 80


def highlighted(
    tokenizer: Any,
    ids: list[int],
    selection: Kept,
    *,
    answer: str = "",
    facts: str = "",
    title: str = "What was kept",
) -> str:
    """An HTML page with the kept tokens marked; long stretches that were dropped are shortened."""
    kept = set(selection.kept())
    parts = []
    for start, stop, marked in _stretches(len(ids), kept):
        if marked:
            parts.append(f"<mark>{escape(tokenizer.decode(ids[start:stop]))}</mark>")
        elif stop - start <= 2 * _CONTEXT:
            parts.append(escape(tokenizer.decode(ids[start:stop])))
        else:
            left, right = tokenizer.decode(ids[start : start + _CONTEXT]), tokenizer.decode(ids[stop - _CONTEXT : stop])
            hidden = stop - start - 2 * _CONTEXT
            parts.append(f'{escape(left)}<span class="cut"> … {hidden:,} tokens dropped … </span>{escape(right)}')
    said = f'<p class="answer">{escape(answer)}</p>' if answer else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>'
        f"{escape(title)}</title><style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f'<p class="facts">{escape(facts)}</p>{said}<div class="prompt">{"".join(parts)}</div></body></html>\n'
    )


def _stretches(length: int, kept: set[int]) -> list[tuple[int, int, bool]]:
    """The prompt cut into runs of kept and dropped positions."""
    found: list[tuple[int, int, bool]] = []
    for i in range(length):
        if found and found[-1][2] is (i in kept):
            found[-1] = (found[-1][0], i + 1, found[-1][2])
        else:
            found.append((i, i + 1, i in kept))
    return found
