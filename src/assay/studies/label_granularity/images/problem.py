"""Real images with a hierarchy of classes, and every label function on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from assay.data import catalog
from assay.data.images import load_images
from assay.methods.granularity import (
    LabelHierarchy,
    LabelTree,
    clusters_of_all,
    clusters_per_superclass,
    one_per_sample,
    random_ids,
    rebalanced_clusters,
    tree_level,
)
from assay.training import Seeds, stream

Groups = dict[str, tuple[int, ...]]  # classes by the name of their group
_NUMBERS: Groups = {"0 or 1": (0, 1), "2 to 4": (2, 3, 4), "5 or 6": (5, 6), "7 to 9": (7, 8, 9)}
_GARMENTS: Groups = {"tops": (0, 2, 4, 6), "dress and trousers": (1, 3), "shoes": (5, 7, 9), "bags": (8,)}
_OBJECTS: Groups = {"air and sea": (0, 8), "road": (1, 9), "pets": (3, 5), "hoofed": (4, 7), "bird and frog": (2, 6)}
# set: (groups of classes, the groups of the first superclass)
GROUPS: dict[str, tuple[Groups, tuple[str, ...]]] = {
    "digits": (_NUMBERS, ("0 or 1", "2 to 4")),
    "mnist": (_NUMBERS, ("0 or 1", "2 to 4")),
    "fashion_mnist": (_GARMENTS, ("tops", "dress and trousers")),
    "cifar10": (_OBJECTS, ("air and sea", "road")),
}
LEVELS = {"groups": 1, "classes": 0}  # label functions that are levels of the class tree
LARGEST_SIDE = 16
VALIDATION = 400
SIZES = {"digits": 1352, "mnist": 60_000, "fashion_mnist": 60_000, "cifar10": 50_000}  # training images
SURE_SHARE = 0.08  # of the images that every seed has of each of ten balanced classes
FEW_SHARE = 0.04  # of the images that can be asked of each class, also of those that a draw left behind


def class_tree(name: str) -> LabelTree:
    """leaf class -> group -> superclass -> root."""
    if name not in GROUPS:
        nobodys = catalog.unknown(name, "images")
        raise ValueError(nobodys or f"no hierarchy of classes is known for {name!r} (known: {', '.join(GROUPS)})")
    groups, first = GROUPS[name]
    paths = []
    for group, members in groups.items():
        superclass = f"superclass {int(group not in first)}"
        paths += [(f"class {c}", group, superclass, "everything") for c in members]
    return LabelTree.from_paths(paths)


def superclasses(name: str) -> Tensor:
    """The superclass (0 or 1) of every class."""
    tree = class_tree(name)
    leaves = sum(len(members) for members in GROUPS[name][0].values())
    return torch.tensor([int(tree.ancestor(f"class {c}", 2)[-1]) for c in range(leaves)])


def training_images(name: str, wanted: int) -> int:
    """The training images of a seed: as many as wanted, or what the set leaves beside validation."""
    return min(wanted, SIZES[name] - VALIDATION)


def most_per_class(name: str, wanted: int) -> int:
    """How many training images of every class each draw has, with a wide margin."""
    return int(FEW_SHARE * training_images(name, wanted))


def most_clusters(name: str, wanted: int) -> int:
    """How many clusters the smaller superclass has images for, in every draw."""
    classes = int(torch.bincount(superclasses(name)).min())
    return int(SURE_SHARE * classes * training_images(name, wanted))


Data = tuple[Tensor, Tensor]


class Splits(NamedTuple):
    """Images with the labels that are the target."""

    training: Data
    validation: Data
    test: Data

    @property
    def tested(self) -> int:
        """How many images an error on the test images is a share of."""
        return len(self.test[1])


@dataclass(frozen=True)
class ImageTask:
    """Flat standardised images with their classes: each seed's own training and validation images (seeds, n, dim), and
    the same test images (t, dim) for all."""

    name: str
    inputs: Tensor
    leaves: Tensor
    validation: Data
    test: Data

    def target(self, leaves: Tensor) -> Tensor:
        """The superclass of each class label."""
        return superclasses(self.name).to(leaves.device)[leaves]

    def by_class(self) -> Splits:
        """The classes as target."""
        return Splits((self.inputs, self.leaves), self.validation, self.test)

    def by_superclass(self) -> Splits:
        """The two superclasses as target."""
        return Splits(*((inputs, self.target(leaves)) for inputs, leaves in self.by_class()))

    def hierarchies(
        self, scheme: str, clusters: int, coarse: Tensor, seeds: Seeds, *, least: int
    ) -> tuple[list[LabelHierarchy], Tensor]:
        """A label function on every seed's images, and all seeds' fine labels (seeds, n)."""
        name, level = ("tree", LEVELS[scheme]) if scheme in LEVELS else (scheme, clusters)
        tree = class_tree(self.name)
        found = []
        for i, seed in enumerate(seeds):
            embedded = embedding(self.inputs[i])
            found.append(hierarchy_of(name, level, embedded, self.leaves[i], coarse[i], seed, tree=tree, least=least))
        return found, torch.stack([each.fine for each in found]).to(seeds.device)

    def only(self, classes: tuple[int, ...]) -> ImageTask:
        """The images of some classes, numbered anew in that order. Every seed keeps the same number of training and of
        validation images, a share of them (``SURE_SHARE`` for each class) that all draws have; all test images stay."""
        test = torch.isin(self.test[1], self.test[1].new_tensor(classes))
        parts = [_rows(*part, _of(part[1], classes)) for part in ((self.inputs, self.leaves), self.validation)]
        (inputs, leaves), validation = ((x, _renumbered(y, classes)) for x, y in parts)
        return ImageTask(
            self.name, inputs, leaves, validation, (self.test[0][test], _renumbered(self.test[1][test], classes))
        )

    def fewer(self, per_class: int) -> ImageTask:
        """The first training images of each class for every seed."""
        classes = range(int(self.test[1].max()) + 1)
        rows = [torch.cat([(own == c).nonzero().squeeze(1)[:per_class] for c in classes]) for own in self.leaves]
        if any(len(row) < per_class * len(classes) for row in rows):
            raise ValueError(f"some class has fewer than {per_class} training images: use more images")
        inputs, leaves = _rows(self.inputs, self.leaves, torch.stack(rows))
        return ImageTask(self.name, inputs, leaves, self.validation, self.test)


def _of(leaves: Tensor, classes: tuple[int, ...]) -> Tensor:
    """Rows of the given classes, equally many for every seed whatever its company: (seeds, rows)."""
    kept = torch.isin(leaves, leaves.new_tensor(classes))
    wanted = int(SURE_SHARE * kept.shape[1] * len(classes))
    if int(kept.sum(1).min()) < wanted:
        raise ValueError(f"fewer than {wanted} of {kept.shape[1]} images have one of the classes {classes}")
    return torch.stack([row.nonzero().squeeze(1)[:wanted] for row in kept])


def _rows(inputs: Tensor, leaves: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    return inputs.gather(1, rows.unsqueeze(-1).expand(-1, -1, inputs.shape[-1])), leaves.gather(1, rows)


def _renumbered(leaves: Tensor, classes: tuple[int, ...]) -> Tensor:
    return (leaves.unsqueeze(-1) == leaves.new_tensor(classes)).int().argmax(-1)


def image_task(name: str, seeds: Seeds, samples: int, validation: int = VALIDATION) -> ImageTask:
    """Each seed draws its own training images (``samples``, or what a small set has left), so that intervals over seeds
    include the choice of the data, and others to choose learning rates on."""
    train, test = load_images(name), load_images(name, "test")
    samples = min(samples, len(train) - validation)
    if samples < validation:
        raise ValueError(f"{name} has {len(train)} training images, too few beside {validation} for validation")
    chosen = torch.stack([torch.randperm(len(train), generator=stream(seed, "images")) for seed in seeds])
    flat, test_flat = (shrunk(each.images).flatten(1) for each in (train, test))
    mean, scale = flat.mean(0), flat.var(0, correction=0).mean().sqrt()
    used, kept = chosen[:, :samples], chosen[:, samples : samples + validation]
    parts = [((flat[rows] - mean) / scale, train.labels[rows]) for rows in (used, kept)]
    parts.append(((test_flat - mean) / scale, test.labels))
    moved = [(inputs.to(seeds.device, seeds.dtype), labels.to(seeds.device)) for inputs, labels in parts]
    return ImageTask(name, *moved[0], moved[1], moved[2])


def shrunk(images: Tensor) -> Tensor:
    """Images of at most 16 pixels a side, averaged over areas of two by two."""
    while max(images.shape[-2:]) > LARGEST_SIDE:
        images = functional.avg_pool2d(images, 2)
    return images


def embedding(inputs: Tensor, components: int = 20) -> Tensor:
    """Principal components of one seed's images: an embedding that has seen no label. (n, components)"""
    centred = inputs - inputs.mean(0)
    directions: Tensor = torch.linalg.svd(centred, full_matrices=False)[2]
    return centred @ directions[:components].mT


