"""The empirical claims (C9 to C12) on images that fit on two cores, on their synthetic twin, and with a ResNet."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from assay.lab import Judgement, Measurements, Values, pick

from .image_arms import GRAINS
from .study import study


def mean_of(parts: list[Values], what: str) -> Values:
    """One value per seed, averaged over the parts."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return (total * (1 / len(parts))).named(what)


def plain(m: Measurements, scheme: str, arm: str = "hierarchies") -> Values:
    return m.final("error", arm=arm, scheme=scheme).named(scheme)


def clustered(m: Measurements, scheme: str, arm: str = "clusters") -> Values:
    """The mean over all granularities of a label function."""
    numbers = m.params.clusters if arm == "clusters" else m.params.resnet_clusters
    return mean_of([m.final("error", arm=arm, scheme=scheme, clusters=n) for n in numbers], scheme)


def at_grain(m: Measurements, clusters: int, scheme: str = "clusters per class") -> Values:
    return m.final("error", arm="clusters", scheme=scheme, clusters=clusters)


_FIGURE5 = "Figure 5 and Table 1, on the configured image set"
_MIDDLE = {"a grid of clusters with a middle": lambda p: len(p.clusters) >= 3}
_ORDERS = {
    "C9a": ("pretraining on the ten classes beats retraining on the two superclasses", _FIGURE5,
            lambda m: (plain(m, "coarse") - plain(m, "classes")).named("error, retraining − ten classes")),
    "C9b": ("random labels are worse than retraining", _FIGURE5,
            lambda m: (clustered(m, "random") - plain(m, "coarse")).named("error, random − retraining")),
    "C9c": ("one label per image is worse than retraining", _FIGURE5,
            lambda m: (plain(m, "one per sample") - plain(m, "coarse")).named("error, one per image − retraining")),
    "C9d": ("clusters within the superclasses beat clusters of the whole set", _FIGURE5,
            lambda m: (clustered(m, "clusters of all") - clustered(m, "clusters per class")).named(
                "error, clusters of all − per superclass")),
    "C9e": ("the human classes beat clusters within the superclasses", _FIGURE5,
            lambda m: (clustered(m, "clusters per class") - plain(m, "classes")).named(
                "error, clusters per superclass − ten classes")),
    "C9f": ("the left arm of the U: a few clusters per superclass beat retraining", _FIGURE5,
            lambda m: (plain(m, "coarse") - at_grain(m, m.params.clusters[1])).named(
                "error, retraining − few clusters")),
    "C9g": ("the right arm of the U: the finest clusters are worse than a few", _FIGURE5,
            lambda m: (at_grain(m, m.params.clusters[-1]) - at_grain(m, m.params.clusters[1])).named(
                "error, finest − few clusters")),
    "C9h": ("the gain shrinks on the way to two classes: groups of classes do worse than classes", "Table 4",
            lambda m: (plain(m, "groups") - plain(m, "classes")).named("error, groups − ten classes")),
    "C9i": ("a network twice as wide gains too", "Table 3",
            lambda m: (plain(m, "coarse", "larger-network") - plain(m, "classes", "larger-network")).named(
                "error, retraining − ten classes, twice as wide")),
    "C9j": ("an early checkpoint (50 of 90 epochs) is a worse start than the last", "Table 2",
            lambda m: (_checkpoint(m, 50) - _checkpoint(m, 90)).named("error, checkpoint 50 − 90")),
    "C9l": ("a linear probe of the fine backbone is worse than finetuning it", "Table 5",
            lambda m: (_readout(m, "classes", "probe") - _readout(m, "classes", "finetune")).named(
                "error, probe − finetune")),
    "C9w": ("a linear probe of the fine backbone is worse than one pass on the superclasses", "Table 5",
            lambda m: (_readout(m, "classes", "probe") - plain(m, "one pass")).named("error, probe − one pass")),
    "C11a": ("training on the superclasses twice, with a new head in between, beats training on them once",
             "Section 6, Table 1",
             lambda m: (plain(m, "one pass") - plain(m, "coarse")).named("error, one pass − retraining")),
    "C11b": ("and so it does with few images of ten classes", "Table 6",
             lambda m: (plain(m, "one pass", "few-samples") - plain(m, "coarse", "few-samples")).named(
                 "error, one pass − retraining, few images")),
}  # fmt: skip
for _id, (_statement, _source, _difference) in _ORDERS.items():

    @study.claim(_id, _statement, source=_source, when=_MIDDLE if _id in ("C9f", "C9g") else None)
    def order(m: Measurements, difference: Any = _difference) -> Judgement:
        return difference(m).above(0)


