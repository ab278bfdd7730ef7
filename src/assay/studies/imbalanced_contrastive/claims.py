"""What claims of several parts ask in the same way: the tolerance of identities and the size of the source's model."""

from __future__ import annotations

EXACT = 1e-10
SOURCE_MODEL = {"five frequent and four rare features": lambda p: (p.majority, p.minority) == (5, 4)}
