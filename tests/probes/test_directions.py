from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.probes.directions import (
    cluster_statistics,
    cosines,
    direction_map,
    direction_maps,
    gradient_direction_score,
    label_directions,
    unit_rows,
)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def two_bundles(per_bundle: int = 20, spread: float = 0.1) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights around two orthogonal directions of R^6, and those directions."""
    directions = torch.eye(6, dtype=torch.float64)[:2]
    return directions.repeat_interleave(per_bundle, dim=0) + spread * normal(2 * per_bundle, 6), directions


def test_unit_rows_survive_weights_whose_squares_underflow() -> None:
    rows = normal(4, 7).float()
    torch.testing.assert_close(unit_rows(rows * 1e-25), unit_rows(rows))


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (torch.tensor([[1.0, 0.0], [0.0, 0.0]]), "1 of 2 rows have zero norm"),
        (torch.tensor([[1.0, math.nan]]), "directions must be finite"),
    ],
)
def test_rows_without_direction_are_refused(rows: torch.Tensor, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        unit_rows(rows)


def test_cosines_equal_the_loop_and_broadcast_over_seeds() -> None:
    weights, references = normal(3, 5, 4), normal(2, 4, seed=1)
    found = cosines(weights, references)
    assert found.shape == (3, 5, 2)
    for seed in range(3):
        for neuron in range(5):
            for reference in range(2):
                expected = torch.nn.functional.cosine_similarity(weights[seed, neuron], references[reference], dim=0)
                torch.testing.assert_close(found[seed, neuron, reference], expected)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=5, max_size=5))
def test_cosines_ignore_positive_scale(scales: list[float]) -> None:
    weights, references = normal(5, 4), normal(3, 4, seed=1)
    scaled = weights * torch.tensor(scales, dtype=torch.float64)[:, None]
    torch.testing.assert_close(cosines(scaled, references), cosines(weights, references))


def test_map_of_directions_in_the_plane_keeps_every_distance() -> None:
    weights, references = normal(12, 2), normal(2, 2, seed=1)
    drawn = direction_map(weights, references)
    assert drawn.references is not None
    together = unit_rows(torch.cat([weights, references]))
    torch.testing.assert_close(
        torch.pdist(torch.cat([drawn.points, drawn.references])), torch.pdist(together), rtol=1e-9, atol=1e-9
    )
    assert drawn.explained == pytest.approx(1.0)
    assert drawn.stress == pytest.approx(0.0, abs=1e-9)


def test_map_equals_double_centring_of_squared_distances() -> None:
    weights = normal(15, 8)
    drawn = direction_map(weights)
    squared = 2 - 2 * cosines(weights, weights)
    centring = torch.eye(15, dtype=torch.float64) - 1 / 15
    values, vectors = torch.linalg.eigh(-0.5 * centring @ squared @ centring)
    slow = vectors[:, -2:].flip(1) * values[-2:].flip(0).sqrt()
    torch.testing.assert_close(drawn.points.abs(), slow.abs())
    assert drawn.explained == pytest.approx(float(values[-2:].sum() / values.sum()))


def test_map_is_deterministic_and_ignores_scale() -> None:
    weights = normal(10, 5)
    torch.testing.assert_close(direction_map(weights).points, direction_map(7 * weights).points)
    mirrored = torch.cat([weights, -weights])
    torch.testing.assert_close(direction_map(mirrored).points[:10], -direction_map(mirrored).points[10:])
    assert direction_map(torch.ones(3, 1)).points.shape == (3, 2)


def test_smacof_lowers_the_stress_of_the_classical_map() -> None:
    weights = normal(25, 8)
    classical, metric = direction_map(weights), direction_map(weights, kind="smacof")
    assert metric.stress < classical.stress
    torch.testing.assert_close(metric.points, direction_map(weights, kind="smacof").points)
    with pytest.raises(ValueError, match="kind must be one of classical, smacof"):
        direction_map(weights, kind="umap")


def test_maps_over_steps_share_one_plane() -> None:
    end, references = two_bundles()
    start = normal(40, 6, seed=2)
    maps = direction_maps([start, start, end], references)
    assert torch.equal(maps[0].points, maps[1].points)
    first, last = maps[0].references, maps[2].references
    assert first is not None
    assert last is not None
    torch.testing.assert_close(first, last)
    # A linear map of unit rows cannot move a point farther than its weight moved.
    moved = (maps[2].points - maps[0].points).norm(dim=1)
    assert bool((moved <= (unit_rows(end) - unit_rows(start)).norm(dim=1) + 1e-12).all())
    assert maps[2].explained > maps[0].explained


def test_clusters_of_two_bundles_are_found_and_described() -> None:
    weights, directions = two_bundles()
    weights = torch.cat([weights, directions[1:]])  # one more row makes the second bundle the larger
    found = cluster_statistics(weights, seed=0)
    assert found.labels.tolist() == [1] * 20 + [0] * 21
    assert found.sizes.tolist() == [21, 20]
    unit = unit_rows(weights)
    groups = [unit[20:], unit[:20]]
    pairs = [a @ b for group in groups for i, a in enumerate(group) for b in group[i + 1 :]]
    assert found.within == pytest.approx(float(torch.stack(pairs).mean()))
    for group, centre, to_centre in zip(groups, found.centres, found.to_centre, strict=True):
        torch.testing.assert_close(centre, unit_rows(group.mean(dim=0)[None])[0])
        torch.testing.assert_close(to_centre, (group @ centre).mean())
    assert abs(float(found.centre_cosines[0, 1])) < 0.1
    assert found.silhouette > cluster_statistics(normal(41, 6), seed=0).silhouette + 0.3
    assert torch.equal(found.labels, cluster_statistics(weights, seed=5).labels)


def test_clusters_that_cannot_be_are_refused() -> None:
    weights = normal(5, 3)
    for clusters in (1, 5):
        with pytest.raises(ValueError, match=r"clusters must lie in \[2, 4\]"):
            cluster_statistics(weights, clusters, seed=0)
    with pytest.raises(ValueError, match="fewer than 2"):
        cluster_statistics(torch.ones(5, 3), seed=0)


def test_label_direction_of_a_known_distribution() -> None:
    # x = y v + noise has E[y x] = v; with n samples each coordinate errs by about 1 / sqrt(n).
    n, v = 20_000, torch.tensor([3.0, 0.0, -4.0], dtype=torch.float64)
    signs = torch.where(torch.rand(n, generator=torch.Generator().manual_seed(0)) < 0.5, -1, 1)
    inputs = signs[:, None] * v + normal(n, 3)
    direction = label_directions(inputs, signs)
    torch.testing.assert_close(direction, v[None], rtol=0, atol=5 / math.sqrt(n))
    score = gradient_direction_score(torch.stack([v, -v]), inputs, signs)
    assert score[0, 0] > 0.999
    assert score[1, 0] < -0.999


def test_class_directions_equal_differences_of_means() -> None:
    inputs, labels = normal(30, 2, 3), torch.arange(30) % 3
    directions = label_directions(inputs, labels)
    assert directions.shape == (3, 6)
    expected = inputs[labels == 1].mean(dim=0) - inputs[labels != 1].mean(dim=0)
    torch.testing.assert_close(directions[1], expected.flatten())
    with pytest.raises(ValueError, match="at least two classes"):
        label_directions(inputs, torch.zeros(30))
    with pytest.raises(ValueError, match="one label each"):
        label_directions(inputs, labels[:-1])