def _checkpoint(m: Measurements, epochs: int) -> Values:
    parts = [m.final("error", arm="checkpoints", scheme=scheme, epochs=epochs) for scheme in ("groups", "classes")]
    return mean_of(parts, f"checkpoint {epochs}")


def _readout(m: Measurements, scheme: str, readout: str) -> Values:
    return m.final("error", arm="read-outs", scheme=scheme, readout=readout)


@study.claim(
    "C9k", "the checkpoint after 70 of 90 epochs is as good as the last, within half a point", source="Table 2"
)
def late_checkpoint(m: Measurements) -> Judgement:
    return (_checkpoint(m, 70) - _checkpoint(m, 90)).named("error, checkpoint 70 − 90").between(-0.005, 0.005)


@study.claim(
    "C9m",
    "every rebalanced cluster has more images than the threshold",
    source="Figure 6; superclasses for which some number of clusters is allowed",
)
def rebalanced(m: Measurements) -> Judgement:
    every = m.every("smallest_split", arm="hierarchies", scheme="rebalanced")
    return every.named("images in the smallest cluster").at_least(m.params.least_samples + 1)


_HMV = "Figure 5 on hierarchical patches, a finite set"
_TWINS = {
    "C9v": (
        "on the synthetic twin random classes within the superclasses of a finite set leave hard samples wrong",
        "hard_error",
        "random within",
        0.4,
    ),
    "C9n": (
        "on the synthetic twin random labels over all samples lose even the easy ones",
        "easy_error",
        "random",
        0.1,
    ),
    "C9o": ("and so do classes that unite subclasses of different superclasses", "easy_error", "mixed", 0.4),
}
for _id, (_statement, _metric, _labels, _level) in _TWINS.items():

    @study.claim(_id, _statement, source=_HMV)
    def twin(m: Measurements, metric: str = _metric, labels: str = _labels, level: float = _level) -> Judgement:
        return m.final(metric, arm="twins", labels=labels).at_least(level)


@study.claim("C9p", "splitting the true subclasses further at random keeps hard samples right", source=_HMV)
def split_twin(m: Measurements) -> Judgement:
    return m.final("hard_error", arm="twins", labels="split at random").at_most(0.05)


_TILES = "Theorems 5.1 and 5.2 on grids of real tiles, a convolutional network"
for _id, _labels, _metric, _level, _words in (
    ("C1c", "coarse", "easy_error", 0.02, "on tiles of real pixels coarse labels solve easy samples"),
    ("C3i", "fine", "hard_error", 0.05, "and fine labels solve hard ones"),
):

    @study.claim(_id, _words, source=_TILES)
    def tiles_right(m: Measurements, labels: str = _labels, metric: str = _metric, level: float = _level) -> Judgement:
        return m.final(metric, arm="tiles", labels=labels).at_most(level)


@study.claim("C2f", "on tiles of real pixels coarse labels leave hard samples wrong", source=_TILES)
def tiles_wrong(m: Measurements) -> Judgement:
    return m.final("hard_error", arm="tiles", labels="coarse").at_least(0.4)


@study.claim("C2g", "there fine labels make fewer errors on hard samples than coarse ones", source=_TILES)
def tiles_compared(m: Measurements) -> Judgement:
    coarse, fine = (m.final("hard_error", arm="tiles", labels=who) for who in ("coarse", "fine"))
    return (coarse - fine).named("hard error, coarse − fine").above(0)


def _accuracy(m: Measurements, grain: int, readout: str) -> Values:
    return m.final("accuracy", arm="cross", grain=grain, readout=readout)


def _spread(m: Measurements, readout: str) -> Values:
    return _accuracy(m, max(GRAINS), readout) - _accuracy(m, min(GRAINS), readout)


