"""Where do the neurons point? Cosines, a map of weight directions in the plane, clusters, and the label direction.

Every function looks at directions only: rows are scaled to unit length first, and a row without a direction is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from assay._extras import extra
from assay._reports import Report, bars, chart
from assay.methods._arrays import of_tensors
from assay.methods._checks import all_finite, one_of, whole


def unit_rows(weights: Tensor) -> Tensor:
    """Rows scaled to unit norm: (..., rows, dim) -> (..., rows, dim)."""
    weights = weights.detach()
    weights = weights if weights.is_floating_point() else weights.to(torch.get_default_dtype())
    all_finite("directions", weights)
    # Dividing by the largest entry first keeps the squares of very small weights from underflowing.
    largest = weights.abs().amax(dim=-1, keepdim=True)
    if bool((largest == 0).any()):
        count = int((largest == 0).sum())
        raise ValueError(f"{count} of {largest.numel()} rows have zero norm and no direction; leave them out first")
    scaled = weights / largest
    norms: Tensor = torch.linalg.vector_norm(scaled, dim=-1, keepdim=True)
    return scaled / norms


@of_tensors
def cosines(weights: Tensor, references: Tensor) -> Tensor:
    """Cosine of every row with every reference: (..., rows, dim) x (..., refs, dim) -> (..., rows, refs)."""
    rows = unit_rows(weights)
    return (rows @ unit_rows(references.to(rows)).mT).clamp(-1.0, 1.0)


@dataclass(frozen=True, repr=False)
class DirectionMap(Report):
    """Directions drawn in the plane: near points are weights that point the same way."""

    points: Tensor  # (rows, 2)
    references: Tensor | None  # (refs, 2)
    explained: float  # share of the squared distances to the common centre that the plane shows
    stress: float  # root of sum (drawn - true distance)^2 / sum (true distance)^2, over all pairs

    def headline(self) -> str:
        return f"{len(self.points)} directions in a plane that shows {self.explained:.1%} of their distances' squares"

    def table(self) -> list[dict[str, Any]]:
        """A row per direction, then one per reference."""
        parts = {"weight": self.points, "reference": self.references}
        return [
            {"kind": kind, "row": place, "x": x, "y": y}
            for kind, part in parts.items()
            if part is not None
            for place, (x, y) in enumerate(part.tolist())
        ]

    def figure(self) -> Any:
        """The plane; references are crosses."""
        drawn = chart(self.table()).mark_point(filled=True, size=45, opacity=0.7).encode(x="x:Q", y="y:Q")
        shape = {"field": "kind", "type": "nominal", "scale": {"range": ["circle", "cross"]}, "title": None}
        size = {"field": "kind", "type": "nominal", "scale": {"range": [45, 220]}, "legend": None}
        return drawn.encode(color="kind:N", shape=shape, size=size).properties(width=320, height=320)


@of_tensors
def direction_map(weights: Tensor, references: Tensor | None = None, *, kind: str = "classical") -> DirectionMap:
    """Multidimensional scaling of the squared distances 2 - 2 cos between rows (rows, dim) and references (refs, dim).

    ``classical`` is exact and deterministic. ``smacof`` lowers the stress further, starting from the classical map, so
    that it needs no random numbers either.
    """
    one_of("kind", kind, ("classical", "smacof"))
    drawn = direction_maps([weights], references)[0]
    if kind == "classical":
        return drawn
    with extra("lab", "the map of kind 'smacof'"):
        from sklearn.manifold import smacof

    unit = _stack([weights], references)
    start = drawn.points if drawn.references is None else torch.cat([drawn.points, drawn.references])
    distances = torch.cdist(unit, unit, compute_mode="donot_use_mm_for_euclid_dist")
    points, _ = smacof(distances.numpy(), n_components=2, init=start.numpy(), n_init=1, normalized_stress=False)
    return _describe(torch.from_numpy(points), unit, len(weights), drawn.explained)


@of_tensors
def direction_maps(snapshots: Sequence[Tensor], references: Tensor | None = None) -> list[DirectionMap]:
    """One map per snapshot (rows, dim), all in the same plane: that of the classical scaling of all of them at once.

    A point is then a fixed linear image of its unit row: it moves exactly when its weight turns, references stand
    still, and a slider over training steps never jumps. (Maps made one by one and rotated onto each other would show
    each step in its own best plane, and a reference would wander.)
    """
    unit = _stack(snapshots, references)
    centre, axes = _plane(unit)
    maps = []
    for weights in snapshots:
        rows = _stack([weights], references)
        points = (rows - centre) @ axes
        total = float((rows - centre).square().sum())
        explained = float(points.square().sum()) / total if total > 0 else 1.0
        maps.append(_describe(points, rows, len(weights), explained))
    return maps


def _stack(snapshots: Sequence[Tensor], references: Tensor | None) -> Tensor:
    """Unit rows of all snapshots, then of the references, in float64 on the CPU: (all rows, dim)."""
    parts = [*snapshots] if references is None else [*snapshots, references]
    return torch.cat([unit_rows(part.detach().to("cpu", torch.float64)) for part in parts])


def _plane(unit: Tensor) -> tuple[Tensor, Tensor]:
    """Centre (dim,) and axes (dim, 2) of classical scaling: for distances between vectors, their principal plane."""
    centre = unit.mean(dim=0)
    axes = torch.linalg.svd(unit - centre, full_matrices=False).Vh[:2].T
    # The sign of an axis is arbitrary: its largest entry is made positive, the first one where several tie.
    magnitude = axes.abs()
    leading = (magnitude >= magnitude.amax(dim=0) * (1 - 1e-6)).int().argmax(dim=0)
    axes = axes * axes.gather(0, leading[None]).sign()
    return centre, pad(axes, (0, 2 - axes.shape[1]))


def _describe(points: Tensor, unit: Tensor, rows: int, explained: float) -> DirectionMap:
    true, drawn = torch.pdist(unit), torch.pdist(points)
    scale = float(true.square().sum())
    stress = (float((drawn - true).square().sum()) / scale) ** 0.5 if scale > 0 else 0.0
    return DirectionMap(points[:rows], points[rows:] if len(points) > rows else None, explained, stress)


@dataclass(frozen=True, repr=False)
class ClusterStatistics(Report):
    """Clusters of weight directions, the largest first."""

    labels: Tensor  # (rows,) cluster of each row
    sizes: Tensor  # (clusters,)
    centres: Tensor  # (clusters, dim), unit
    to_centre: Tensor  # (clusters,) mean cosine of a cluster's rows with its centre
    centre_cosines: Tensor  # (clusters, clusters)
    within: float  # mean cosine over all pairs of rows that share a cluster
    silhouette: float  # in [-1, 1]; above a random start's value when clusters are real

    def headline(self) -> str:
        count, inside = len(self.sizes), self.within
        return f"{count} clusters of directions, silhouette {self.silhouette:.3f}, cosine within {inside:.3f}"

    def table(self) -> list[dict[str, Any]]:
        """A row per cluster."""
        return [
            {"cluster": place, "size": size, "to_centre": cosine}
            for place, (size, cosine) in enumerate(zip(self.sizes.tolist(), self.to_centre.tolist(), strict=True))
        ]

    def figure(self) -> Any:
        """The sizes of the clusters."""
        return bars([{**row, "cluster": str(row["cluster"])} for row in self.table()], "cluster", "size", size="rows")


@of_tensors
def cluster_statistics(weights: Tensor, clusters: int = 2, *, seed: int) -> ClusterStatistics:
    """k-means on the unit rows of ``weights`` (rows, dim), best of ten starts drawn from ``seed``."""
    unit = _stack([weights], None)
    whole("clusters", clusters, 2, len(unit) - 1)
    if len(torch.unique(unit, dim=0)) < clusters:
        raise ValueError(f"fewer than {clusters} different directions among {len(unit)} rows: nothing to cluster")
    with extra("lab", "k-means"):
        from sklearn.cluster import KMeans
        from sklearn.metrics import silhouette_score

    found = KMeans(clusters, n_init=10, random_state=seed).fit_predict(unit.numpy())
    members = torch.nn.functional.one_hot(torch.from_numpy(found).long(), clusters).to(unit)
    # Largest first, and the cluster of the earlier row first among equals: names do not depend on the seed.
    order = sorted(range(clusters), key=lambda c: (-float(members[:, c].sum()), int(members[:, c].argmax())))
    members = members[:, order]
    labels, sizes, sums = members.argmax(dim=1), members.sum(dim=0), members.T @ unit
    centres = unit_rows(sums)
    pairs = sizes * (sizes - 1)
    return ClusterStatistics(
        labels=labels,
        sizes=sizes.long(),
        centres=centres,
        to_centre=(sums * centres).sum(dim=1) / sizes,
        centre_cosines=cosines(centres, centres),
        within=float((sums.square().sum(dim=1) - sizes).sum() / pairs.sum()),
        silhouette=float(silhouette_score(unit.numpy(), labels.numpy())),
    )


def label_directions(inputs: Tensor, labels: Tensor) -> Tensor:
    """What the labels alone say about the inputs (n, ...): directions (refs, dim).

    Labels -1 and +1 give one direction, the estimate of E[y x]; class labels give one direction per class, in
    ascending order: the mean of the class minus the mean of all other samples.
    """
    if len(inputs) != len(labels) or labels.ndim != 1:
        raise ValueError(f"{len(inputs)} inputs need one label each, not labels of shape {tuple(labels.shape)}")
    flat = inputs.detach().flatten(1)
    flat = flat if flat.is_floating_point() else flat.to(torch.get_default_dtype())
    classes = torch.unique(labels)
    if len(classes) < 2:
        raise ValueError("a label direction needs samples of at least two classes")
    if classes.tolist() == [-1, 1]:
        return (labels.to(flat) @ flat / len(flat))[None]
    return torch.stack([flat[labels == c].mean(dim=0) - flat[labels != c].mean(dim=0) for c in classes])


@of_tensors
def gradient_direction_score(weights: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
    """Cosine of first-layer rows (..., rows, dim) with the label directions of the data: (..., rows, refs)."""
    return cosines(weights, label_directions(inputs, labels))
