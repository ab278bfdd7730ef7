"""Pretrained image networks as factories, ``make(classes) -> network``: from timm, or from Hugging Face.

Neither library is needed to import this. A network takes images in [0, 1], normalises them as it was trained to see
them, and returns logits; its head is new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from assay._extras import MissingExtra, extra

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, where a network says nothing else


class Backbone(nn.Module):
    """Logits (batch, classes) of images (batch, 3, height, width) in [0, 1]. With ``freeze_norm`` the layers of batch
    normalisation keep the statistics that they came with, as is usual when little data of several domains is
    fine-tuned."""

    mean: Tensor
    deviation: Tensor

    def __init__(
        self, network: nn.Module, mean: Sequence[float], deviation: Sequence[float], *, freeze_norm: bool = True
    ) -> None:
        super().__init__()
        self.network, self.freeze_norm = network, freeze_norm
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)
        self.register_buffer("deviation", torch.tensor(deviation).view(-1, 1, 1), persistent=False)
        self.train(self.training)

    def forward(self, images: Tensor) -> Tensor:
        output = self.network((images - self.mean) / self.deviation)
        logits: Tensor = getattr(output, "logits", output)
        return logits

    def train(self, mode: bool = True) -> Backbone:
        super().train(mode)
        for module in self.modules():
            if self.freeze_norm and isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()
        return self

    def get_classifier(self) -> nn.Module:
        """The head, where timm's networks tell it; else the last linear layer."""
        asked = getattr(self.network, "get_classifier", None)
        linear = [module for module in self.network.modules() if isinstance(module, nn.Linear)]
        head: nn.Module = asked() if callable(asked) else linear[-1]
        return head


def timm_backbone(
    name: str, *, pretrained: bool = True, freeze_norm: bool = True, dropout: float = 0.0
) -> Callable[[int], Backbone]:
    """A network of timm by its name there, such as ``resnet50``."""

    def make(classes: int) -> Backbone:
        try:
            import timm
        except ModuleNotFoundError as error:
            raise MissingExtra("a backbone of timm needs it (pip install timm)", name="timm") from error
        network = timm.create_model(name, pretrained=pretrained, num_classes=classes, drop_rate=dropout)
        told = getattr(network, "pretrained_cfg", None) or {}
        return Backbone(network, told.get("mean", MEAN), told.get("std", DEVIATION), freeze_norm=freeze_norm)

    return make


def huggingface_backbone(source: Any, *, freeze_norm: bool = True) -> Callable[[int], Backbone]:
    """An image classifier of Hugging Face: a hub name or a folder with its weights, or a configuration for random
    ones."""

    def make(classes: int) -> Backbone:
        with extra("llm", "a backbone of Hugging Face"):
            from transformers import AutoModelForImageClassification, BaseImageProcessor, PreTrainedConfig
        told: dict[str, Any] = {}
        if isinstance(source, PreTrainedConfig):
            config = type(source).from_dict({**source.to_dict(), "num_labels": classes})
            network = AutoModelForImageClassification.from_config(config)
        else:
            network = AutoModelForImageClassification.from_pretrained(
                source, num_labels=classes, ignore_mismatched_sizes=True
            )
            told, _ = BaseImageProcessor.get_image_processor_dict(source)
        mean, deviation = told.get("image_mean") or MEAN, told.get("image_std") or DEVIATION
        return Backbone(network, mean, deviation, freeze_norm=freeze_norm)

    return make