def weakest(judged: list[Judgement]) -> Judgement:
    """Of several judgements that must all hold the one that decides: a failed one, else an undecided one (first of
    all one with a reason, such as values that are not finite), else the least sure."""
    order = {"fails": 0, "undecided": 1, "holds": 2}
    return min(judged, key=lambda each: (order[each.verdict], not each.reason, each.estimate))


for _id, _readout_name, _source in (("C10a", "finetune", "Figure 2, Table 7"), ("C10b", "probe", "Table 8")):

    @study.claim(
        _id,
        f"on classes never seen, six pretraining classes are better than two ({_readout_name})",
        source=f"{_source}; six classes at five granularities, then four others",
    )
    def finer_transfers(m: Measurements, readout: str = _readout_name) -> Judgement:
        return (_accuracy(m, 6, readout) - _accuracy(m, 2, readout)).named("accuracy, 6 − 2 classes").above(0)


for _id, _readout_name, _source in (("C10c", "finetune", "Figure 2, Table 7"), ("C10d", "probe", "Table 8")):

    @study.claim(
        _id,
        f"accuracy there rises with every step of granularity ({_readout_name}, clusters included)",
        source=f"{_source}: Spearman's correlation 1, so every step must rise; shown is the step that decides",
    )
    def monotone(m: Measurements, readout: str = _readout_name) -> Judgement:
        steps = [
            (_accuracy(m, finer, readout) - _accuracy(m, coarser, readout))
            .named(f"accuracy, {finer} − {coarser} classes")
            .above(0)
            for coarser, finer in pairwise(GRAINS)
        ]
        return weakest(steps)


@study.claim(
    "C10e", "granularity matters more to a probe than to finetuning", source="Tables 7 and 8: 24 points against 10"
)
def probe_spread(m: Measurements) -> Judgement:
    return (_spread(m, "probe") - _spread(m, "finetune")).named("spread, probe − finetune").above(0)


def best_split(m: Measurements) -> Values:
    """What the best split gains over retraining, the best by its mean over seeds."""
    gains = [
        plain(m, "coarse", "few-samples") - m.final("error", arm="few-samples", scheme=scheme, splits=n)
        for scheme in ("clusters per class", "random within")
        for n in (2, 4, 8)
    ]
    return pick(max, gains).named("error, retraining − best split")


@study.claim(
    "C12",
    "where splitting leaves few images per class, no split gains more than a point over retraining",
    source="Table 6; ten classes with few images each, split by clusters or at random",
)
def starved(m: Measurements) -> Judgement:
    return best_split(m).at_most(0.01)


_RESNET = "Figure 5 and Table 1, ResNet on CIFAR-10"
_RESNET_ORDERS = {
    "C9q": ("a ResNet: pretraining on the classes beats retraining on the superclasses",
            lambda m: plain(m, "coarse", "resnet-hierarchies") - plain(m, "classes", "resnet-hierarchies")),
    "C9r": ("a ResNet: random labels are worse than retraining",
            lambda m: clustered(m, "random", "resnet-clusters") - plain(m, "coarse", "resnet-hierarchies")),
    "C9s": ("a ResNet: clusters within the superclasses beat clusters of the whole set",
            lambda m: clustered(m, "clusters of all", "resnet-clusters")
            - clustered(m, "clusters per class", "resnet-clusters")),
    "C9t": ("a ResNet: the human classes beat clusters within the superclasses",
            lambda m: clustered(m, "clusters per class", "resnet-clusters")
            - plain(m, "classes", "resnet-hierarchies")),
    "C9u": ("a ResNet: one label per image is worse than retraining",
            lambda m: plain(m, "one per sample", "resnet-hierarchies") - plain(m, "coarse", "resnet-hierarchies")),
    "C11c": ("a ResNet: training on the superclasses twice beats training on them once",
             lambda m: plain(m, "one pass", "resnet-hierarchies") - plain(m, "coarse", "resnet-hierarchies")),
}  # fmt: skip
for _id, (_statement, _difference) in _RESNET_ORDERS.items():

    @study.claim(_id, _statement, source=_RESNET)
    def resnet_order(m: Measurements, difference: Any = _difference) -> Judgement:
        return difference(m).above(0)
