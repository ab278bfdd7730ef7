"""Networks that several parts use, and the one way to load a pretrained one. Names are imported when asked for."""

from typing import TYPE_CHECKING

from assay._lazy import offer

if TYPE_CHECKING:
    from .backbones import Backbone, huggingface_backbone, timm_backbone
    from .pretrained import Loaded, load_encoder, load_model, why_absent
    from .quadratic import Quadratic
    from .resnet import ResNet
    from .small_cnn import SmallCnn
    from .toy import toy_language_model

__all__ = [
    "Backbone",
    "Loaded",
    "Quadratic",
    "ResNet",
    "SmallCnn",
    "huggingface_backbone",
    "load_encoder",
    "load_model",
    "timm_backbone",
    "toy_language_model",
    "why_absent",
]

offer(__name__)
