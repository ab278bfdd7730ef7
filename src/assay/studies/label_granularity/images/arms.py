"""Label functions on real images: pretrain with one of them, finetune to the two superclasses, compare errors."""

from __future__ import annotations

from typing import Any, Self

import torch
from pydantic import Field, PositiveInt, model_validator

from assay import lab
from assay.methods.granularity import granularity_report, max_readout
from assay.training import Seeds

from ..learners import errors
from ..params import Images, check_growing
from .problem import embedding, most_clusters

SCHEMES = ("clusters per class", "clusters of all", "random")
OTHERS = ("one pass", "coarse", "groups", "classes", "rebalanced", "random within", "one per sample")


class Params(Images):
    clusters: tuple[PositiveInt, ...] = Field(
        (2, 5, 10, 25, 50), description="clusters per superclass of the granularity curve"
    )

    @model_validator(mode="after")
    def _possible_clusters(self) -> Self:
        check_growing("clusters", self.clusters)
        check_clusters("clusters", self.clusters, self.images, self.image_samples)
        return self


def check_clusters(name: str, clusters: tuple[int, ...], images: str, samples: int) -> None:
    """Refuse more clusters than the smaller superclass has images for."""
    most = most_clusters(images, samples)
    if clusters[-1] > most:
        raise ValueError(f"{name} ask for {clusters[-1]} in a superclass, and {samples} images allow {most}")


part = lab.Part(
    "images",
    params=Params,
    presets={
        "smoke": lab.PartPreset(clusters=(2, 5)),
        "laptop": lab.PartPreset(
            fewer={"hierarchies": 10, "clusters": 5, "checkpoints": 4, "larger-network": 4, "read-outs": 8}
        ),
    },
)
OPTIONS: dict[str, Any] = {"uses": tuple(Images.model_fields), "needs": Images.data, "tolerance": 0.1}


def _transfer(
    params: Params,
    seeds: Seeds,
    record: lab.Recorder,
    scheme: str,
    clusters: int = 5,
    *,
    wider: int = 1,
    stop: float = 1.0,
) -> None:
    """Pretrain with one label function, finetune to the superclasses, record the error."""
    task, recipe = params.task(seeds), params.recipe(wider=wider)
    splits = task.by_superclass()
    if scheme == "one pass":
        result = recipe.onepass(splits, seeds)
        record(classes=2, rate=result.rate)
        record(trials=splits.tested, error=result.error)
        return
    found, fine = task.hierarchies(scheme, clusters, splits.training[1], seeds, least=params.least_samples)
    net = recipe.pretrain(task.inputs, fine, seeds, stop=stop)
    result = recipe.transfer(net, splits, seeds)
    reports = [granularity_report(each, embedding(task.inputs[i])) for i, each in enumerate(found)]
    record(
        classes=[float(each.classes) for each in found],
        rate=result.rate,
        purity=[each.purity for each in found],
        smallest=[float(each.smallest) for each in reports],
        lift=[each.lift if each.lift is not None else 0.0 for each in reports],
    )
    record(trials=splits.tested, error=result.error)
    if scheme == "rebalanced":
        sizes = [each.counts.sum(1) for each in found]
        record.array("cluster_sizes", torch.stack([torch.nn.functional.pad(s, (0, 128 - len(s))) for s in sizes]))


@part.arm("clusters", over={"scheme": SCHEMES, "clusters": lambda p: p.clusters}, **OPTIONS)
def clusters(params: Params, seeds: Seeds, record: lab.Recorder, *, scheme: str, clusters: int) -> None:
    """Clusters within the superclasses or of the whole set, and random labels, at several granularities."""
    _transfer(params, seeds, record, scheme, clusters)


@part.arm("hierarchies", over={"scheme": OTHERS}, **OPTIONS)
def hierarchies(params: Params, seeds: Seeds, record: lab.Recorder, *, scheme: str) -> None:
    """The baselines, the levels of the class tree, rebalanced clusters, random labels and one label per image."""
    _transfer(params, seeds, record, scheme)


@part.arm("checkpoints", over={"scheme": ["groups", "classes"], "epochs": [50, 70, 90]}, **OPTIONS)
def checkpoints(params: Params, seeds: Seeds, record: lab.Recorder, *, scheme: str, epochs: int) -> None:
    """Finetuning from checkpoints after 50, 70 and 90 of 90 parts of pretraining."""
    _transfer(params, seeds, record, scheme, stop=epochs / 90)


@part.arm("larger-network", over={"scheme": ["coarse", "groups", "classes", "random"]}, **OPTIONS)
def larger_network(params: Params, seeds: Seeds, record: lab.Recorder, *, scheme: str) -> None:
    """A network twice as wide."""
    _transfer(params, seeds, record, scheme, wider=2)


@part.arm("read-outs", over={"scheme": ["coarse", "classes"]}, **OPTIONS)
def read_outs(params: Params, seeds: Seeds, record: lab.Recorder, *, scheme: str) -> None:
    """Long and short finetuning, a linear probe and the maximum, after coarse and after fine pretraining."""
    task, recipe = params.task(seeds), params.recipe()
    splits = task.by_superclass()
    found, fine = task.hierarchies(scheme, 5, splits.training[1], seeds, least=params.least_samples)
    net = recipe.pretrain(task.inputs, fine, seeds)
    ways: dict[str, dict[str, Any]] = {
        "finetune": {},
        "short finetune": {"epochs": max(1, params.image_epochs // 9)},
        "probe": {"readout": "probe"},
    }
    for name, options in ways.items():
        result = recipe.transfer(net, splits, seeds, **options)
        record(at={"readout": name}, trials=splits.tested, error=result.error)
    inputs, target = splits.test
    both = zip(net(inputs), found, strict=True)
    scores = torch.stack([max_readout(logits, each.fine_to_coarse.to(logits.device)) for logits, each in both])
    record(at={"readout": "max"}, trials=splits.tested, error=errors(scores, target))
