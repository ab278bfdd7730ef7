"""Data sets by name. Names are imported when they are first asked for."""

from typing import TYPE_CHECKING

from assay._lazy import offer

if TYPE_CHECKING:
    from .augmentation import augmented
    from .catalog import DataUnavailable, UnknownData, available, first_available, obtainable
    from .domains import DomainImages, Domains, load_domains
    from .images import ImageSet, conform, load_images, two_classes
    from .long_tail import balanced, long_tailed, long_tailed_counts
    from .text import TextSet, load_text
    from .views import random_view

__all__ = [
    "DataUnavailable",
    "DomainImages",
    "Domains",
    "ImageSet",
    "TextSet",
    "UnknownData",
    "augmented",
    "available",
    "balanced",
    "conform",
    "first_available",
    "load_domains",
    "load_images",
    "load_text",
    "long_tailed",
    "long_tailed_counts",
    "obtainable",
    "random_view",
    "two_classes",
]

offer(__name__)
