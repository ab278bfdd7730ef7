"""Label functions with a ResNet: the small version of the source's in-dataset transfer."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.training import Seeds

from ..images.arms import SCHEMES, check_clusters
from ..images.problem import class_tree
from ..params import check_growing
from .learners import ResNetSweep


class Params(lab.Params):
    resnet_images: str = Field("cifar10", description="image set of the ResNet sweep")
    resnet_limit: int = Field(20_000, ge=100, description="its training images")
    resnet_width: int = Field(32, ge=1, description="its width m (stages m, 2m, 4m, 8m)")
    resnet_epochs: int = Field(12, ge=1, description="epochs of each stage")
    resnet_clusters: tuple[PositiveInt, ...] = Field(
        (5, 25, 100), description="clusters per superclass of the ResNet sweep"
    )

    @model_validator(mode="after")
    def _possible_resnet(self) -> Self:
        class_tree(self.resnet_images)  # refuses unknown image sets
        check_growing("resnet_clusters", self.resnet_clusters)
        kept = self.resnet_limit * 9 // 10  # a tenth is for validation
        check_clusters("resnet_clusters", self.resnet_clusters, self.resnet_images, kept)
        return self

    def data(self) -> tuple[str, ...]:
        """What arms on these images need."""
        return (f"data:{self.resnet_images}",)


part = lab.Part(
    "resnet",
    params=Params,
    presets={
        "smoke": lab.PartPreset(
            resnet_images="digits", resnet_limit=120, resnet_width=2, resnet_epochs=1, resnet_clusters=(2,)
        ),
        "paper": lab.PartPreset(
            arms=("resnet-hierarchies", "resnet-clusters"), fewer={"resnet-hierarchies": 3, "resnet-clusters": 3}
        ),
    },
)
OPTIONS: dict[str, Any] = {
    "uses": ("resnet_images", "resnet_limit", "resnet_width", "resnet_epochs"),
    "needs": Params.data,
    "optional": True,
    "tolerance": 0.1,
    "chunk": 1,
}


@part.arm(
    "resnet-hierarchies", over={"scheme": ["one pass", "coarse", "groups", "classes", "one per sample"]}, **OPTIONS
)
def resnet_hierarchies(params: Params, seeds: Seeds, record: lab.Recorder, *, scheme: str) -> None:
    """A ResNet: both baselines, the levels of the class tree and one label per image."""
    _record(params, seeds, record, scheme, 1)


@part.arm("resnet-clusters", over={"scheme": SCHEMES, "clusters": lambda p: p.resnet_clusters}, **OPTIONS)
def resnet_clusters(params: Params, seeds: Seeds, record: lab.Recorder, *, scheme: str, clusters: int) -> None:
    """A ResNet: clusters of self-supervised features and random labels at several granularities."""
    _record(params, seeds, record, scheme, clusters)


def _record(params: Params, seeds: Seeds, record: lab.Recorder, scheme: str, clusters: int) -> None:
    sweep = ResNetSweep(params.resnet_images, params.resnet_limit, params.resnet_width, params.resnet_epochs)
    found = [sweep.run(scheme, clusters, seed, seeds.device) for seed in seeds]
    record(trials=found[0].tested, error=[each.error for each in found])
    record(classes=[float(each.classes) for each in found], purity=[each.purity for each in found])
