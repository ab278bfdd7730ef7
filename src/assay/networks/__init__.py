"""Networks that several parts use, and the one way to load a pretrained one. Names are imported when asked for."""

from typing import TYPE_CHECKING

from assay._lazy import offer

if TYPE_CHECKING:
    from .pretrained import Loaded, load_encoder, load_model, why_absent
    from .quadratic import Quadratic
    from .resnet import ResNet
    from .small_cnn import SmallCnn

__all__ = ["Loaded", "Quadratic", "ResNet", "SmallCnn", "load_encoder", "load_model", "why_absent"]

offer(__name__)