def hierarchy_of(
    scheme: str,
    clusters: int,
    embedded: Tensor,
    leaves: Tensor,
    coarse: Tensor,
    seed: int,
    *,
    tree: LabelTree | None = None,
    least: int = 20,
) -> LabelHierarchy:
    """One label function on one seed's images. ``clusters`` is per coarse class, the functions that are blind to coarse
    classes make as many in all; for the tree it is the level above the leaf."""
    leaves, coarse = leaves.cpu(), coarse.cpu()
    total = (int(coarse.max()) + 1) * clusters
    if scheme == "tree" and tree is not None:
        return tree_level(tree, [f"class {c}" for c in leaves.tolist()], clusters, coarse)
    if scheme == "clusters per class":
        return clusters_per_superclass(embedded, coarse, clusters, seed=seed)
    if scheme == "clusters of all":
        return clusters_of_all(embedded, coarse, total, seed=seed)
    if scheme == "random":
        return random_ids(coarse, total, generator=stream(seed, f"random labels {total}"))
    if scheme == "random within":
        return random_ids(coarse, clusters, generator=stream(seed, f"random within {clusters}"), within=True)
    if scheme == "rebalanced":
        return rebalanced_clusters(embedded, coarse, least=least, seed=seed, choices=(2, 4, 8, 16, 32, 64))
    if scheme == "one per sample":
        return one_per_sample(coarse)
    if scheme == "coarse":
        return LabelHierarchy("coarse", coarse, coarse, aligned=True)
    raise ValueError(f"unknown label function {scheme!r}")
