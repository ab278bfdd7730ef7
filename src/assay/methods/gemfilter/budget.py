"""How many tokens stay of a prompt: a number of them, or a share."""

from __future__ import annotations

from collections.abc import Sequence


def check_keep(keep: float) -> None:
    """Refuse what is neither a number of tokens nor a share of a prompt."""
    if isinstance(keep, float) and not 0 < keep < 1:
        raise ValueError(f"keep must be an integer, or a share of the prompt between 0 and 1, not {keep}")
    if keep <= 0:
        raise ValueError(f"keep must be at least 1, not {keep}")


def budget_of(keep: float, length: int, padding: Sequence[int] | None = None) -> int:
    """Tokens that stay of a prompt of ``length``, at least one. A batch whose prompts stand behind ``padding`` has one
    length and several shares: it takes a number only."""
    if keep >= 1:
        return min(int(keep), length)
    if padding is not None:
        raise ValueError("prompts of several lengths have several shares: give keep as a number of tokens")
    return min(max(1, round(keep * length)), length)
