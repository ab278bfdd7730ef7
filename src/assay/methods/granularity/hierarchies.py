"""Fine labels for samples that have coarse ones: levels of a tree, clusters of embeddings, and the controls.

Every builder returns a ``LabelHierarchy``: fine and coarse class of each sample, both counted from 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from assay._extras import extra
from assay.methods._arrays import of_tensors
from assay.methods._checks import whole

CLUSTER_CHOICES = (2, 8, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class LabelHierarchy:
    """Fine and coarse labels (n,) of the same samples, integers of any type, kept as int64. ``aligned`` demands that
    each fine class lies in one coarse class. ``chosen`` keeps what a builder decided, such as the clusters of each
    superclass."""

    name: str
    fine: Tensor
    coarse: Tensor
    aligned: bool = False
    chosen: Mapping[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what in ("fine", "coarse"):
            object.__setattr__(self, what, torch.as_tensor(getattr(self, what)))
        if self.fine.ndim != 1 or self.fine.shape != self.coarse.shape or len(self.fine) == 0:
            raise ValueError(
                f"fine and coarse labels are one per sample, not {tuple(self.fine.shape)} and "
                f"{tuple(self.coarse.shape)}"
            )
        for what in ("fine", "coarse"):
            object.__setattr__(self, what, _whole_numbers(getattr(self, what), what))
        if self.aligned and self.purity < 1:
            raise ValueError(f"the fine labels of {self.name!r} do not refine the coarse ones: some class has two")

    @cached_property
    def pairs(self) -> tuple[Tensor, Tensor, Tensor]:
        """The pairs of a fine and a coarse class that occur, in ascending order, and how often: three of (pairs,).

        There are at most as many as samples, where the table of all pairs may be far larger."""
        width = int(self.coarse.max()) + 1
        keys, often = torch.unique(self.fine * width + self.coarse, return_counts=True)
        return keys // width, keys % width, often

    @property
    def counts(self) -> Tensor:
        """Samples by fine and coarse class: (fine classes, coarse classes), the whole table."""
        fine, coarse, often = self.pairs
        table = often.new_zeros(int(self.fine.max()) + 1, int(self.coarse.max()) + 1)
        table[fine, coarse] = often
        return table

    @cached_property
    def classes(self) -> int:
        """Fine classes that have samples."""
        return len(torch.unique_consecutive(self.pairs[0]))

    @cached_property
    def purity(self) -> float:
        """Σ_f max_y n_{f,y}/n: 1 exactly when every fine class lies in one coarse class."""
        return float(self._largest.sum()) / len(self.fine)

    @cached_property
    def fine_to_coarse(self) -> Tensor:
        """The coarse class that most of each fine class' samples have: (fine classes,). Among equals the first, and 0
        for a class without samples."""
        fine, coarse, often = self.pairs
        most = often == self._largest[fine]
        found = torch.full_like(self._largest, int(self.coarse.max()) + 1)
        found.scatter_reduce_(0, fine[most], coarse[most], "amin")
        return torch.where(self._largest > 0, found, 0)

    @property
    def _largest(self) -> Tensor:
        """Per fine class the samples of its most frequent coarse class: (fine classes,)."""
        fine, _, often = self.pairs
        return often.new_zeros(int(self.fine.max()) + 1).scatter_reduce_(0, fine, often, "amax")


class LabelTree:
    """A tree of label names, given as child -> parent. Of several parents (WordNet is no tree) the first counts."""

    def __init__(self, parents: Mapping[str, str | Sequence[str]]) -> None:
        self.parents = {
            child: parent if isinstance(parent, str) else parent[0] for child, parent in parents.items() if parent
        }
        nodes = {*self.parents, *self.parents.values()}
        roots = sorted(node for node in nodes if node not in self.parents)
        if len(roots) != 1:
            raise ValueError(f"a tree has one root, and here are {len(roots)}: {', '.join(roots[:5]) or 'a cycle'}")
        self.root = roots[0]
        for node in nodes:
            self.path(node)

    @classmethod
    def from_paths(cls, paths: Iterable[Sequence[str]]) -> LabelTree:
        """From paths that lead from a leaf to the root, the same for all."""
        return cls({child: parent for path in paths for child, parent in pairwise(path)})

    def path(self, leaf: str) -> list[str]:
        """From the leaf, included, to the root."""
        path = [leaf]
        while path[-1] in self.parents:
            if len(path) > len(self.parents) + 1:
                raise ValueError(f"the parents of {leaf!r} run in a circle")
            path.append(self.parents[path[-1]])
        if path[-1] != self.root:
            raise ValueError(f"{leaf!r} is not in the tree")
        return path

    def ancestor(self, leaf: str, level: int) -> str:
        """The node ``level`` steps up, the root when the path is shorter."""
        path = self.path(leaf)
        return path[min(whole("level", level, 0), len(path) - 1)]

    def images(self, labels: Iterable[str], level: int) -> set[str]:
        """The level's labels of a sample that has several."""
        return {self.ancestor(label, level) for label in labels}

    def overlaps(self, leaves: Iterable[str], level: int) -> list[tuple[str, str]]:
        """Pairs (class, its ancestor) that are both classes of this level. Levels count from the leaves, so that
        leaves of unequal depth make overlapping classes."""
        classes = {self.ancestor(leaf, level) for leaf in leaves}
        return sorted((one, other) for one in classes for other in self.path(one)[1:] if other in classes)


