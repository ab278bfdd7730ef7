"""What operations, positions and index sets must be on any model of the class, counted by hand."""

from __future__ import annotations

from assay.methods.gemfilter.cost import Shape


def dense_surplus(shape: Shape, n: int, layers: int) -> int:
    """Operations on the masked half of the square, which kernels without a causal shortcut do as well."""
    return layers * 2 * shape.heads * shape.head_dim * n * (n - 1)


def position_range(method: str, n: int, keep: int, new: int) -> int:
    """The largest position that decoding reaches: a second run counts from 0, a compressed cache goes on at n."""
    return (min(keep, n) if method == "gemfilter" else n) + new - 2


def index_sets(method: str, shape: Shape) -> int:
    """One for GemFilter and its one-run; one per layer and key-value head for the others. (The text counts query heads,
    since its code repeats the keys.)"""
    return 1 if method in ("gemfilter", "one-run") else shape.layers * shape.kv_heads
