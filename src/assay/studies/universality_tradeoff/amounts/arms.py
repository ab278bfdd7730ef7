"""What else the pretraining data can be: fewer images of the target, a related set in their place, a tenth of all
sets, and other images from more classes. Heads read the target on few and on many labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from assay import lab
from assay.training import Seeds

from ..images import arms as images
from ..images.arms import HEADS, read_heads
from ..images.params import check_images
from .problem import related

SHARES = (0.5, 0.2, 0.1)  # of the target's unlabelled images, where they are scarce; the source has the first two
TENTH = 0.1  # of all sets' images
FEW_CLASSES, MANY_CLASSES = 1, 10  # of another set, at the same number of images


class Params(images.Params):
    """All that the images read."""


part = lab.Part(
    "amounts",
    params=Params,
    presets={
        "laptop": lab.PartPreset(arms=("scarce", "related", "tenth", "classes")),
        "paper": lab.PartPreset(fewer={"scarce": 4, "related": 4, "tenth": 4, "classes": 4}),
    },
)
OPTIONS: dict[str, Any] = {
    "uses": HEADS,
    "needs": Params.image_needs,
    "tolerance": 0.05,
    "chunk": 1,
    "optional": True,
}


def _mixtures(params: Params) -> tuple[str, ...]:
    check_images("image_labels", params.image_labels, params.image_sources[:1], params.image_limit)
    return params.mixtures()


def _all_sets(params: Params) -> tuple[str, ...]:
    return _mixtures(params)[-1:]


def _numbers_of_classes(params: Params) -> list[int]:
    return [FEW_CLASSES, 2, 5, MANY_CLASSES] if _mixtures(params) else []


def _sets(params: Params, encoder: str) -> dict[str, Tensor]:
    """Unlabelled images of a mixture's sets."""
    return {name: params.source(name, "train").images for name in encoder.split("+")}


def part_of(found: Tensor, share: float, least: int) -> Tensor:
    """The first images of a set, a share of them and no fewer than a batch."""
    return found[: max(least, round(share * len(found)))]


def _read(params: Params, sets: Mapping[str, Tensor], seeds: Seeds, record: lab.Recorder) -> None:
    """Train every seed's encoder on these sets from scratch, and read the target."""
    networks: list[nn.Module] = [params.recipe().train(sets, seed, seeds.device) for seed in seeds]
    read_heads(params, networks, seeds, record, params.image_sources[:1])


@part.arm("scarce", over={"encoder": _mixtures, "share": list(SHARES)}, **OPTIONS)
def scarce(params: Params, seeds: Seeds, record: lab.Recorder, *, encoder: str, share: float) -> None:
    """Growing mixtures with a part of the target's unlabelled images, and all of the other sets'."""
    sets, target = _sets(params, encoder), params.image_sources[0]
    _read(params, sets | {target: part_of(sets[target], share, params.image_batch)}, seeds, record)


@part.arm("related", over={"encoder": _mixtures}, **OPTIONS)
def related_first(params: Params, seeds: Seeds, record: lab.Recorder, *, encoder: str) -> None:
    """Growing mixtures whose first set is related to the target's instead of being it."""
    sets, target = _sets(params, encoder), params.image_sources[0]
    _read(params, sets | {target: related(sets[target])}, seeds, record)


@part.arm("tenth", over={"encoder": _all_sets}, **OPTIONS)
def tenth(params: Params, seeds: Seeds, record: lab.Recorder, *, encoder: str) -> None:
    """All sets together with a tenth of the images of each."""
    sets = {name: part_of(each, TENTH, params.image_batch) for name, each in _sets(params, encoder).items()}
    _read(params, sets, seeds, record)


@part.arm("classes", over={"classes": _numbers_of_classes}, **OPTIONS)
def classes(params: Params, seeds: Seeds, record: lab.Recorder, *, classes: int) -> None:
    """The target's set with a tenth of the last set's images, all from so many of its classes."""
    target, last = params.image_sources[0], params.image_sources[-1]
    other = params.source(last, "train")
    chosen = other.images[other.labels < classes][: max(params.image_batch, len(other) // MANY_CLASSES)]
    _read(params, {target: params.source(target, "train").images, last: chosen}, seeds, record)
