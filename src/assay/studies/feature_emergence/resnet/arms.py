"""A ResNet on two image classes: do early gradients agree, and when do its filters turn?"""

from __future__ import annotations

from pydantic import Field

from assay import lab
from assay.data.images import load_images, two_classes
from assay.training import Seeds

from .learners import ResNetFilters


class Params(lab.Params):
    resnet_width: int = Field(128, ge=2, description="m of ResNet(m)")
    resnet_epochs: int = Field(20, ge=4, description="epochs of the ResNet")
    resnet_rate: float = Field(0.02, gt=0, description="its SGD rate")
    resnet_limit: int = Field(50_000, ge=200, description="images read for it, of all classes")
    resnet_images: str = Field("cifar10", description="image set of the ResNet")


part = lab.Part(
    "resnet",
    params=Params,
    presets={
        "smoke": lab.PartPreset(resnet_width=2, resnet_epochs=6, resnet_images="digits", resnet_limit=600),
        "laptop": lab.PartPreset(resnet_width=16, resnet_limit=5_000, fewer={"resnet": 3}),
        "paper": lab.PartPreset(fewer={"resnet": 3}, arms=("resnet",)),
    },
)


@part.arm(
    "resnet",
    over={"labels": ["true", "shuffled"]},
    optional=True,
    tolerance=0.05,
    needs=lambda params: (f"data:{params.resnet_images}",),
    working_set=lambda params: 64.0 * 2**20,
)
def resnet(params: Params, seeds: Seeds, record: lab.Recorder, *, labels: str) -> None:
    """A ResNet on two image classes: agreement of early gradients, and when its filters turn."""
    train, test = (
        two_classes(load_images(params.resnet_images, split, limit=params.resnet_limit), 0, 1)
        for split in ("train", "test")
    )
    sizes = (len(train), params.resnet_width, params.resnet_epochs)
    recipe = ResNetFilters.fitting(*sizes, params.resnet_rate, shuffle_labels=labels == "shuffled")
    report = recipe.train(train, test, seeds)
    accuracy = report.test_accuracy[params.resnet_epochs]
    record(step=params.resnet_epochs, trials=len(test), test_accuracy=accuracy)
    for stage in range(len(report.chunk_means)):
        early, late = report.turns(stage)
        record(at={"stage": stage + 1}, smallest_chunk_cosine=report.smallest_chunk_cosine(stage))
        record(at={"stage": stage + 1}, early_turn=early, late_turn=late)
