"""Claims about a ResNet on real images: the order of label functions (C9), and training twice (C11c)."""

from __future__ import annotations

from assay.lab import Judgement, Measurements, Values

from ..images.claims import mean_of
from .arms import Params, part

_RESNET = "Figure 5 and Table 1, a ResNet on the image set in the criterion"


def _on_set(m: Measurements[Params], values: Values, what: str) -> Values:
    return values.named(f"{what}, {m.params.resnet_images}")


def _plain(m: Measurements[Params], scheme: str) -> Values:
    return m.final("error", arm="resnet-hierarchies", scheme=scheme).named(scheme)


def _clustered(m: Measurements[Params], scheme: str) -> Values:
    """The mean over all granularities of a label function."""
    numbers = m.params.resnet_clusters
    return mean_of([m.final("error", arm="resnet-clusters", scheme=scheme, clusters=n) for n in numbers], scheme)


@part.claim(
    "C9q",
    "With a ResNet on its configured image set, pretraining on the classes beats retraining on the superclasses.",
    source=_RESNET,
)
def classes(m: Measurements[Params]) -> Judgement:
    return _on_set(m, _plain(m, "coarse") - _plain(m, "classes"), "error, retraining − classes").above(0)


@part.claim(
    "C9r",
    "With a ResNet on its configured image set, pretraining on random labels is worse than retraining.",
    source=_RESNET,
)
def random_labels(m: Measurements[Params]) -> Judgement:
    return _on_set(m, _clustered(m, "random") - _plain(m, "coarse"), "error, random − retraining").above(0)


@part.claim(
    "C9s",
    "With a ResNet on its configured image set, clusters within the superclasses beat clusters of the whole set.",
    source=_RESNET,
)
def clusters(m: Measurements[Params]) -> Judgement:
    return _on_set(
        m,
        _clustered(m, "clusters of all") - _clustered(m, "clusters per class"),
        "error, clusters of all − per superclass",
    ).above(0)


@part.claim(
    "C9t",
    "With a ResNet on its configured image set, the human classes beat clusters within the superclasses.",
    source=_RESNET,
)
def human_classes(m: Measurements[Params]) -> Judgement:
    return _on_set(
        m, _clustered(m, "clusters per class") - _plain(m, "classes"), "error, clusters per superclass − classes"
    ).above(0)


@part.claim(
    "C9u", "With a ResNet on its configured image set, one label per image is worse than retraining.", source=_RESNET
)
def one_per_image(m: Measurements[Params]) -> Judgement:
    return _on_set(m, _plain(m, "one per sample") - _plain(m, "coarse"), "error, one per image − retraining").above(0)


@part.claim(
    "C11c",
    "With a ResNet on its configured image set, training on the superclasses twice beats training on them once.",
    source=_RESNET,
)
def twice(m: Measurements[Params]) -> Judgement:
    return _on_set(m, _plain(m, "one pass") - _plain(m, "coarse"), "error, one pass − retraining").above(0)
