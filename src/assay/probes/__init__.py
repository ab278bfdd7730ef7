"""Probes: what did a network learn? Names are imported when they are first asked for."""

from typing import TYPE_CHECKING

from assay._lazy import offer

if TYPE_CHECKING:
    from .attention_fourier import attention_fourier, score_spectrum, token_scores
    from .attention_span import SpanPrompt, attention_spans
    from .detectors import detector_counts, group_errors, response_ratio, responses, singleton_detectors
    from .directions import cluster_statistics, cosines, direction_map, direction_maps, gradient_direction_score
    from .distractors import distracted_prompts
    from .fourier import fourier_probe, logit_fourier
    from .gd_probe import gd_probe
    from .gradient_consistency import GradientConsistency, chunk_cosines
    from .grokking import grokking_delay
    from .head_tail import head_tail_probe, score_head_tail
    from .representation import fit_head, representation_probe, snapshot
    from .specialisation import (
        aligned_counts,
        alignments,
        lucky_neurons,
        mixed_neurons,
        smallest_neurons,
        specialisation,
    )

__all__ = [
    "GradientConsistency",
    "SpanPrompt",
    "aligned_counts",
    "alignments",
    "attention_fourier",
    "attention_spans",
    "chunk_cosines",
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
    "grokking_delay",
    "group_errors",
    "head_tail_probe",
    "logit_fourier",
    "lucky_neurons",
    "mixed_neurons",
    "representation_probe",
    "response_ratio",
    "responses",
    "score_head_tail",
    "score_spectrum",
    "singleton_detectors",
    "smallest_neurons",
    "snapshot",
    "specialisation",
    "token_scores",
]

offer(__name__)
