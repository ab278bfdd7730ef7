"""Ensembles over seeds and what trains them. Names are imported when they are first asked for."""

from typing import TYPE_CHECKING

from assay._lazy import offer

if TYPE_CHECKING:
    from .contrastive import info_nce, logistic_contrast, nt_xent
    from .seeds import Seeds, stream
    from .stacked import KeepBest, Stacked, clip_by_seed
    from .two_layer import (
        Activation,
        Linearised,
        TwoLayer,
        accuracies,
        descend,
        frozen,
        hinge_gradients,
        hinge_residual,
        take,
    )

__all__ = [
    "Activation",
    "KeepBest",
    "Linearised",
    "Seeds",
    "Stacked",
    "TwoLayer",
    "accuracies",
    "clip_by_seed",
    "descend",
    "frozen",
    "hinge_gradients",
    "hinge_residual",
    "info_nce",
    "logistic_contrast",
    "nt_xent",
    "stream",
    "take",
]

offer(__name__)
