"""Few images of each class: the ten classes themselves under finer labels, and classes that pretraining never saw."""

from __future__ import annotations

from typing import Any, Self

import torch
from pydantic import Field, model_validator

from assay import lab
from assay.training import Seeds

from ..images.problem import most_per_class
from ..params import Images

SPLITS = (2, 4, 8)
SPLIT_BY = ("clusters per class", "random within")
LABELS: list[dict[str, Any]] = [
    {"scheme": "one pass"},
    {"scheme": "coarse"},
    *({"scheme": scheme, "splits": n} for scheme in SPLIT_BY for n in SPLITS),
]
SEEN, UNSEEN = (0, 1, 2, 5, 6, 7), (3, 4, 8, 9)
# granularity: the class of each of the six seen classes, or the clusters that each is split into
GRAINS: dict[int, tuple[int, ...] | int] = {
    2: (0, 0, 0, 1, 1, 1),
    3: (0, 0, 1, 1, 2, 2),
    6: (0, 1, 2, 3, 4, 5),
    12: 2,
    24: 4,
}


class Params(Images):
    starved_samples: int = Field(20, ge=8, description="images per class where samples are few, split in up to 8")

    @model_validator(mode="after")
    def _enough_images(self) -> Self:
        most = most_per_class(self.images, self.image_samples)
        if self.starved_samples > most:
            raise ValueError(
                f"starved_samples asks for {self.starved_samples} of each class, and {self.image_samples} images of "
                f"{self.images} allow {most}"
            )
        return self


part = lab.Part("few_samples", params=Params, presets={"smoke": lab.PartPreset(starved_samples=8)})


@part.arm("few-samples", over=LABELS, needs=Images.data, tolerance=0.1)
def few_samples(params: Params, seeds: Seeds, record: lab.Recorder, *, scheme: str, splits: int = 1) -> None:
    """The ten classes themselves as target, with few images of each, and their splits as fine labels."""
    task, recipe = params.task(seeds).fewer(params.starved_samples), params.recipe()
    targets = task.by_class()
    if scheme == "one pass":
        result = recipe.onepass(targets, seeds)
    else:
        _, fine = task.hierarchies(scheme, splits, task.leaves, seeds, least=params.least_samples)
        net = recipe.pretrain(task.inputs, fine, seeds)
        result = recipe.transfer(net, targets, seeds)
    record(classes=float(task.leaves.max() + 1) * splits, rate=result.rate)
    record(trials=targets.tested, error=result.error)


@part.arm("cross", over={"grain": list(GRAINS)}, needs=Images.data, tolerance=0.1)
def cross(params: Params, seeds: Seeds, record: lab.Recorder, *, grain: int) -> None:
    """Pretraining on six classes at several granularities, then four other classes with few images of each."""
    whole, recipe, groups = params.task(seeds), params.recipe(), GRAINS[grain]
    seen, targets = whole.only(SEEN), whole.only(UNSEEN).fewer(params.starved_samples).by_class()
    if isinstance(groups, tuple):
        fine = torch.tensor(groups, device=seeds.device)[seen.leaves]
    else:
        scheme, least = "clusters per class", params.least_samples
        _, fine = seen.hierarchies(scheme, groups, seen.leaves, seeds, least=least)
    net = recipe.pretrain(seen.inputs, fine, seeds)
    for readout in ("finetune", "probe"):
        result = recipe.transfer(net, targets, seeds, readout=readout)
        record(at={"readout": readout}, trials=targets.tested, error=result.error, accuracy=1 - result.error)
        record(at={"readout": readout}, rate=result.rate)
