"""Two-layer networks on two image classes: do their first-layer weights cluster, and when do they move?"""

from __future__ import annotations

import torch
from pydantic import Field

from assay import lab
from assay.data.images import two_classes
from assay.probes.directions import cluster_statistics, direction_maps
from assay.training import Seeds

from ..params import Images
from .learners import two_layer_weights

STARTS = {"standard": 1.0, "small": 0.1}


class Params(Images):
    image_epochs: int = Field(20, ge=4, description="epochs of the two-layer networks on two image classes")


part = lab.Part("image_weights", params=Params, presets={"smoke": lab.PartPreset(image_epochs=8)})


@part.arm("image-weights", over={"start": list(STARTS)}, needs=lambda params: (f"data:{params.images}",))
def image_weights(params: Params, seeds: Seeds, record: lab.Recorder, *, start: str) -> None:
    """Two-layer networks on the image classes 0 and 1: do first-layer weights cluster, and when do they move?"""
    train, test = (two_classes(images, 0, 1) for images in params.image_sets())
    for look in two_layer_weights(train, test, seeds, epochs=params.image_epochs, init_scale=STARTS[start]):
        record(step=look.epoch, movement=look.movement)
        record(step=look.epoch, trials=len(test), test_accuracy=look.test_accuracy)
        if look.epoch in (0, params.image_epochs):
            found = [
                cluster_statistics(weights, 2, seed=seed) for weights, seed in zip(look.weights, seeds, strict=True)
            ]
            record(step=look.epoch, silhouette=[c.silhouette for c in found], within_cosine=[c.within for c in found])
    maps = [direction_maps([weights])[0].points for weights in look.weights]
    record.array("weight_map", torch.stack(maps))
