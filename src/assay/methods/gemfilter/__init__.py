"""GemFilter: long-context acceleration for Hugging Face decoders, with its baselines and the choice of its layer."""

from assay.methods.gemfilter.baselines import H2O, FullAttention, OneRun, SnapKV, share_prefill
from assay.methods.gemfilter.filter import GemFilter, Selection
from assay.methods.gemfilter.layers import LayerChoice, LayerScan, choose_filter_layer, layer_scan
from assay.methods.gemfilter.longbench_runner import TaskScore, evaluate_longbench
from assay.methods.gemfilter.models import load_filter
from assay.methods.gemfilter.needles import Needle, NeedlePrompt, needle_grid, needle_prompt, rouge1
from assay.methods.gemfilter.profiling import Profile, profile

__all__ = [
    "H2O",
    "FullAttention",
    "GemFilter",
    "LayerChoice",
    "LayerScan",
    "Needle",
    "NeedlePrompt",
    "OneRun",
    "Profile",
    "Selection",
    "SnapKV",
    "TaskScore",
    "choose_filter_layer",
    "evaluate_longbench",
    "layer_scan",
    "load_filter",
    "needle_grid",
    "needle_prompt",
    "profile",
    "rouge1",
    "share_prefill",
]
