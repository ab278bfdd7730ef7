"""Probes: what did a network learn? Names are imported when they are first asked for."""

from typing import TYPE_CHECKING

from assay._lazy import offer

if TYPE_CHECKING:
    from .alignment_tracker import AlignmentTracker
    from .attention_fourier import attention_fourier
    from .attention_scan import scan_attention
    from .attention_span import SpanPrompt, attention_spans
    from .cka import CkaSums, linear_cka
    from .cka_map import cka_map
    from .cones import p_hat
    from .detectors import detector_counts, group_errors, response_ratio, responses, singleton_detectors
    from .direction_tracker import DirectionTracker
    from .directions import cluster_statistics, cosines, direction_map, direction_maps, gradient_direction_score
    from .distractors import distracted_prompts
    from .fourier import fourier_probe, logit_fourier
    from .gd_probe import gd_probe
    from .gradient_consistency import GradientConsistency, chunk_cosines
    from .gradient_features import gradient_features
    from .grokking import grokking_delay
    from .head_tail import head_tail_probe, score_head_tail
    from .heads import fit_head, ridge_head
    from .intervals import mean_interval
    from .label_efficiency import label_efficiency
    from .linear_probe import LinearProbe
    from .representation import RepresentationTracker, representation_probe, snapshot
    from .score_spectrum import score_spectrum, token_scores
    from .specialisation import (
        aligned_counts,
        alignments,
        lucky_neurons,
        mixed_neurons,
        smallest_neurons,
        specialisation,
    )
    from .stable_rank import rank_report, stable_rank

__all__ = [
    "AlignmentTracker",
    "CkaSums",
    "DirectionTracker",
    "GradientConsistency",
    "LinearProbe",
    "RepresentationTracker",
    "SpanPrompt",
    "aligned_counts",
    "alignments",
    "attention_fourier",
    "attention_spans",
    "chunk_cosines",
    "cka_map",
    "cluster_statistics",
    "cosines",
    "detector_counts",
    "direction_map",
    "direction_maps",
    "distracted_prompts",
    "fit_head",
    "fourier_probe",
    "gd_probe",
    "gradient_direction_score",
    "gradient_features",
    "grokking_delay",
    "group_errors",
    "head_tail_probe",
    "label_efficiency",
    "linear_cka",
    "logit_fourier",
    "lucky_neurons",
    "mean_interval",
    "mixed_neurons",
    "p_hat",
    "rank_report",
    "representation_probe",
    "response_ratio",
    "responses",
    "ridge_head",
    "scan_attention",
    "score_head_tail",
    "score_spectrum",
    "singleton_detectors",
    "smallest_neurons",
    "snapshot",
    "specialisation",
    "stable_rank",
    "token_scores",
]

offer(__name__)
