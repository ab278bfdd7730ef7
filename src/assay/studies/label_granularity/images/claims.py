"""Claims about label functions on real images: their order and the U (C9), and training twice (C11a)."""

from __future__ import annotations

from typing import Any

from assay.lab import Judgement, Measurements, Values

from .arms import Params, part

# The criterion names the set of images that a verdict was reached on.
_FIGURE5 = "Figure 5 and Table 1, on the image set in the criterion"
_MIDDLE = {"a grid of clusters with a middle": lambda p: len(p.clusters) >= 3}


def mean_of(parts: list[Values], what: str) -> Values:
    """One value per seed, averaged over the parts."""
    total = parts[0]
    for other in parts[1:]:
        total = total + other
    return (total * (1 / len(parts))).named(what)


def on_set(m: Measurements[Any], values: Values, what: str) -> Values:
    return values.named(f"{what}, {m.params.images}")


def plain(m: Measurements[Params], scheme: str, arm: str = "hierarchies") -> Values:
    return m.final("error", arm=arm, scheme=scheme).named(scheme)


def clustered(m: Measurements[Params], scheme: str) -> Values:
    """The mean over all granularities of a label function."""
    return mean_of([at_grain(m, n, scheme) for n in m.params.clusters], scheme)


def at_grain(m: Measurements[Params], clusters: int, scheme: str = "clusters per class") -> Values:
    return m.final("error", arm="clusters", scheme=scheme, clusters=clusters)


@part.claim(
    "C9a",
    "On the configured image set, pretraining on the ten classes beats retraining on the two superclasses.",
    source=_FIGURE5,
)
def classes(m: Measurements[Params]) -> Judgement:
    return on_set(m, plain(m, "coarse") - plain(m, "classes"), "error, retraining − ten classes").above(0)


@part.claim(
    "C9b",
    "On the configured image set, pretraining on random labels is worse than retraining on the two superclasses.",
    source=_FIGURE5,
)
def random_labels(m: Measurements[Params]) -> Judgement:
    return on_set(m, clustered(m, "random") - plain(m, "coarse"), "error, random − retraining").above(0)


@part.claim(
    "C9c",
    "On the configured image set, pretraining with one label per image is worse than retraining on the superclasses.",
    source=_FIGURE5,
)
def one_per_image(m: Measurements[Params]) -> Judgement:
    return on_set(m, plain(m, "one per sample") - plain(m, "coarse"), "error, one per image − retraining").above(0)


@part.claim(
    "C9d",
    "On the configured image set, pretraining on clusters within the superclasses beats clusters of the whole set.",
    source=_FIGURE5,
)
def clusters_within(m: Measurements[Params]) -> Judgement:
    difference = clustered(m, "clusters of all") - clustered(m, "clusters per class")
    return on_set(m, difference, "error, clusters of all − per superclass").above(0)


@part.claim(
    "C9e",
    "On the configured image set, pretraining on the ten human classes beats clusters within the superclasses.",
    source=_FIGURE5,
)
def human_classes(m: Measurements[Params]) -> Judgement:
    difference = clustered(m, "clusters per class") - plain(m, "classes")
    return on_set(m, difference, "error, clusters per superclass − ten classes").above(0)


@part.claim(
    "C9f",
    "On the configured image set, pretraining on a few clusters per superclass beats retraining (the left arm of the "
    "U).",
    source=_FIGURE5,
    when=_MIDDLE,
)
def left_arm(m: Measurements[Params]) -> Judgement:
    difference = plain(m, "coarse") - at_grain(m, m.params.clusters[1])
    return on_set(m, difference, "error, retraining − few clusters").above(0)


@part.claim(
    "C9g",
    "On the configured image set, pretraining on the finest clusters is worse than on a few (the right arm of the U).",
    source=_FIGURE5,
    when=_MIDDLE,
)
def right_arm(m: Measurements[Params]) -> Judgement:
    difference = at_grain(m, m.params.clusters[-1]) - at_grain(m, m.params.clusters[1])
    return on_set(m, difference, "error, finest − few clusters").above(0)


@part.claim(
    "C9h",
    "On the configured image set, pretraining on groups of classes is worse than on the ten classes themselves.",
    source="Table 4",
)
def groups(m: Measurements[Params]) -> Judgement:
    return on_set(m, plain(m, "groups") - plain(m, "classes"), "error, groups − ten classes").above(0)


@part.claim(
    "C9i",
    "On the configured image set, a network twice as wide gains from pretraining on the ten classes.",
    source="Table 3",
)
def larger_network(m: Measurements[Params]) -> Judgement:
    difference = plain(m, "coarse", "larger-network") - plain(m, "classes", "larger-network")
    return on_set(m, difference, "error, retraining − ten classes, twice as wide").above(0)


def _checkpoint(m: Measurements[Params], epochs: int) -> Values:
    parts = [m.final("error", arm="checkpoints", scheme=scheme, epochs=epochs) for scheme in ("groups", "classes")]
    return mean_of(parts, f"checkpoint {epochs}")


@part.claim(
    "C9j",
    "On the configured image set, a checkpoint after 5/9 of pretraining is a worse start for finetuning than the last.",
    source="Table 2",
)
def early_checkpoint(m: Measurements[Params]) -> Judgement:
    return on_set(m, _checkpoint(m, 50) - _checkpoint(m, 90), "error, checkpoint 50 − 90").above(0)


@part.claim(
    "C9k",
    "On the configured image set, a checkpoint after 7/9 of pretraining is as good a start as the last, to half a "
    "point.",
    source="Table 2",
)
def late_checkpoint(m: Measurements[Params]) -> Judgement:
    late = on_set(m, _checkpoint(m, 70) - _checkpoint(m, 90), "error, checkpoint 70 − 90")
    return late.equals(0, within=0.005, because="half a point of error")


def _readout(m: Measurements[Params], readout: str) -> Values:
    return m.final("error", arm="read-outs", scheme="classes", readout=readout)


@part.claim(
    "C9l",
    "On the configured image set, a linear probe of the network pretrained on ten classes is worse than finetuning it.",
    source="Table 5",
)
def probe_against_finetuning(m: Measurements[Params]) -> Judgement:
    return on_set(m, _readout(m, "probe") - _readout(m, "finetune"), "error, probe − finetune").above(0)


@part.claim(
    "C9w",
    "On the configured image set, a linear probe after the ten classes is worse than one pass over the superclasses.",
    source="Table 5",
)
def probe_against_one_pass(m: Measurements[Params]) -> Judgement:
    return on_set(m, _readout(m, "probe") - plain(m, "one pass"), "error, probe − one pass").above(0)


@part.claim(
    "C11a",
    "On the configured image set, training on the superclasses twice, with a new head in between, beats training once.",
    source="Section 6, Table 1",
)
def twice(m: Measurements[Params]) -> Judgement:
    return on_set(m, plain(m, "one pass") - plain(m, "coarse"), "error, one pass − retraining").above(0)
