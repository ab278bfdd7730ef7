"""GemFilter: long-context acceleration for Hugging Face decoders, with its baselines and the choice of its layer."""

from assay.methods.gemfilter.baselines import H2O, FullAttention, OneRun, SnapKV
from assay.methods.gemfilter.choice import LayerChoice, choose_filter_layer
from assay.methods.gemfilter.compression import share_prefill
from assay.methods.gemfilter.filter import GemFilter
from assay.methods.gemfilter.index import FilterIndex, FolderStore
from assay.methods.gemfilter.layers import LayerScan, layer_scan
from assay.methods.gemfilter.models import load_filter
from assay.methods.gemfilter.selection import Selection

__all__ = [
    "H2O",
    "FilterIndex",
    "FolderStore",
    "FullAttention",
    "GemFilter",
    "LayerChoice",
    "LayerScan",
    "OneRun",
    "Selection",
    "SnapKV",
    "choose_filter_layer",
    "layer_scan",
    "load_filter",
    "share_prefill",
]