@of_tensors
def tree_level(tree: LabelTree, leaves: Sequence[str], level: int, coarse: Tensor | None = None) -> LabelHierarchy:
    """Every sample's ancestor ``level`` steps above its leaf. The coarse labels may be another task's."""
    names = [tree.ancestor(leaf, level) for leaf in leaves]
    fine = _numbered(names)
    return LabelHierarchy(f"tree level {level}", fine, torch.zeros_like(fine) if coarse is None else coarse.cpu())


def binary_by_ancestor(tree: LabelTree, leaves: Sequence[str], node: str) -> Tensor:
    """1 where ``node`` lies on the path from the leaf to the root, else 0: (n,). For target tasks."""
    tree.path(node)
    known = {leaf: int(node in tree.path(leaf)) for leaf in set(leaves)}
    return torch.tensor([known[leaf] for leaf in leaves])


@of_tensors
def clusters_per_superclass(embeddings: Tensor, coarse: Tensor, clusters: int, *, seed: int) -> LabelHierarchy:
    """k-means within each coarse class; the label is clusters·y + c. Costs O(n·clusters·dim) per iteration."""
    coarse = _whole_numbers(coarse.cpu(), "coarse")
    fine = torch.empty_like(coarse)
    for y in torch.unique(coarse).tolist():
        rows = coarse == y
        fine[rows] = clusters * y + k_means(embeddings[rows.to(embeddings.device)], clusters, seed=seed)
    return LabelHierarchy(f"{clusters} clusters per superclass", fine, coarse, aligned=True)


@of_tensors
def clusters_of_all(embeddings: Tensor, coarse: Tensor, clusters: int, *, seed: int) -> LabelHierarchy:
    """k-means on the whole data set, blind to the coarse labels."""
    fine = k_means(embeddings, clusters, seed=seed)
    return LabelHierarchy(f"{clusters} clusters of all", fine, coarse.cpu())


@of_tensors
def random_ids(coarse: Tensor, classes: int, *, generator: torch.Generator, within: bool = False) -> LabelHierarchy:
    """Labels that mean nothing, equally frequent: over all samples, or (``within``) ``classes`` per coarse class."""
    coarse = _whole_numbers(coarse.cpu(), "coarse")
    if not within:
        return LabelHierarchy(f"{classes} random", _random(len(coarse), classes, generator), coarse)
    fine = torch.empty_like(coarse)
    for y in torch.unique(coarse).tolist():
        rows = coarse == y
        fine[rows] = classes * y + _random(int(rows.sum()), classes, generator)
    return LabelHierarchy(f"{classes} random per superclass", fine, coarse, aligned=True)


@of_tensors
def one_per_sample(coarse: Tensor) -> LabelHierarchy:
    """Every sample is a class of its own."""
    return LabelHierarchy("one per sample", torch.arange(len(coarse)), coarse.cpu(), aligned=True)


@of_tensors
def rebalanced_clusters(
    embeddings: Tensor, coarse: Tensor, *, least: int, seed: int, choices: Sequence[int] = CLUSTER_CHOICES
) -> LabelHierarchy:
    """Per superclass the largest number of clusters whose smallest still has more than ``least`` samples. A superclass
    for which no choice does stays whole. ``chosen`` maps each superclass to its number."""
    coarse = _whole_numbers(coarse.cpu(), "coarse")
    fine, chosen, used = torch.zeros_like(coarse), {}, 0
    for y in torch.unique(coarse).tolist():
        rows = coarse == y
        own, members = torch.zeros(int(rows.sum()), dtype=torch.long), embeddings[rows.to(embeddings.device)]
        chosen[y] = 1
        for clusters in sorted(choices, reverse=True):
            if clusters * (least + 1) > len(members):
                continue
            found = k_means(members, clusters, seed=seed)
            if int(torch.bincount(found, minlength=clusters).min()) > least:
                own, chosen[y] = found, clusters
                break
        fine[rows] = used + own
        used += chosen[y]
    return LabelHierarchy(f"rebalanced, more than {least} per class", fine, coarse, aligned=True, chosen=chosen)


def _whole_numbers(labels: Tensor, what: str) -> Tensor:
    """The labels as int64: in a narrower type, clusters·y + c and the like would overflow without a word."""
    if labels.is_floating_point() or labels.is_complex() or (len(labels) and int(labels.long().min()) < 0):
        raise ValueError(f"{what} labels are integers from 0 on")
    return labels.long()


def k_means(embeddings: Tensor, clusters: int, *, seed: int) -> Tensor:
    """The cluster of every row, by scikit-learn's k-means with one careful start: (n,)."""
    if embeddings.ndim != 2 or not 1 <= clusters <= len(embeddings):
        raise ValueError(f"{clusters} clusters need at least as many rows (n, dim), not {tuple(embeddings.shape)}")
    if clusters == 1:
        return torch.zeros(len(embeddings), dtype=torch.long)
    with extra("lab", "k-means"):
        from sklearn.cluster import KMeans

    rows = embeddings.detach().float().cpu().numpy()
    found = KMeans(clusters, n_init=1, random_state=seed).fit_predict(rows)
    return torch.from_numpy(found).long()


def _random(n: int, classes: int, generator: torch.Generator) -> Tensor:
    return torch.randperm(n, generator=generator) % whole("the number of random classes", classes, 1, n)


def _numbered(names: Sequence[Hashable]) -> Tensor:
    """Names as integers in order of first appearance."""
    numbers: dict[Hashable, int] = {}
    return torch.tensor([numbers.setdefault(name, len(numbers)) for name in names])
