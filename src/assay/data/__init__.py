"""Data sets by name. Names are imported when they are first asked for."""

from typing import TYPE_CHECKING

from assay._lazy import offer

if TYPE_CHECKING:
    from .images import DataUnavailable, ImageSet, available, conform, load_images, obtainable, two_classes
    from .long_tail import balanced, long_tailed, long_tailed_counts

__all__ = [
    "DataUnavailable",
    "ImageSet",
    "available",
    "balanced",
    "conform",
    "load_images",
    "long_tailed",
    "long_tailed_counts",
    "obtainable",
    "two_classes",
]

offer(__name__)
