"""What the cost model expects of the measured ratios, for the small model whose prefill is timed."""

from __future__ import annotations

from assay.methods.gemfilter.cost import Shape, cost_model

LAYERS, FILTER_LAYER, VOCABULARY = 8, 3, 512
HEAD_DIM, GROUP = 32, 4


def shape(width: int) -> Shape:
    """A decoder of eight layers with grouped heads, as wide as asked for; its filter layer is the fourth."""
    heads = width // HEAD_DIM
    return Shape(LAYERS, width, 3 * width, heads, heads // GROUP, HEAD_DIM, VOCABULARY)


def prefill_share(made: Shape, n: int) -> float:
    """Operations of GemFilter's pass over a prompt of ``n`` tokens over those of a full prefill: about r / m, which is
    what the times tend to by the case study of Section 9.3.2."""
    ours, full = (cost_model(method, made, n=n, layer=FILTER_LAYER) for method in ("gemfilter", "full"))
    return ours.prefill_flops / full.prefill_flops


def layer_cache_bytes(made: Shape, n: int, item: int) -> int:
    """Keys and values of one layer for ``n`` tokens."""
    return 2 * made.kv_heads * made.head_dim * n * item
