"""Networks that several parts use, and the one way to load a pretrained one. Names are imported when asked for."""

from typing import TYPE_CHECKING

from assay._lazy import offer

if TYPE_CHECKING:
    from .pretrained import Loaded, load_encoder, load_model, why_absent
    from .quadratic import Quadratic
    from .resnet import ResNet
    from .toy import toy_language_model

__all__ = ["Loaded", "Quadratic", "ResNet", "load_encoder", "load_model", "toy_language_model", "why_absent"]

offer(__name__)
