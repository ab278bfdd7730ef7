from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from assay.probes.cones import cone_cover, p_hat


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def two_bundles() -> torch.Tensor:
    """Thirty rows along the first axis, ten along the second, of both signs and many lengths, and five elsewhere."""
    noise = 0.05 * torch.randn(45, 6, generator=generator())
    signs = torch.where(torch.rand(40, 1, generator=generator(1)) < 0.5, -1.0, 1.0)
    lengths = 0.1 + torch.rand(40, 1, generator=generator(2))
    rows = noise.clone()
    rows[:30, 0] += 1
    rows[30:40, 1] += 1
    rows[:40] *= signs * lengths
    rows[40:, 2:] = torch.eye(4)[[0, 1, 2, 3, 0]] * torch.tensor([1.0, 1, 1, 1, 1]).unsqueeze(1)
    return rows


def test_the_share_equals_the_count_and_its_interval_is_exact():
    rows, direction = two_bundles(), torch.eye(6)[0]
    found = p_hat(rows, direction, gamma=0.1)
    unit = rows / rows.norm(dim=1, keepdim=True)
    assert found.inside == int((unit[:, 0].abs() > 0.9).sum()) == 30
    assert found.share == pytest.approx(30 / 45)
    low, high = found.interval()
    assert low == pytest.approx(beta.ppf(0.025, 30, 16), abs=1e-6)
    assert high == pytest.approx(beta.ppf(0.975, 31, 15), abs=1e-6)
    assert "30 of 45" in repr(found)
    assert found.to_dict() == {"report": "ConeShare", "inside": 30, "rows": 45, "gamma": 0.1, "floor": 0.0}


def test_a_share_among_rows_of_one_bias_sign():
    rows, biases = two_bundles(), torch.where(torch.arange(45) < 15, 1.0, -1.0)
    found = p_hat(rows, torch.eye(6)[0], biases=biases, sign=1)
    assert (found.inside, found.rows) == (15, 15)
    found = p_hat(rows, torch.eye(6)[0], biases=biases, sign=-1)
    assert (found.inside, found.rows) == (15, 30)


def test_zero_is_in_no_cone():
    rows = torch.cat([torch.zeros(3, 4), torch.eye(4)[:1]])
    assert p_hat(rows, torch.eye(4)[0]).inside == 1


@settings(max_examples=25, deadline=None)
@given(st.floats(0.01, 0.5), st.floats(1.05, 1.9), st.floats(0, 0.5), st.integers(0, 5))
def test_the_share_grows_with_the_width_and_falls_with_the_floor(gamma, times, floor, seed):
    rows = torch.randn(50, 3, generator=generator(seed))
    direction = torch.randn(3, generator=generator(seed + 100))
    wide = p_hat(rows, direction, gamma=min(0.99, gamma * times), floor=floor).inside
    narrow = p_hat(rows, direction, gamma=gamma, floor=floor).inside
    assert narrow <= wide
    assert p_hat(rows, direction, gamma=gamma, floor=floor + 0.3).inside <= narrow
    # The cone has two sides and no scale.
    assert p_hat(rows, -3 * direction, gamma=gamma, floor=floor).inside == narrow


def test_integers_have_directions_too():
    rows = (4 * two_bundles()).round()
    axis = torch.eye(6)[0]
    assert p_hat(rows.long(), axis.long()).inside == p_hat(rows, axis).inside > 0


def test_what_is_no_cone_is_refused():
    rows = two_bundles()
    for gamma in (0, 1, -0.1, float("nan")):
        with pytest.raises(ValueError, match="gamma"):
            p_hat(rows, torch.eye(6)[0], gamma=gamma)
    with pytest.raises(ValueError, match="zero norm"):
        p_hat(rows, torch.zeros(6))
    with pytest.raises(ValueError, match="finite"):
        p_hat(torch.full((2, 6), torch.nan), torch.eye(6)[0])
    with pytest.raises(ValueError, match="both or neither"):
        p_hat(rows, torch.eye(6)[0], sign=1)
    with pytest.raises(ValueError, match="45 gradients need a bias each"):
        p_hat(rows, torch.eye(6)[0], biases=torch.ones(44), sign=1)
    with pytest.raises(ValueError, match="no row is left"):
        p_hat(rows, torch.eye(6)[0], biases=torch.ones(45), sign=-1)
    with pytest.raises(ValueError, match="direction"):
        p_hat(rows, torch.eye(5)[0])


def test_the_cover_finds_the_bundles_whatever_the_signs_and_lengths():
    rows = two_bundles()
    cones = cone_cover(rows, gamma=0.1, least=5)
    assert [len(cone.members) for cone in cones] == [30, 10]
    for axis, cone in enumerate(cones):
        assert float(cone.direction[axis]) > 0.99
        assert float(cone.direction.norm()) == pytest.approx(1, abs=1e-5)
        aligned = rows[cone.members] * cone.signs.unsqueeze(1)
        assert bool((aligned[:, axis] > 0).all())
        assert float(cone.cosines.min()) > 0.9
    flipped = cone_cover(-2 * rows, gamma=0.1, least=5)
    torch.testing.assert_close(flipped[0].direction, cones[0].direction)


def test_the_cover_keeps_its_limits():
    rows = two_bundles()
    assert len(cone_cover(rows, gamma=0.1, most=1)) == 1
    every = cone_cover(rows, gamma=0.1)
    assert sorted(torch.cat([cone.members for cone in every]).tolist()) == list(range(45)), "every row has one cone"
    assert len(cone_cover(rows, gamma=0.1, least=5, centres=3)) >= 1
