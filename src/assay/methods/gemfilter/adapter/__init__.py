"""Every private touch of transformers, in one place: its decoders, its attention interface and its caches.

Nothing is patched for good. Hooks, registry entries and replaced forwards live inside context managers, and are gone
when these end, however they end. Made for transformers 5.4 and later; all families are tested on small random models.
"""

from assay.methods.gemfilter.adapter.cache import (
    Attended,
    after_attention,
    compressible,
    side_by_side,
    trimmed_cache,
    trimmed_copy,
    untouched_copy,
)
from assay.methods.gemfilter.adapter.continuing import State, can_continue, read_state, read_tail
from assay.methods.gemfilter.adapter.decoder import (
    attention_at,
    attentions_of,
    check_layer,
    check_usable,
    layers_of,
    positions_of,
    sliding_window,
)
from assay.methods.gemfilter.adapter.decoding import added_by_the_caller, refuse_a_streamer, turned_off
from assay.methods.gemfilter.adapter.memory import sequence_bytes
from assay.methods.gemfilter.adapter.projecting import Projected
from assay.methods.gemfilter.adapter.reading import read_layers

__all__ = [
    "Attended",
    "Projected",
    "State",
    "added_by_the_caller",
    "after_attention",
    "attention_at",
    "attentions_of",
    "can_continue",
    "check_layer",
    "check_usable",
    "compressible",
    "layers_of",
    "positions_of",
    "read_layers",
    "read_state",
    "read_tail",
    "refuse_a_streamer",
    "sequence_bytes",
    "side_by_side",
    "sliding_window",
    "trimmed_cache",
    "trimmed_copy",
    "turned_off",
    "untouched_copy",
]
